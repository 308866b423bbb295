"""Protocols of a setting or of runs that are being removed: they stay, by the names that they hold, a few let
go at a time, each few found by an index.

Each loses setting, activation and run at once: what an intake stores meanwhile of an activation that goes
still names the setting, and is found by it.
"""

from collections.abc import Collection, Iterator
from datetime import datetime
from uuid import UUID

from agents.hooks import AT_ONCE, Referrer
from agents.models import LaunchSetting
from failures.models import FailureProtocol


def of_setting(setting: LaunchSetting) -> Iterator[int]:
    """The oldest first, and never back: what was let go would be passed over again and again where the index
    of a database still holds it."""
    rows = FailureProtocol.objects.filter(setting=setting).order_by("occurred_at")
    since: datetime | None = None
    while True:
        following = rows.filter(occurred_at__gte=since) if since else rows
        found = list(following.values_list("occurred_at", "pk")[:AT_ONCE])
        if not found:
            return
        since = found[-1][0]
        yield _let_go([pk for _, pk in found])


def of_runs(runs: Collection[int]) -> Iterator[int]:
    """Those that name another setting than the one of their run."""
    rows = FailureProtocol.objects.filter(run__in=runs).order_by()
    while found := list(rows.values_list("pk", flat=True)[:AT_ONCE]):
        yield _let_go(found)


def _let_go(protocols: Collection[UUID]) -> int:
    return FailureProtocol.objects.filter(pk__in=protocols).update(setting=None, activation=None, run=None)


def referrer() -> Referrer:
    return Referrer(FailureProtocol, of_setting, of_runs)
