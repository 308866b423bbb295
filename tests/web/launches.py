"""Rows of launch control in the busy house: a trip, a server that gave up alone, a group with its passes,
duties."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from agents.models import (
    Activation,
    ActivationState,
    BreakerTrip,
    Destination,
    Duty,
    Ending,
    GroupActivation,
    GroupActivationState,
    GroupMember,
    Interruption,
    LaunchSetting,
    OfferedAgent,
    Pool,
    ProvisionState,
    Run,
    RunPhase,
    Schedule,
    ScheduledGroup,
    Trigger,
    Window,
)
from agents.reasons import MEMBER_ENDED, NOT_ENDED, SAME_TYPE_IN_A_ROW
from alerts.models import Notice, NoticeState

if TYPE_CHECKING:
    from tests.web.factories import World

GROUP = "nightly"
TRIPPED = "returns"


@dataclass
class Launches:
    group: ScheduledGroup
    trip: BreakerTrip
    passes: list[GroupActivation] = field(default_factory=list)


def make_launches(world: "World") -> Launches:
    _cordon(world)
    _gives_up_alone(world)
    trip = _trip(world)
    group, passes = _group(world)
    return Launches(group, trip, passes)


def make_setting(world: "World", key: str, agent: str, **values: object) -> LaunchSetting:
    """Ready, and offered by every server."""
    for server in world.servers.values():
        OfferedAgent.objects.get_or_create(
            server=server, name=agent, defaults={"kind": str(values.get("kind", "message"))}
        )
    pool = Pool.objects.get(name="main")
    setting = LaunchSetting.objects.create(
        key=key, agent=agent, pool=pool, provision_state=ProvisionState.READY, provisioned_hash="h",
        wanted_hash="h",
        **{"state_since": world.now - timedelta(hours=4), **values},
    )  # fmt: skip
    world.settings[key] = setting
    return setting


def _cordon(world: "World") -> None:
    server = world.servers["srv-3"]
    server.duty, server.duty_reason = Duty.CORDONED, "new disk on Friday"
    server.duty_since, server.duty_by = world.now - timedelta(hours=3), world.people["operator"]
    server.duty_until = world.now + timedelta(hours=5)
    server.save()


def _gives_up_alone(world: "World") -> None:
    """orders-export on srv-3: one of the two servers that it takes."""
    run = world.runs["orders-export", "srv-3"]
    run.state, run.wanted, run.closed_at, run.same_count = RunPhase.INTERRUPTED, False, world.now, 3
    run.save()
    _interruption(world, run, number=1)


def _interruption(world: "World", run: Run, number: int, **values: object) -> Interruption:
    at = world.now - timedelta(minutes=9)
    defaults = {
        "effective": True, "reason": "same_type", "limit_m": 10, "same_type": "KeyError", "same_count": 3,
        "any_count": 4, "occurred_at": at, "received_at": at, "epoch": run.epoch,
    }  # fmt: skip
    return Interruption.objects.create(
        id=UUID(int=9000 + number), setting=run.activation.setting, run=run, server=run.server,
        activation_uuid=run.activation_id, **{**defaults, **values},
    )  # fmt: skip


def _trip(world: "World") -> BreakerTrip:
    at = world.now - timedelta(minutes=9)
    destination = Destination.objects.create(name="shop.returns", max_attempts=5)
    setting = make_setting(
        world, TRIPPED, "demo.returns", destination=destination, spread="MANY", enabled=False, state_since=at,
        disabled_reason=SAME_TYPE_IN_A_ROW(type="IndexError", servers=["srv-2", "srv-3"]),
    )  # fmt: skip
    activation = Activation.objects.create(
        setting=setting, state=ActivationState.INTERRUPTED, started_at=at - timedelta(hours=2), ended_at=at,
        started_by=world.people["operator"], last_epoch=3,
    )  # fmt: skip
    world.activations[TRIPPED] = activation
    runs = [
        Run.objects.create(
            activation=activation,
            server=world.servers[name],
            epoch=epoch,
            state=state,
            wanted=False,
            closed_at=at,
            same_type="IndexError",
            same_count=same,
            any_count=same,
            handled=400,
            failed=same,
            reported_at=at,
        )
        for epoch, (name, state, same) in enumerate(
            [
                ("srv-1", RunPhase.FINISHED, 1),
                ("srv-2", RunPhase.INTERRUPTED, 3),
                ("srv-3", RunPhase.INTERRUPTED, 3),
            ],
            start=1,
        )
    ]
    for run in runs:
        world.runs[TRIPPED, run.server.name] = run
    trip = BreakerTrip.objects.create(
        setting=setting, activation=activation, reason="same_type", exception_type="IndexError", at=at,
        quorum={"needed": 2, "interrupted": ["srv-2", "srv-3"], "live": ["srv-1"], "rule": "two_servers"},
        effects=[
            {"what": "setting_disabled", "name": TRIPPED}, {"what": "run_stopped", "name": "srv-1"},
            {"what": "notice", "name": "oncall@shop.example"},
        ],
    )  # fmt: skip
    for number, run in enumerate(runs[1:], start=2):
        _interruption(
            world,
            run,
            number,
            trip=trip,
            same_type="IndexError",
            occurred_at=at - timedelta(seconds=4 - number),
        )
    _interruption(world, runs[0], 5, effective=False, epoch=0, occurred_at=at + timedelta(seconds=3))
    Notice.objects.create(
        trip=trip,
        channel="email",
        address="oncall@shop.example",
        state=NoticeState.SENT,
        attempts=1,
        sent_at=at,
    )
    Notice.objects.create(
        trip=trip,
        channel="webhook",
        address="http://pager.example/hook",
        attempts=2,
        problem="503 Service Unavailable",
    )
    return trip


def _group(world: "World") -> tuple[ScheduledGroup, list[GroupActivation]]:
    group = ScheduledGroup.objects.create(
        name=GROUP,
        description="After the shops close",
        enabled=True,
        state_since=world.now - timedelta(days=6),
    )
    schedule = Schedule.objects.create(group=group, crontab="30 2 * * 1-5", time_zone="Europe/Berlin")
    destination = Destination.objects.create(name="shop.night", max_attempts=5)
    members: dict[str, dict[str, object]] = {
        "night-load": {"destination": destination}, "night-sum": {"kind": "standalone"},
        "night-mail": {"destination": destination},
    }  # fmt: skip
    for position, (key, values) in enumerate(members.items(), start=1):
        setting = make_setting(world, key, f"demo.{key}", timing="DELAYED", enabled=True, **values)
        GroupMember.objects.create(group=group, setting=setting, position=position)
    keys = list(members)
    failed = GroupActivation.objects.create(
        group=group, state=GroupActivationState.FAILED, plan=keys, step=1,
        started_at=world.now - timedelta(days=1),
        ended_at=world.now - timedelta(hours=23), reason=MEMBER_ENDED(key="night-sum", state="failed"),
    )  # fmt: skip
    running = GroupActivation.objects.create(
        group=group,
        plan=keys,
        step=1,
        started_at=world.now - timedelta(minutes=6),
        started_by=world.people["operator"],
    )
    for each, states in (
        (failed, [ActivationState.SUCCEEDED, ActivationState.FAILED]),
        (running, [ActivationState.SUCCEEDED, ActivationState.RUNNING]),
    ):
        for place, state in enumerate(states):
            begun = each.started_at + timedelta(minutes=2 * place)
            ended = None if state == ActivationState.RUNNING else begun + timedelta(minutes=2)
            Activation.objects.create(
                setting=world.settings[keys[place]], state=state, trigger=Trigger.GROUP,
                group_activation=each,
                started_at=begun, ended_at=ended, ending=Ending.DRAINED if place == 0 else "",
            )  # fmt: skip
    Window.objects.create(
        schedule=schedule,
        due_at=failed.started_at,
        result="started",
        group_activation=failed,
        decided_at=world.now,
    )
    Window.objects.create(
        schedule=schedule, due_at=world.now - timedelta(days=2), result="skipped", decided_at=world.now,
        reason=NOT_ENDED(),
    )  # fmt: skip
    return group, [failed, running]
