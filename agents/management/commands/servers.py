"""manage.py servers list|cordon|drain|uncordon: what people do on the pages, for scripts and at night."""

from typing import Any

from django.utils import timezone

from agents.models import Server
from agents.servers.operations import Cordon, Drain, Uncordon
from console.operations.command import OperationsCommand


class Command(OperationsCommand):
    help = "Lists servers, or cordons, drains or uncordons one. Exit code 1 if refused."
    operations = (Cordon, Drain, Uncordon)

    def as_json(self, server: Server) -> dict[str, Any]:
        return {
            "name": server.name,
            "state": server.state(timezone.now()).value,
            "duty": server.duty,
            "duty_reason": server.duty_reason,
            "duty_until": server.duty_until,
            "last_seen_at": server.last_seen_at,
        }

    def line(self, row: dict[str, Any]) -> str:
        why = f"  {row['duty_reason']}" if row["duty_reason"] else ""
        return f"{row['state']:<8}  {row['duty']}{why}"
