"""Alerts on the timeline."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from alerts.models import Alert, AlertState, Severity
from alerts.text import alert_label, says
from console.ui.charts.curves import Mark, Shape
from console.ui.page import link
from metrics import hooks
from metrics.timeline.events import EventKind, Subject


def _alerts(subject: Subject) -> QuerySet[Any]:
    rows = Alert.objects.exclude(state=AlertState.CALM).exclude(opened_at=None)
    if subject.setting is not None:
        rows = rows.filter(setting=subject.setting)
    if subject.server is not None:
        rows = rows.filter(server=subject.server)
    return rows


def _alert(alert: Alert) -> Mark:
    assert alert.opened_at is not None
    tone = "bad" if alert.severity == Severity.BAD else "warn"
    return Mark(alert.opened_at, Shape.ALARM, tone, alert_label(alert), says(alert), link("alert", alert.pk))


@hooks.event_kinds.implement
def alerts_opened() -> EventKind:
    label = gettext_lazy("Alerts")
    columns = ("kind", "subject", "severity", "facts", "value", "opened_at")
    return EventKind(
        "alert", label, "alerts.view_alert", Alert, Shape.ALARM, "warn", "opened_at", columns, _alerts, _alert
    )
