"""The facts of a setting that the rule asks for, each by an index, however many activations there were."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from agents.models import Activation, LaunchSetting
from failures.retention.rule import ActivationFact, Range, nobodys, what_goes


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
    """What goes of this setting, from the two activations that matter."""
    matter = (last_finished_of(setting), _finished(setting).order_by("-ended_at").first())
    facts = [fact_of(each) for each in matter if each is not None]
    return what_goes(facts, now=now, n=span_of(setting), c=silent_span())


def ranges_of_nobody(now: datetime) -> tuple[Range, ...]:
    return nobodys(now=now, c=silent_span())


def _finished(setting: LaunchSetting) -> QuerySet[Activation]:
    return Activation.objects.filter(setting=setting, ended_at__isnull=False)
