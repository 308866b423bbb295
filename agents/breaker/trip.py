"""Makes a trip of what is interrupted now: the setting off, and its group, in one transaction.

Rows are locked in the order group, setting, activation, runs, as everybody does who switches settings. On
SQLite the transaction itself is the lock (IMMEDIATE)."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from agents import hooks
from agents.activations.end import end_activations
from agents.activations.queries import interrupted_now
from agents.activations.switch import reopen_trip, switch_off
from agents.breaker.rules import ALONE_AFTER, Other, Quorum, QuorumFacts, decide_quorum, live
from agents.groups.group import disable_group
from agents.isolation import isolated
from agents.liveness import heard_for
from agents.models import (
    Activation,
    ActivationState,
    BreakerTrip,
    BreakReason,
    Duty,
    Interruption,
    LaunchSetting,
    OfferedAgent,
    Run,
    RunPhase,
    ScheduledGroup,
    Server,
    ServerStop,
    Spread,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import FAILURES_IN_A_ROW, OF_MEMBER, SAME_TYPE_IN_A_ROW, TRIAL_FAILED
from console.reasons import Reason
from contract.breaker import Counts, trips

log = structlog.get_logger(__name__)

# -- facts for the rule (`agents.breaker.rules`) -------------------------------------------------------------


def others_of(activation: Activation, given_up_by: Collection[int]) -> list[Other]:
    """The servers of the pool, and those that had a run of this activation, without these (primary keys), by
    name."""
    setting = activation.setting
    pool = set(setting.pool.servers.values_list("pk", flat=True))
    runs = (
        Run.objects.filter(activation=activation.pk)
        .order_by()
        .values_list("server_id", "wanted", "closed_at")
    )
    had = {server for server, _wanted, _closed_at in runs}
    running = {server for server, wanted, closed_at in runs if wanted and closed_at is None}
    offered = OfferedAgent.objects.filter(name=setting.agent, kind=setting.kind).order_by()
    offering = set(offered.values_list("server_id", flat=True))
    stopped = dict(ServerStop.objects.filter(setting=setting).order_by().values_list("server", "since"))
    servers = Server.objects.filter(pk__in=(pool | had) - set(given_up_by)).order_by("name")
    return [
        Other(
            name=server.name,
            seen_at=server.last_seen_at,
            in_pool=server.pk in pool,
            offers=server.pk in offering,
            runs=server.pk in running,
            off_duty=server.duty != Duty.ACTIVE or server.pk in stopped,
            duty_since=_off_duty_since(server, stopped.get(server.pk)),
        )
        for server in servers
    ]


def _off_duty_since(server: Server, stopped_at: datetime | None) -> datetime | None:
    """Returns since when nothing could begin there: cordoned, or a person stopped the setting there."""
    duty_at = server.duty_since if server.duty != Duty.ACTIVE else None
    return min((at for at in (duty_at, stopped_at) if at is not None), default=None)


def counted_runs(activation: Activation, runs: list[Run]) -> list[Run]:
    """Returns those of its interrupted runs that the quorum counts. Of a MANY setting those on servers where
    a person stopped it are left out: it is not wanted there, so they say nothing of servers that go on."""
    if activation.setting.spread != Spread.MANY or activation.trial:
        return runs
    stops = ServerStop.objects.filter(setting=activation.setting_id)
    stopped = set(stops.values_list("server", flat=True)) if runs else set()
    return [run for run in runs if run.server_id not in stopped]


def interrupted_at(runs: Collection[Run]) -> datetime | None:
    """Returns when the first of these interrupted runs was: as its record came, else as it was closed. None:
    not known yet."""
    values = dict(
        Interruption.objects.filter(run__in=runs).order_by("-received_at").values_list("run", "received_at")
    )
    known = [at for run in runs if (at := values.get(run.pk, run.closed_at)) is not None]
    return min(known, default=None)


Effect = dict[str, str]


def evaluate_trip(activation_id: UUID, now: datetime) -> BreakerTrip | None:
    """The trip, if what is interrupted in this activation makes one and nobody else was first.

    Called when a run was interrupted, resumed or lost, after that is committed, and every few seconds: a kill
    before the commit here is made good by the next call; after it, the desired state says what stops, and
    each notice is a row that waits to be sent.
    """
    activation = Activation.objects.select_related("setting__pool").filter(pk=activation_id).first()
    if activation is None or not _counts(activation, activation.setting):
        return None
    # Looked without locks first: mostly one of several servers is interrupted and the others go on.
    if not quorum_of(activation, now).trips:
        return None
    with transaction.atomic():
        trip = _trip(activation, now)
    if trip is not None:
        end_activations(now)
    return trip


def evaluate_open(now: datetime) -> int:
    """Returns how many tripped of all that have an interrupted run: time alone makes a quorum when the others
    went silent."""
    # Asked apart: joined, SQLite begins with every activation that ever was.
    going_on = list(
        Activation.objects.filter(state__in=OPEN_ACTIVATIONS).order_by().values_list("pk", flat=True)
    )
    interrupted = Run.objects.filter(activation__in=going_on, state=RunPhase.INTERRUPTED).order_by()
    found = list(interrupted.values_list("activation", flat=True).distinct())
    tripped = 0
    for pk in found:
        with isolated("trips", activation=pk):
            tripped += evaluate_trip(pk, now) is not None
    return tripped


def quorum_of(activation: Activation, now: datetime) -> Quorum:
    """Returns how it stands with an activation, also for pages that explain why nothing was switched off."""
    setting = activation.setting
    given_up = interrupted_now(activation.pk)
    runs = counted_runs(activation, given_up)
    interrupted = tuple(run.server.name for run in runs)
    others = others_of(activation, [run.server_id for run in given_up])
    return decide_quorum(
        QuorumFacts(
            many=setting.spread == Spread.MANY,
            trial=_is_trial(activation, runs),
            interrupted=interrupted,
            live=live(others, interrupted_at(runs), now),
            heard=heard_for(ALONE_AFTER, now) or not others,
        )
    )


def _is_trial(activation: Activation, runs: list[Run]) -> bool:
    """A run that gave up for another reason had its first success: the MA only has not heard of it yet."""
    if not activation.trial:
        return False
    return not Interruption.objects.filter(run__in=runs).exclude(reason=BreakReason.TRIAL).exists()


def _trip(seen: Activation, now: datetime) -> BreakerTrip | None:
    """Evaluates again with the locks held: of two that come here at once the second finds it off."""
    group = _locked_group(seen.setting)
    setting = LaunchSetting.objects.select_for_update(no_key=True).get(pk=seen.setting_id)
    activation = Activation.objects.select_for_update(no_key=True).get(pk=seen.pk)
    if not _counts(activation, setting):
        return None
    activation.setting = setting
    quorum = quorum_of(activation, now)
    if not quorum.trips:
        return None
    runs = counted_runs(activation, interrupted_now(activation.pk))
    reason, exception_type = _cause(activation, runs)
    why = _why(reason, exception_type, quorum)
    effects = _switch_off(setting, group, why, now)
    trip = reopen_trip(setting, activation) if activation.trial else None
    if trip is None:
        trip = BreakerTrip.objects.create(
            setting=setting, activation=activation, group=group, reason=reason, exception_type=exception_type,
            quorum=quorum.as_json(), at=now,
        )  # fmt: skip
    effects += [effect for done in hooks.breaker_tripped(trip, now) for effect in done]
    BreakerTrip.objects.filter(pk=trip.pk).update(effects=[*trip.effects, *effects])
    trip.refresh_from_db()
    Interruption.objects.filter(run__in=runs, trip=None).update(trip=trip)
    log.warning("breaker tripped", setting=setting.key, trip=trip.pk, reason=reason, quorum=quorum.as_json())
    return trip


def _counts(activation: Activation, setting: LaunchSetting) -> bool:
    """An activation of before the setting was enabled, which only waits for its last records, trips
    nothing."""
    return (
        setting.enabled and activation.state in OPEN_ACTIVATIONS and activation.enabling == setting.enablings
    )


def _locked_group(setting: LaunchSetting) -> ScheduledGroup | None:
    """Its row is the gate for everything that is done with members: it is locked before any of them."""
    found = ScheduledGroup.objects.filter(members__setting=setting).values_list("pk", flat=True).first()
    if found is None:
        return None
    return ScheduledGroup.objects.select_for_update(no_key=True).filter(pk=found).first()


def _switch_off(
    setting: LaunchSetting, group: ScheduledGroup | None, why: Reason, now: datetime
) -> list[Effect]:
    """Returns what was done, in order. With a group all its members."""
    wanted = Run.objects.filter(activation__setting=setting, wanted=True).order_by("server__name")
    servers = list(wanted.values_list("server__name", flat=True))
    members = LaunchSetting.objects.filter(membership__group=group, enabled=True).exclude(pk=setting.pk)
    names = list(members.order_by("membership__position").values_list("key", flat=True)) if group else []
    whole = group is not None and disable_group(
        group, None, OF_MEMBER(key=setting.key, why=why), now, tripped=setting
    )
    if not whole:
        switch_off(setting, None, why, now, ended_as=ActivationState.INTERRUPTED)
    effects = [{"what": "setting_disabled", "name": setting.key}]
    effects += [{"what": "run_stopped", "name": name} for name in servers]
    if group is not None and whole:
        effects.append({"what": "group_disabled", "name": group.name})
        effects += [{"what": "member_disabled", "name": name} for name in names]
    return effects


def _cause(activation: Activation, runs: list[Run]) -> tuple[str, str]:
    """(reason, exception type): as the newest interruption says, else from what the heartbeats told of the
    runs."""
    said = Interruption.objects.filter(run__in=runs).order_by("-received_at").first()
    if said is not None:
        return said.reason, said.same_type
    run = max(runs, key=lambda run: run.any_count)
    if activation.trial:
        return BreakReason.TRIAL, run.same_type
    tripped = trips(Counts(run.same_type, run.same_count, run.any_count), activation.setting.breaker_m)
    return tripped.value if tripped else BreakReason.ANY_TYPE, run.same_type


def _why(reason: str, exception_type: str, quorum: Quorum) -> Reason:
    """Returns the reason as it is stored with setting, activation and history."""
    kinds = {
        BreakReason.SAME_TYPE: SAME_TYPE_IN_A_ROW,
        BreakReason.ANY_TYPE: FAILURES_IN_A_ROW,
        BreakReason.TRIAL: TRIAL_FAILED,
    }
    return kinds[BreakReason(reason)](type=exception_type, servers=list(quorum.interrupted))
