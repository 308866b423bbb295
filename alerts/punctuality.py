"""How punctual scheduled settings and groups are: the facts of each, and what they mean.

Facts are read from rows, in as many questions for many as for one; what they mean is decided by pure
functions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import structlog
from django.db.models import DurationField, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery

from agents.freezes.queries import frozen_now
from agents.models import (
    Activation,
    ActivationState,
    GroupActivation,
    GroupActivationState,
    GroupMember,
    LaunchSetting,
    Schedule,
    ScheduledGroup,
    Window,
    WindowResult,
)
from agents.provisioning.subscriptions import out_of_service
from agents.reasons import STARTED_AFTER_FREEZE
from agents.schedules.rules import ON_TIME
from agents.schedules.tick import timetable_of
from console.reasons import NO_REASON, Reason

log = structlog.get_logger(__name__)

MOST = 2000
# -- what is known of one owner, and what it means -----------------------------------------------------------

# Ended well before the newest one: so many are compared, and so many are needed to say what is usual.
COMPARED = 10
LONG_NEEDS, SHORT_NEEDS = 3, 5
# A run that takes less than this longer than usual is not too long, however short it usually is.
LONG_AT_LEAST = 300.0
# What usually ends sooner than this says nothing by ending sooner still.
SHORT_AT_LEAST = 60.0
# How long a start is told that began late.
TOLD_FOR = timedelta(hours=1)
# So many scheduled times, none of which started anything, are never.
NEVER = 3
FAILED = (ActivationState.FAILED.value, ActivationState.INTERRUPTED.value, GroupActivationState.FAILED.value)


@dataclass(frozen=True, slots=True)
class Start:
    """The newest start since the owner was enabled, by whom ever. `messages` at its start; None: of a group,
    of a standalone agent, or unknown."""

    state: str
    started_at: datetime
    ended_at: datetime | None = None
    messages: int | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """The newest scheduled time that was decided since the owner was enabled."""

    due_at: datetime
    result: str
    decided_at: datetime
    reason: Reason = NO_REASON


@dataclass(frozen=True, slots=True)
class Punctuality:
    """`next_due`: the first scheduled time that is not decided, None: there is none ever. `kept`: people keep
    it from every server, or froze new starts. `lengths`: seconds of those that ended well, the latest first,
    the newest start not among them. `windows` were skipped, none `any_started`."""

    next_due: datetime | None
    kept: bool = False
    window: Decided | None = None
    start: Start | None = None
    lengths: tuple[float, ...] = ()
    windows: int = 0
    any_started: bool = False


def failed(facts: Punctuality, now: datetime) -> float:
    return float(facts.start is not None and facts.start.state in FAILED)


def skipped(facts: Punctuality, now: datetime) -> float:
    return float(facts.window is not None and facts.window.result == WindowResult.SKIPPED)


def late(facts: Punctuality, now: datetime) -> float:
    """Returns by how many seconds the newest start is late: not decided, decided late, or without a server
    still."""
    if facts.kept:
        return 0.0
    undecided = (now - facts.next_due).total_seconds() if facts.next_due else 0.0
    return max(0.0, undecided, _waiting(facts.start, now), began_late(facts.window, now))


def _waiting(start: Start | None, now: datetime) -> float:
    waits = start is not None and start.state == ActivationState.PENDING
    return (now - start.started_at).total_seconds() if start and waits else 0.0


def began_late(window: Decided | None, now: datetime) -> float:
    """What began within ON_TIME was on time; what began late is told for an hour. A freeze explains it."""
    if window is None or window.result != WindowResult.STARTED or now - window.decided_at >= TOLD_FOR:
        return 0.0
    if window.reason.code == STARTED_AFTER_FREEZE.code:
        return 0.0
    lateness = window.decided_at - window.due_at
    return lateness.total_seconds() if lateness > ON_TIME else 0.0


def long(facts: Punctuality, now: datetime) -> float:
    """Returns how many times as long as usual it has been running."""
    start, usual = facts.start, usual_seconds(facts, LONG_NEEDS)
    if start is None or start.ended_at or start.state == ActivationState.PENDING or usual is None:
        return 0.0
    seconds = (now - start.started_at).total_seconds()
    return seconds / max(usual, 1.0) if seconds >= usual + LONG_AT_LEAST else 0.0


def short(facts: Punctuality, now: datetime) -> float:
    """Returns how many times sooner than usual it ended. A queue that was empty explains that."""
    start, usual = facts.start, usual_seconds(facts, SHORT_NEEDS)
    if start is None or start.ended_at is None or start.state != ActivationState.SUCCEEDED:
        return 0.0
    if usual is None or usual < SHORT_AT_LEAST or start.messages == 0:
        return 0.0
    return usual / max((start.ended_at - start.started_at).total_seconds(), 1.0)


def never(facts: Punctuality, now: datetime) -> float:
    """Returns how many scheduled times came to nothing; 1 where none comes any more."""
    if facts.next_due is None:
        return 1.0
    return float(facts.windows) if facts.windows >= NEVER and not facts.any_started else 0.0


def usual_seconds(facts: Punctuality, needed: int) -> float | None:
    return median(facts.lengths) if len(facts.lengths) >= needed else None


# -- reading the rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose schedule it is, and who is notified."""

    subject: str
    facts: Mapping[str, str]
    setting: int | None
    pools: frozenset[int]


def punctuality(now: datetime) -> Iterator[tuple[Owner, Punctuality]]:
    """Yields every enabled owner of a schedule. As many questions for many as for one."""
    schedules = list(
        Schedule.objects.filter(Q(setting__enabled=True) | Q(group__enabled=True))
        .select_related("setting", "group")
        .annotate(newest=_newest_window(), first_started=_started_window())
        .order_by("pk")[:MOST]
    )
    windows = Window.objects.in_bulk([each.newest for each in schedules if each.newest])
    settings = [each.setting for each in schedules if each.setting is not None]
    groups = [each.group.pk for each in schedules if each.group is not None]
    of_setting = _starts_of_settings([setting.pk for setting in settings])
    of_group, pools = _starts_of_groups(groups), _pools_of_groups(groups)
    kept, frozen = out_of_service(settings), frozen_now(now)
    for each in schedules:
        if (setting := each.setting) is not None:
            owner, since, (start, lengths) = _of_setting(setting), setting.state_since, of_setting[setting.pk]
        elif (group := each.group) is not None:
            owner, since, (start, lengths) = _of_group(group, pools), group.state_since, of_group[group.pk]
        else:
            continue
        window = windows.get(each.newest)
        yield (
            owner,
            Punctuality(
                next_due=_next_due(each),
                kept=each.setting_id in kept or frozen.of(owner.pools) is not None,
                window=_decided(window) if window and window.decided_at >= since else None,
                start=start if start and start.started_at >= since else None,
                lengths=lengths,
                windows=_windows_since(each, since) if window and each.first_started is None else 0,
                any_started=each.first_started is not None,
            ),
        )


def _newest_window() -> Subquery:
    return Subquery(Window.objects.filter(schedule=OuterRef("pk")).order_by("-due_at").values("pk")[:1])


def _started_window() -> Subquery:
    since = Q(schedule=OuterRef("pk"), result=WindowResult.STARTED)
    enabled = Q(decided_at__gte=OuterRef("setting__state_since")) | Q(
        decided_at__gte=OuterRef("group__state_since")
    )
    return Subquery(Window.objects.filter(since & enabled).order_by("-due_at").values("pk")[:1])


def _windows_since(schedule: Schedule, since: datetime) -> int:
    """Counts at most as many as matter. Asked of schedules that started nothing, which are few."""
    rows = Window.objects.filter(schedule=schedule, decided_at__gte=since, result=WindowResult.SKIPPED)
    return len(rows.order_by("-due_at")[:NEVER])


def _decided(window: Window) -> Decided:
    return Decided(window.due_at, window.result, window.decided_at, window.reason)


def _next_due(schedule: Schedule) -> datetime | None:
    try:
        return next(timetable_of(schedule).after(schedule.decided_up_to), None)
    except (ValueError, ZoneInfoNotFoundError):
        # Stored by hand: it will never start anything.
        log.info("schedule cannot be read", schedule=schedule.pk)
        return None


Starts = dict[int, tuple[Start | None, tuple[float, ...]]]


def _starts_of_settings(settings: Sequence[int]) -> Starts:
    ended_well = Activation.objects.filter(setting=OuterRef("pk"), state=ActivationState.SUCCEEDED)
    newest = Activation.objects.filter(setting=OuterRef("pk")).order_by("-number", "-started_at")
    rows = LaunchSetting.objects.filter(pk__in=settings)
    return _starts(rows, newest, ended_well.order_by("-ended_at"), Activation.objects.all())


def _starts_of_groups(groups: Sequence[int]) -> Starts:
    newest = GroupActivation.objects.filter(group=OuterRef("pk")).order_by("-started_at")
    rows = ScheduledGroup.objects.filter(pk__in=groups)
    ended_well = newest.filter(state=GroupActivationState.SUCCEEDED)
    return _starts(rows, newest, ended_well, GroupActivation.objects.all())


def _starts(
    owners: QuerySet[Any], newest: QuerySet[Any], ended_well: QuerySet[Any], activations: QuerySet[Any]
) -> Starts:
    """Two queries; each length is one look into an index."""
    length = ExpressionWrapper(F("ended_at") - F("started_at"), output_field=DurationField())
    measured = ended_well.exclude(pk=OuterRef("newest")).annotate(length=length).values("length")
    lengths = {f"length{place}": Subquery(measured[place : place + 1]) for place in range(COMPARED)}
    rows = list(owners.annotate(newest=Subquery(newest.values("pk")[:1])).annotate(**lengths))
    starts = activations.in_bulk([row.newest for row in rows if row.newest])
    found: Starts = {}
    for row in rows:
        start = starts.get(row.newest)
        known = (getattr(row, name) for name in lengths)
        found[row.pk] = (
            _start(start) if start else None,
            tuple(each.total_seconds() for each in known if each is not None),
        )
    return found


def _start(row: Activation | GroupActivation) -> Start:
    messages = row.waiting_at_start if isinstance(row, Activation) else None
    return Start(row.state, row.started_at, row.ended_at, messages)


def _pools_of_groups(groups: Sequence[int]) -> Mapping[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    members = GroupMember.objects.filter(group__in=groups)
    for group, pool in members.values_list("group", "setting__pool").order_by():
        found.setdefault(group, set()).add(pool)
    return {group: frozenset(pools) for group, pools in found.items()}


def _of_setting(setting: LaunchSetting) -> Owner:
    facts = {"setting": setting.key, "name": setting.key}
    return Owner(f"setting:{setting.key}", facts, setting.pk, frozenset([setting.pool_id]))


def _of_group(group: ScheduledGroup, pools: Mapping[int, frozenset[int]]) -> Owner:
    facts = {"group": group.name, "name": group.name}
    return Owner(f"group:{group.name}", facts, None, pools.get(group.pk, frozenset()))
