"""Keeps what was measured of a component. Two workers may measure at once: the later measurement stays."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents.models import ComponentState


def note_state(name: str, state: str, now: datetime, details: Mapping[str, Any] | None = None) -> None:
    """Conditional updates: a measurement that is older than the stored one changes nothing, and `since` moves
    only with the state. A process that dies between them leaves the row of before, and the next one measures
    again."""
    row = ComponentState.objects.filter(name=name, measured_at__lte=now)
    told = {"measured_at": now, "details": dict(details or {})}
    if row.filter(state=state).update(**told):
        return
    if row.exclude(state=state).update(state=state, since=now, **told):
        return
    ComponentState.objects.get_or_create(name=name, defaults={"state": state, "since": now, **told})
