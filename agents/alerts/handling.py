"""What people do with an alert: snooze it, close it. Both are kept with their name and their reason."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from agents.alerts.deciding import State, Step, closed_by_person, snoozed
from agents.alerts.kinds import kind_of
from agents.alerts.recording import add_transition, fields_of, state_of
from agents.models import LIVE_ALERTS, Alert
from agents.services.switching import Refused

LONGEST_SNOOZE = timedelta(days=92)


def snooze(alert: Alert, until: datetime, by: Any, reason: str, now: datetime) -> Alert:
    """No reminders until then; also for an alert that is snoozed already. Raises Refused."""
    if until <= now:
        raise Refused("until_is_past", _("The end is in the past."), _("Choose a later instant."))
    if until > now + LONGEST_SNOOZE:
        raise Refused("until_is_too_far", _("That is too long."), _("Choose an end within three months."))
    return _change(alert, lambda state: snoozed(state, until), Step.SNOOZED, by, reason, now, until=until)


def close(alert: Alert, by: Any, reason: str, now: datetime) -> Alert:
    """It stays closed until its cause has gone once; then a new one opens when it comes back. Raises
    Refused."""
    return _change(alert, lambda state: closed_by_person(state, now), Step.CLOSED, by, reason, now)


def _change(
    alert: Alert,
    change: Callable[[State], State],
    step: Step,
    by: Any,
    reason: str,
    now: datetime,
    *,
    until: datetime | None = None,
) -> Alert:
    """With the row locked; the look that decided on it at the same moment finds another revision and writes
    nothing."""
    with transaction.atomic():
        current = Alert.objects.select_for_update(no_key=True).get(pk=alert.pk)
        if current.state not in LIVE_ALERTS:
            raise Refused("alert_is_closed", _("It is closed already."), _("Nothing is to be done."))
        values = fields_of(change(state_of(current)))
        Alert.objects.filter(pk=current.pk).update(revision=F("revision") + 1, **values)
        current.refresh_from_db()
        add_transition(current, step, kind_of(current.kind), now, by=by, reason=reason, until=until)
    return current
