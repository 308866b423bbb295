"""manage.py site list|freeze|unfreeze: what people do with the whole installation, for scripts and at
night."""

from typing import Any

from django.utils import timezone

from agents.freezes.operations import FreezeSite, UnfreezeSite
from agents.freezes.queries import frozen_now
from agents.models import SiteIdentity
from agents.models.site import ONLY
from console.operations.command import OperationsCommand


class Command(OperationsCommand):
    help = "Shows whether new starts are frozen, or freezes or unfreezes them. Exit code 1 if refused."
    operations = (FreezeSite, UnfreezeSite)
    only_key = str(ONLY)

    def as_json(self, site: SiteIdentity) -> dict[str, Any]:
        return {"id": site.pk, **frozen_json(None)}

    def line(self, row: dict[str, Any]) -> str:
        return frozen_line(row)


def frozen_json(pool: int | None) -> dict[str, Any]:
    """Returns what holds just this scope now."""
    frozen = frozen_now(timezone.now()).only(pool)
    return {
        "frozen": frozen is not None,
        "frozen_since": frozen.since if frozen else None,
        "frozen_until": frozen.until if frozen else None,
        "frozen_by": frozen.by if frozen else "",
        "freeze_reason": frozen.why if frozen else "",
        "maintenance_window": frozen.maintenance if frozen else None,
    }


def frozen_line(row: dict[str, Any]) -> str:
    if not row["frozen"]:
        return "not frozen"
    until = f" until {row['frozen_until']:%Y-%m-%d %H:%M} UTC" if row["frozen_until"] else ""
    by = f" by {row['frozen_by']}" if row["frozen_by"] else " by a maintenance window"
    return f"frozen{by}{until}  {row['freeze_reason']}"
