"""Describes what people do with an alert: snooze it, close it. Both are kept with their name and their
reason."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from alerts import text
from alerts.models import LIVE_ALERTS, Alert, AlertState
from alerts.recording import add_transition, state_columns, state_of
from alerts.rules import AlertStep, State, closed_by_person, snoozed
from alerts.sources import kind_of
from console.operations.inputs import REASON, Until
from console.operations.operation import Act, Done, ModelPermission, Operation, Question, Resource
from console.operations.refusals import Refused
from console.ui.page import Text

LONGEST_SNOOZE = timedelta(days=92)

ALERTS = Resource(
    name="alert",
    rows=lambda: Alert.objects.exclude(state=AlertState.CALM),
    key="pk",
    route="alerts/<int:pk>/",
    view="alerts.view_alert",
    list_page="alerts",
    title=_("Alerts"),
    setting_key=lambda alert: alert.setting.key if alert.setting else "",
    label=text.alert_label,
)


class _HandlesAlert(Operation[Alert]):
    on = ALERTS
    permission = ModelPermission("alerts.can_handle_alerts", _("Can snooze and close alerts"))
    asks: ClassVar[Text]
    explained: ClassVar[Text]

    def offered(self, alert: Alert) -> bool:
        return alert.state in LIVE_ALERTS

    def refusal(self, alert: Alert, now: datetime) -> Refused | None:
        return None if alert.state in LIVE_ALERTS else _closed_already()

    def question(self, alert: Alert, by: Any, **named: Any) -> Question:
        return Question(self.asks, [text.says(alert), self.explained])


class SnoozeAlert(_HandlesAlert):
    """Sends no reminders until `until`. Notifies again if the alert is still open then."""

    code, label, icon = "alert.snooze", _("Snooze"), "pause"
    inputs = {"until": Until(("1h", "4h", "1d"), required=True), "reason": REASON}
    asks = _("Snooze this alert?")
    explained = _(
        "The alert stays in the list without reminders. If the cause remains when the snooze "
        "ends, recipients are notified again."
    )

    @transaction.atomic
    def run(self, alert: Alert, act: Act, *, until: datetime, **inputs: Any) -> Done:
        snoozed = snooze(alert, until, act.by, act.reason, act.now)
        act.record()
        return Done(_("Snoozed: no reminders until the chosen time."), snoozed)


class CloseAlert(_HandlesAlert):
    """Closes the alert; it stays closed while its cause lasts."""

    code, label, icon, quiet, inputs = "alert.close", _("Close"), "ok", True, {"reason": REASON}
    asks = _("Close this alert?")
    explained = _(
        "The alert stays closed even if its cause persists. If the cause clears and returns, "
        "a new alert opens."
    )

    @transaction.atomic
    def run(self, alert: Alert, act: Act, **inputs: Any) -> Done:
        closed = close(alert, act.by, act.reason, act.now)
        act.record()
        return Done(_("Closed."), closed)


def snooze(alert: Alert, until: datetime, by: Any, reason: str, now: datetime) -> Alert:
    """No reminders until then; also for an alert that is snoozed already. Raises Refused."""
    if until <= now:
        raise Refused(
            "until_is_past",
            gettext("The end time is invalid: it is in the past."),
            gettext("Choose a later time."),
        )
    if until > now + LONGEST_SNOOZE:
        raise Refused(
            "until_is_too_far",
            gettext("Not snoozed: the period is too long."),
            gettext("Choose an end time no more than three months from now."),
        )
    return _change(
        alert, lambda state: snoozed(state, until), AlertStep.SNOOZED, by, reason, now, until=until
    )


def close(alert: Alert, by: Any, reason: str, now: datetime) -> Alert:
    """It stays closed until its cause has gone once; then a new one opens when it comes back. Raises
    Refused."""
    return _change(alert, lambda state: closed_by_person(state, now), AlertStep.CLOSED, by, reason, now)


def _change(
    alert: Alert,
    change: Callable[[State], State],
    step: AlertStep,
    by: Any,
    reason: str,
    now: datetime,
    *,
    until: datetime | None = None,
) -> Alert:
    """Changes the locked row; an evaluation that decided on it at the same moment finds another revision and
    writes nothing."""
    with transaction.atomic():
        current = Alert.objects.select_for_update(no_key=True).get(pk=alert.pk)
        if current.state not in LIVE_ALERTS:
            raise _closed_already()
        values = state_columns(change(state_of(current)))
        Alert.objects.filter(pk=current.pk).update(revision=F("revision") + 1, **values)
        current.refresh_from_db()
        add_transition(current, step, kind_of(current.kind), now, by=by, reason=reason, until=until)
    return current


def _closed_already() -> Refused:
    return Refused(
        "alert_is_closed", gettext("The alert is already closed."), gettext("No action is needed.")
    )
