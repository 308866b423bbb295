"""Describes when an activation is over: all its runs are closed and all their records are here, or they are
lost.

The end is looked for when a run is closed and every few seconds. Its state and its instant are one
conditional UPDATE: of several that see the end one makes it. Killed before the commit, the next look makes
it; killed after the commit and before others were told, `agents.tend` heals what should have followed.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When

from agents import hooks
from agents.activations.rules.outcome import RunFact, final_state, finished_well, own_ending
from agents.isolation import isolated
from agents.liveness import lease_over_before, poll_after_commit, silence_counts
from agents.models import (
    Activation,
    ActivationState,
    Ending,
    Run,
    RunPhase,
    Server,
    SettingKind,
    Spread,
    Timing,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.models.server import lost_before
from agents.reasons import AGENT_FAILED, ENDED, MESSAGES_FAILED, RUN_FAILED
from agents.state_history import note
from console.audit.log import Record, no_record
from console.reasons import NO_REASON, Reason


def end_activations(now: datetime, among: Collection[UUID] | None = None) -> int:
    """Ends those that are over, of all or of these ids. Answers how many."""
    # Of a million rows few have no end. SQLite finds them by the index of these only where no order is asked
    # for.
    unended = Activation.objects.filter(ended_at=None).order_by()
    if among is not None:
        unended = unended.filter(pk__in=among)
    for activation in list(_run_out(unended)):
        with isolated("own endings", activation=activation.pk):
            _note_own_ending(activation, now)
    over = unended.filter(~Q(state__in=OPEN_ACTIVATIONS) | ~Q(ending=""), ~Exists(_incomplete_runs()))
    ended = 0
    for pk in list(over.values_list("pk", flat=True)):
        with isolated("endings", activation=pk):
            ended += _end(pk, now)
    return ended


def set_ending(
    activation: Activation,
    ending: Ending,
    now: datetime,
    *,
    by: Any = None,
    reason: Reason = NO_REASON,
    record: Record = no_record,
) -> bool:
    """Returns whether it had none: from now on nothing of it is wanted. `reason`: more than what `ending`
    says."""
    with transaction.atomic():
        going_on = Activation.objects.filter(pk=activation.pk, state__in=OPEN_ACTIVATIONS, ending="")
        if going_on.update(ending=ending, ending_at=now, reason=reason or ENDED(ending=ending.value)) != 1:
            return False
        note(
            activation.setting, "ending", activation.state, ending.value, now=now, reason=reason, by=by,
            activation=activation,
        )  # fmt: skip
        # A planner that was first has made its runs by now; one that comes later changes nothing.
        runs = Run.objects.filter(activation=activation.pk, wanted=True, closed_at=None)
        poll_after_commit(list(runs.values_list("server__name", flat=True)))
        runs.update(wanted=False)
        record()
    return True


def _run_out(unended: QuerySet[Activation]) -> QuerySet[Activation]:
    """Those of which a run ended by itself."""
    closed = Run.objects.filter(activation=OuterRef("pk"), wanted=True, closed_at__isnull=False)
    may_end = Q(setting__timing=Timing.DELAYED) | Q(setting__kind=SettingKind.STANDALONE)
    candidates = unended.filter(may_end, Exists(closed), state=ActivationState.RUNNING, ending="")
    # In this order by the index of states.
    return candidates.select_related("setting").order_by("-started_at", "-id")


def _note_own_ending(activation: Activation, now: datetime) -> None:
    setting, runs = activation.setting, _facts(activation.pk, now)
    if (ending := own_ending(setting.kind, setting.timing, runs)) is not None:
        failed = any(run.state == RunPhase.FAILED for run in runs)
        why = RUN_FAILED() if setting.takes_messages else AGENT_FAILED()
        set_ending(activation, ending, now, reason=why if failed else NO_REASON)


def _facts(activation: UUID, now: datetime) -> list[RunFact]:
    counts, silent_since = silence_counts(now), lost_before(now)
    runs = Run.objects.filter(activation=activation).values_list(
        "state", "wanted", "closed_at", "server__last_seen_at"
    )
    return [
        RunFact(state, wanted, closed_at is not None, counts and (seen_at is None or seen_at <= silent_since))
        for state, wanted, closed_at, seen_at in runs
    ]


def _incomplete_runs() -> QuerySet[Run]:
    """Returns runs that are open, or closed with records still to come."""
    missing = Q(closing_records__gt=F("stored_records")) & ~Q(state=RunPhase.LOST)
    return Run.objects.filter(Q(closed_at=None) | missing, activation=OuterRef("pk"))


@transaction.atomic
def _end(pk: UUID, now: datetime) -> bool:
    """The lock keeps records that come at this instant apart: before the end, or late."""
    activation = Activation.objects.select_for_update(no_key=True).get(pk=pk)
    if activation.ended_at is not None or _has_incomplete_runs(pk):
        return False
    before, runs = activation.state, _facts(pk, now)
    raised = standalone_raised(activation)
    # What is with an error anyhow, and has its state, needs no count of what may be a million protocols.
    spoilt = activation.well is False or not finished_well(
        activation.ending, runs, raised=raised, unresolved=0
    )
    left = sum(hooks.unresolved_messages(activation)) if before in OPEN_ACTIVATIONS or not spoilt else 0
    after = final_state(before, activation.ending, runs, left if before in OPEN_ACTIVATIONS else 0)
    unchanged = Activation.objects.filter(pk=pk, ended_at=None, state=before, ending=activation.ending)
    if unchanged.update(state=after, ended_at=now, well=not spoilt and not left) != 1:
        return False
    reason = MESSAGES_FAILED(n=left) if left and before in OPEN_ACTIVATIONS else NO_REASON
    note(activation.setting, "activation", before, after.value, now=now, reason=reason, activation=activation)
    activation.state, activation.ended_at = after, now
    transaction.on_commit(lambda: hooks.activation_ended(activation, now), robust=True)
    return True


def standalone_raised(activation: Activation) -> bool:
    """Counts what was temporary too: there is no message that could come again."""
    if activation.setting.takes_messages:
        return False
    return Run.objects.filter(Q(failed__gt=0) | Q(temporary__gt=0), activation=activation.pk).exists()


def _has_incomplete_runs(pk: UUID) -> bool:
    return Activation.objects.filter(Exists(_incomplete_runs()), pk=pk).exists()


# -- when a run is over though its KMA did not say so --------------------------------------------------------
# The end of its activation: see `final_state`.


# A KMA sends the closing record right after the run; past this, with an empty spool, it does not have it any
# more.
CLOSING_RECORD_WITHIN = timedelta(seconds=60)
# Only a lease keeps two of them from running at once: as `leased` says of one setting.
LEASED = Q(activation__setting__kind=SettingKind.STANDALONE, activation__setting__spread=Spread.ANY)


def lose_unreachable_runs(now: datetime) -> int:
    """Unwanted runs on silent servers, or on servers that no longer know them, count as lost; so do runs of
    whose records some will never come."""
    silent = _silent(lost_before(now)) & ~LEASED | _silent(lease_over_before(now)) & LEASED
    if not silence_counts(now):
        silent = Q(pk__in=[])
    forgotten = Q(reported_at__lte=now - CLOSING_RECORD_WITHIN, server__spool_rows=0)
    over = Run.objects.filter(silent | forgotten, wanted=False, closed_at=None)
    found = list(over.values_list("pk", flat=True))
    open_still = Run.objects.filter(pk__in=found, closed_at=None)
    # What was given up stays so: its closing record is lost, not the reason why it is off there.
    state = Case(When(state=RunPhase.INTERRUPTED, then=F("state")), default=Value(RunPhase.LOST.value))
    lost = open_still.update(state=state, connected=False, in_progress=0, closed_at=now) if found else 0
    return lost + _give_up_missing_records(now)


def _silent(before: datetime) -> Q:
    return Q(server__last_seen_at__lte=before) | Q(server__last_seen_at=None)


def _give_up_missing_records(now: datetime) -> int:
    """Closed long ago, the spool is empty, and fewer records are here than the closing one says."""
    # Asked apart: joined, SQLite may begin with every run that ever was.
    going_on = list(Activation.objects.filter(ended_at=None).order_by().values_list("pk", flat=True))
    missing = Run.objects.filter(
        activation__in=going_on,
        closing_records__gt=F("stored_records"),
        closed_at__lte=now - CLOSING_RECORD_WITHIN,
        server__spool_rows=0,
    ).exclude(state=RunPhase.LOST)
    found = list(missing.order_by().values_list("pk", flat=True))
    if not found:
        return 0
    runs = Run.objects.filter(pk__in=found)
    runs.filter(state=RunPhase.INTERRUPTED).update(closing_records=F("stored_records"))
    return runs.exclude(state=RunPhase.INTERRUPTED).update(state=RunPhase.LOST)


def close_never_started(server: Server, heard: Collection[UUID], now: datetime) -> int:
    """The KMA has the present desired state, does not speak of these runs (`heard`: the activations it speaks
    of), and never said more of them than that they were to start: it never began them."""
    nothing = Q(state=RunPhase.STARTING, handled=0, failed=0, temporary=0, restarts=0, server__spool_rows=0)
    never = Run.objects.filter(nothing | Q(reported_at=None), server=server, wanted=False, closed_at=None)
    never = never.exclude(activation__in=heard)
    # Looked first: an update that changes nothing still takes SQLite's write lock, at every heartbeat.
    found = list(never.values_list("pk", flat=True))
    open_still = Run.objects.filter(pk__in=found, closed_at=None)
    return open_still.update(state=RunPhase.FINISHED, closed_at=now) if found else 0
