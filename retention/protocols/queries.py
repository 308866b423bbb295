"""The facts of a setting that the rule asks for, each by an index, however many activations there were."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, Min, OuterRef, Q, QuerySet, Subquery

from agents.models import Activation, LaunchSetting
from contract.names import HISTORY_KEY
from failures.models import FailureProtocol, RecoveredMessage
from retention.rules import ActivationFact, Place, Range, Rule, nobodys, what_goes


def span_of(setting: LaunchSetting) -> timedelta:
    """N."""
    days = setting.retention_days
    return timedelta(days=settings.MA_RETENTION_DAYS if days is None else days)


def silent_span() -> timedelta | None:
    """C; None: that sentence is off."""
    return timedelta(days=settings.MA_RETENTION_SILENT_DAYS) if settings.MA_RETENTION_SILENT_DAYS else None


def fact_of(activation: Activation) -> ActivationFact:
    return ActivationFact(activation.number, activation.started_at, activation.ended_at, activation.well)


def last_finished_of(setting: LaunchSetting) -> Activation | None:
    return _finished(setting).order_by("-number", "-started_at").first()


def ranges_of(setting: LaunchSetting, now: datetime) -> tuple[Range, ...]:
    """Returns what goes of this setting, from the two activations that matter. Of the demo's made-up history
    nothing goes with age: a person removes it, all at once."""
    if setting.key == HISTORY_KEY:
        return ()
    matter = (last_finished_of(setting), _finished(setting).order_by("-ended_at").first())
    facts = [fact_of(each) for each in matter if each is not None]
    return what_goes(facts, now=now, n=span_of(setting), c=silent_span())


def ranges_of_all(now: datetime) -> dict[int, tuple[Range, ...]]:
    """{setting: as `ranges_of` says}, in two questions."""
    finished = Activation.objects.filter(setting=OuterRef("pk"), ended_at__isnull=False)
    rows = LaunchSetting.objects.annotate(
        last=Subquery(finished.order_by("-number", "-started_at").values("pk")[:1]),
        ended_last=Subquery(finished.order_by("-ended_at").values("pk")[:1]),
    )
    all_settings = list(rows.order_by())
    matter = Activation.objects.in_bulk(
        {pk for each in all_settings for pk in (each.last, each.ended_last) if pk}
    )
    return {
        each.pk: what_goes(
            [fact_of(matter[pk]) for pk in (each.last, each.ended_last) if pk in matter],
            now=now, n=span_of(each), c=silent_span(),
        )
        if each.key != HISTORY_KEY
        else ()
        for each in all_settings
    }  # fmt: skip


def well_ranges(settings_of: Collection[int] | None = None) -> dict[int, tuple[str, Range]]:
    """{setting: (its key, what goes of it because its last finished activation finished well)}, where that is
    so; of all settings, or of these. One question."""
    asked = (
        LaunchSetting.objects.all()
        if settings_of is None
        else LaunchSetting.objects.filter(pk__in=settings_of)
    )
    finished = Activation.objects.filter(setting=OuterRef("pk"), ended_at__isnull=False)
    last = Subquery(finished.order_by("-number", "-started_at").values("pk")[:1])
    rows = Activation.objects.filter(pk__in=asked.order_by().values_list(last)).select_related("setting")
    found = {}
    for each in rows.only("number", "started_at", "ended_at", "well", "setting__key").order_by():
        # Neither N nor C matters after one that finished well.
        for of in what_goes([fact_of(each)], now=each.started_at, n=timedelta(), c=None):
            if of.rule is Rule.WELL:
                found[each.setting_id] = each.setting.key, of
    return found


def ranges_of_nobody(now: datetime) -> tuple[Range, ...]:
    return nobodys(now=now, c=silent_span())


def _finished(setting: LaunchSetting) -> QuerySet[Activation]:
    return Activation.objects.filter(setting=setting, ended_at__isnull=False)


# Of which settings there is anything that could go: a few questions for all of them, each by an index, so
# that nothing is asked of a setting that has nothing.


def settings_due(now: datetime) -> list[int]:
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
    """Leaves out settings of which nothing goes by time: where many protocols have just gone, it is the index
    that knows the last of it."""
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


# -- activations by their place among those of a setting -----------------------------------------------------


def up_to(rows: QuerySet[Activation], of: Range) -> QuerySet[Activation]:
    if of.up_to is None:
        return rows
    number, started_at = of.up_to
    return rows.filter(Q(number__lt=number) | Q(number=number, started_at__lte=started_at))


def past(place: Place) -> Q:
    number, started_at = place
    return Q(number__gt=number) | Q(number=number, started_at__gt=started_at)
