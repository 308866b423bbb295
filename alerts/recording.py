"""Writes down what was decided: the alert, the transition and a notice per address, in one transaction.

Killed before the commit nothing was decided, and the next look decides the same again. Killed after it each
notice is a row that waits to be sent. Of two that decide at once one writes: a new alert by a unique
constraint, a known one by its revision.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Any

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F

from alerts.kinds import AlertKind, Observation
from alerts.models import Alert, AlertTransition
from alerts.notices.recipients import notify, withdraw
from alerts.rules import AlertDecision, AlertStep, Phase, State

log = structlog.get_logger(__name__)


def state_of(alert: Alert | None) -> State:
    if alert is None:
        return State()
    return State(
        phase=Phase(alert.state),
        above_since=alert.above_since,
        below_since=alert.below_since,
        closed_at=alert.closed_at,
        by_hand=alert.by_hand,
        held=alert.held,
        snoozed_until=alert.snoozed_until,
        repeats=alert.repeats,
        repeat_at=alert.repeat_at,
    )


def record(
    alert: Alert | None, seen: Observation, decision: AlertDecision, kind: AlertKind, now: datetime
) -> Alert | None:
    """The alert as it is now; None where somebody else was first, or there is none any more."""
    state = decision.state
    if state.phase == Phase.CALM and state.above_since is None:
        if alert is not None:
            Alert.objects.filter(pk=alert.pk, revision=alert.revision).delete()
        return None
    values = {**state_columns(state), **_found(seen, alert)}
    if alert is not None and not decision.is_new:
        return _changed(alert, seen, decision, values, kind, now)
    return _created(seen, decision, values, kind, now)


def state_columns(state: State) -> dict[str, Any]:
    values = asdict(state)
    return {"state": values.pop("phase").value, **values}


def _found(seen: Observation, alert: Alert | None) -> dict[str, Any]:
    """What is not known now stays as it was, also the texts of a cause that has gone."""
    if alert is not None and not seen.facts:
        return {}
    known = {} if seen.value is None else {"value": seen.value}
    return {"setting_id": seen.setting, "server_id": seen.server, "facts": dict(seen.facts), **known}


def _created(
    seen: Observation, decision: AlertDecision, values: dict[str, Any], kind: AlertKind, now: datetime
) -> Alert | None:
    opened = {"opened_at": now} if decision.step is AlertStep.OPENED else {}
    try:
        with transaction.atomic():
            alert = Alert.objects.create(
                kind=kind.name, subject=seen.subject, severity=kind.severity, **values, **opened
            )
            alert.pools.set(seen.pools)
            if decision.step is not None:
                add_transition(alert, decision.step, kind, now)
    except IntegrityError:
        # Somebody else saw it in the same moment, or what it is about was deleted: the next look sees which.
        log.info("alert not opened", kind=kind.name, subject=seen.subject)
        return None
    return alert


def _changed(
    alert: Alert,
    seen: Observation,
    decision: AlertDecision,
    values: dict[str, Any],
    kind: AlertKind,
    now: datetime,
) -> Alert | None:
    if decision.step is AlertStep.OPENED:
        values["opened_at"] = now
    if decision.step is None and all(getattr(alert, name) == value for name, value in values.items()):
        return alert
    with transaction.atomic():
        unchanged = Alert.objects.filter(pk=alert.pk, revision=alert.revision)
        if unchanged.update(revision=F("revision") + 1, **values) != 1:
            return None
        alert.refresh_from_db()
        if seen.facts and decision.step in (AlertStep.OPENED, AlertStep.REOPENED, AlertStep.REPEATED):
            alert.pools.set(seen.pools)
        if decision.step is not None:
            add_transition(alert, decision.step, kind, now)
    return alert


def add_transition(
    alert: Alert,
    step: AlertStep,
    kind: AlertKind | None,
    now: datetime,
    *,
    by: Any = None,
    reason: str = "",
    until: datetime | None = None,
) -> AlertTransition:
    """Part of the transaction that changes the alert. `kind` None: no app knows it any more, nobody is
    told."""
    row = AlertTransition.objects.create(
        alert=alert, step=step.value, value=alert.value, at=now, by=by, reason=reason, until=until
    )
    if step is AlertStep.REOPENED:
        withdraw(alert)
    if kind is not None and step in kind.notified_steps:
        notify(row, now)
    log.warning(
        "alert", kind=alert.kind, subject=alert.subject, step=step.value, alert=alert.pk, value=alert.value
    )
    return row
