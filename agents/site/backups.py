"""The last good backup of this installation: kept as a component, its age is watched where somebody wants
that."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from agents.models import ComponentCondition, ComponentState
from agents.site.components import note_state
from console.audit.log import account_of, record

NAME = "backup"


@dataclass(frozen=True, slots=True)
class LastBackup:
    """`made_at` None: none was ever made. `allowed` None: nobody wants to know its age."""

    made_at: datetime | None
    allowed: timedelta | None
    messages: bool = False
    place: str = ""

    def is_old(self, now: datetime) -> bool:
        if self.allowed is None:
            return False
        return self.made_at is None or now - self.made_at > self.allowed


def last_backup() -> LastBackup:
    hours = settings.MA_BACKUP_HOURS
    allowed = timedelta(hours=hours) if hours else None
    row = ComponentState.objects.filter(name=NAME).first()
    if row is None:
        return LastBackup(None, allowed)
    left_out = row.details.get("left_out", [])
    return LastBackup(row.measured_at, allowed, "messages" not in left_out, row.details.get("place", ""))


def note_backup(facts: Mapping[str, Any], now: datetime) -> None:
    """One that is whole: an entry of the audit, and what is known of the last one."""
    made_at = datetime.fromisoformat(facts["made_at"])
    with transaction.atomic():
        note_state(NAME, ComponentCondition.OK, made_at, facts)
        record("backup", by=None, now=now, target="site:backup", detail={**facts, **account_of(None)})
