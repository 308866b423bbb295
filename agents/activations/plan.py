"""Turns an open activation into wanted runs: on enabling, when a server appears, and every few seconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from agents import reasons
from agents.activations.placement_facts import PlanningFacts, read_facts
from agents.activations.rules.placement import Blocker, Plan, plan_any, plan_many
from agents.isolation import isolated
from agents.liveness import poll_after_commit
from agents.models import Activation, ActivationState, Run, RunPhase, Server, ServerStop, Spread
from agents.models.activation import OPEN_ACTIVATIONS
from agents.state_history import note
from console.reasons import NO_REASON

WAITING_FOR = {
    Blocker.NO_SERVER: reasons.NO_SERVER,
    Blocker.NONE_ALIVE: reasons.NONE_ALIVE,
    Blocker.NONE_OFFERS: reasons.NONE_OFFERS,
    Blocker.CORDONED: reasons.ALL_CORDONED,
    Blocker.DISOBEYING: reasons.NONE_OBEYS,
    Blocker.STOPPING: reasons.RUN_BEFORE_STOPS,
    Blocker.STOPPED_THERE: reasons.STOPPED_THERE,
}


def plan_runs(activation_id: UUID, now: datetime) -> bool:
    """Returns whether runs were changed. Several may plan at once: the conditional update of `last_epoch`
    lets one win."""
    activation = _plannable().filter(pk=activation_id).first()
    if activation is None:
        return False
    plan = _plan(activation, read_facts([activation], now))
    if not plan.changes:
        _say_what_it_waits_for(activation, plan.waiting)
        return False
    return _carry_out(activation, plan, now)


def plan_open_activations(now: datetime, server: Server | None = None) -> int:
    """Plans every open activation, or those whose pool holds `server`; answers how many changed. One that
    cannot be planned stops no other.

    All are looked at with facts that are read once. What is to change is then planned by itself with new
    ones: each start is load that the next choice goes by."""
    # Asked apart: joined with the settings, SQLite begins with every activation that ever was.
    going_on = Activation.objects.filter(state__in=OPEN_ACTIVATIONS).order_by().values_list("pk", flat=True)
    activations = _plannable().filter(pk__in=list(going_on))
    if server is not None:
        activations = activations.filter(setting__pool__servers=server)
    looked_at = list(activations.order_by("-started_at", "-id"))
    facts = read_facts(looked_at, now)
    changing = []
    for activation in looked_at:
        with _left_to_itself(activation):
            plan = _plan(activation, facts)
            if plan.changes:
                changing.append(activation)
            else:
                _say_what_it_waits_for(activation, plan.waiting)
    changed = 0
    for activation in changing:
        with _left_to_itself(activation):
            changed += plan_runs(activation.pk, now)
    return changed


@contextmanager
def _left_to_itself(activation: Activation) -> Iterator[None]:
    """Keeps what cannot be planned from stopping the others; its pages say why."""
    planned = False
    with isolated("planning", activation=activation.pk):
        yield
        planned = True
    if not planned and activation.reason != reasons.NOT_PLANNED():
        going_on = Activation.objects.filter(pk=activation.pk, state__in=OPEN_ACTIVATIONS)
        going_on.update(reason=reasons.NOT_PLANNED())


def plan_what_follows(closed: UUID, now: datetime) -> None:
    """A run of this activation was closed: what waited for it in the same setting may begin."""
    setting = Activation.objects.filter(pk=closed).values("setting")
    open_ones = Activation.objects.filter(setting__in=setting, state__in=OPEN_ACTIVATIONS, ending="")
    for pk in open_ones.filter(setting__enabled=True).values_list("pk", flat=True):
        plan_runs(pk, now)


def _plannable() -> QuerySet[Activation]:
    """Runs of one that is `ending` only have to be closed."""
    open_ones = Activation.objects.filter(state__in=OPEN_ACTIVATIONS, ending="", setting__enabled=True)
    return open_ones.select_related("setting__pool")


def _plan(activation: Activation, facts: PlanningFacts) -> Plan:
    setting = activation.setting
    candidates, current = facts.candidates(setting), facts.newest.get(activation.pk, [])
    # While one message is tried first, one server has the run and nobody else begins.
    if setting.spread == Spread.MANY and not activation.trial:
        return plan_many(candidates, current)
    if setting.takes_messages:
        return plan_any(candidates, current)
    fenced, leaving = setting.spread == Spread.MANY, setting.pk in facts.leaving
    return plan_any(candidates, current, fenced=fenced, leaving=leaving)


@transaction.atomic
def _carry_out(activation: Activation, plan: Plan, now: datetime) -> bool:
    # No join in here: it would become a subselect, which PostgreSQL does not look at again after waiting for
    # the row. A disabled setting has no open activation.
    unchanged = Activation.objects.filter(
        pk=activation.pk,
        last_epoch=activation.last_epoch,
        state__in=OPEN_ACTIVATIONS,
        ending="",
        trial=activation.trial,
    )
    # Withdrawing alone takes a new epoch too, so that two planners never both act on what they saw.
    epoch = activation.last_epoch + max(1, len(plan.start))
    values: dict[str, Any] = {"last_epoch": epoch}
    if plan.start:
        values |= {"state": ActivationState.RUNNING, "reason": NO_REASON}
    if unchanged.update(**values) != 1:
        return False
    _withdraw(activation, plan, now)
    _start(activation, plan, now)
    touched = Server.objects.filter(Q(pk__in=plan.start) | Q(runs__in=plan.withdraw))
    poll_after_commit(touched.values_list("name", flat=True))
    return True


def _withdraw(activation: Activation, plan: Plan, now: datetime) -> None:
    # A run that was closed meanwhile stays as it is.
    Run.objects.filter(pk__in=plan.withdraw, closed_at=None).update(wanted=False)
    lost = Run.objects.filter(pk__in=plan.lose, closed_at=None)
    lost.update(wanted=False, state=RunPhase.LOST, connected=False, closed_at=now)
    ends = dict.fromkeys(plan.lose, ("lost", reasons.SERVER_SILENT()))
    ends |= dict.fromkeys(plan.withdraw, ("withdrawn", reasons.WITHDRAWN()))
    stops = ServerStop.objects.filter(setting=activation.setting_id, server__runs__in=plan.withdraw)
    stopped = set(stops.values_list("server", flat=True)) if plan.withdraw else set()
    for run in Run.objects.filter(pk__in=ends).select_related("server"):
        new, reason = ends[run.pk]
        if run.server_id in stopped and new == "withdrawn":
            reason = reasons.STOPPED_HERE()
        note(
            activation.setting,
            "run",
            "wanted",
            new,
            now=now,
            reason=reason,
            activation=activation,
            server=run.server,
        )


def _start(activation: Activation, plan: Plan, now: datetime) -> None:
    for offset, server in enumerate(plan.start, start=1):
        run = Run.objects.create(
            activation=activation, server_id=server, epoch=activation.last_epoch + offset, created_at=now
        )
        note(
            activation.setting,
            "run",
            "",
            "wanted",
            now=now,
            reason=reasons.EPOCH(n=run.epoch),
            activation=activation,
            server=run.server,
        )


def _say_what_it_waits_for(activation: Activation, waiting: Blocker) -> None:
    setting = activation.setting
    facts = {"pool": setting.pool.name, "agent": setting.agent}
    reason = WAITING_FOR[waiting](**facts) if waiting.value else NO_REASON
    if reason != activation.reason:
        Activation.objects.filter(pk=activation.pk, state__in=OPEN_ACTIVATIONS).update(reason=reason)
