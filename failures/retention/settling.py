"""Of which settings there is anything that could go: a few questions for all of them, each by an index, so
that nothing is asked of a setting that has nothing."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import Exists, Min, OuterRef, Subquery

from agents.models import Activation, LaunchSetting
from failures.models import FailureProtocol, RecoveredMessage
from failures.retention.facts import ranges_of_all, silent_span
from failures.retention.rule import Range, Rule


def due(now: datetime) -> list[int]:
    """Keys of settings. Of one that is not here nothing goes; of one that is here, perhaps nothing either."""
    ranges = ranges_of_all(now)
    uncleared = _first_uncleared_ends()
    oldest = _oldest_protocols(
        [pk for pk, found in ranges.items() if any(of.before is not None for of in found)]
    )
    recovered = _open_with_old_recoveries(now)

    def holds(setting: int, of: Range) -> bool:
        ended = uncleared.get(setting)
        if of.rule is Rule.WELL:
            return ended is not None
        before: Any = of.before
        at = oldest.get(setting)
        if (at is not None and at < before) or (ended is not None and ended < before):
            return True
        return of.rule is Rule.SILENT and setting in recovered

    return sorted(setting for setting, found in ranges.items() if any(holds(setting, of) for of in found))


def _first_uncleared_ends() -> dict[int, datetime]:
    """{setting: when the first of its activations ended of which there may be records}"""
    rows = Activation.objects.filter(cleared=False, ended_at__isnull=False).order_by().values("setting")
    return dict(rows.annotate(first=Min("ended_at")).values_list("setting", "first"))


def _oldest_protocols(settings: Collection[int]) -> dict[int, datetime]:
    """Of settings of which nothing goes by time it is not asked: where many protocols have just gone, it is
    the index that knows the last of it."""
    first = (
        FailureProtocol.objects.filter(setting=OuterRef("pk"))
        .order_by("occurred_at")
        .values("occurred_at")[:1]
    )
    rows = LaunchSetting.objects.filter(pk__in=settings).annotate(oldest=Subquery(first)).order_by()
    return {setting: oldest for setting, oldest in rows.values_list("pk", "oldest") if oldest is not None}


def _open_with_old_recoveries(now: datetime) -> set[int]:
    """Settings with an activation that goes on and recovered messages of it that are older than C."""
    if (c := silent_span()) is None:
        return set()
    old = RecoveredMessage.objects.filter(activation_uuid=OuterRef("pk"), occurred_at__lt=now - c)
    rows = Activation.objects.filter(Exists(old), ended_at=None).order_by()
    return set(rows.values_list("setting", flat=True))
