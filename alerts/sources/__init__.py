"""Every kind of alert."""

from collections.abc import Sequence

from alerts.kinds import AlertKind
from alerts.sources import (
    components,
    dead_letters,
    error_groups,
    goals,
    movement,
    odd_servers,
    pipeline,
    schedules,
    servers,
    subscriptions,
)

SOURCES = (
    servers.KINDS,
    movement.KINDS,
    subscriptions.KINDS,
    goals.KINDS,
    odd_servers.KINDS,
    schedules.KINDS,
    error_groups.KINDS,
    pipeline.KINDS,
    dead_letters.KINDS,
    components.KINDS,
)
KINDS = {kind.name: kind for kinds in SOURCES for kind in kinds}


def every_kind() -> Sequence[AlertKind]:
    return sorted(KINDS.values(), key=lambda kind: kind.name)


def kind_of(name: str) -> AlertKind | None:
    """Returns None for one that nobody knows any more."""
    return KINDS.get(name)
