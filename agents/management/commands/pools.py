"""manage.py pools list|freeze|unfreeze: what people do with pools, for scripts and at night."""

from typing import Any

from agents.freezes.operations import FreezePool, UnfreezePool
from agents.management.commands.site import frozen_json, frozen_line
from agents.models import Pool
from console.operations.command import OperationsCommand


class Command(OperationsCommand):
    help = "Lists pools, or freezes or unfreezes new starts in one. Exit code 1 if refused."
    operations = (FreezePool, UnfreezePool)

    def as_json(self, pool: Pool) -> dict[str, Any]:
        servers = list(pool.servers.order_by("name").values_list("name", flat=True))
        return {"name": pool.name, "servers": servers, **frozen_json(pool.pk)}

    def line(self, row: dict[str, Any]) -> str:
        return frozen_line(row)
