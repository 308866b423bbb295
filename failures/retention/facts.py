"""The facts of a setting that the rule asks for, each by an index, however many activations there were."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery

from agents.models import Activation, LaunchSetting
from contract.names import HISTORY_KEY
from failures.retention.rule import ActivationFact, Range, Rule, nobodys, what_goes


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
    """What goes of this setting, from the two activations that matter. Of the demo's made-up history nothing
    goes with age: a person removes it, all at once."""
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
