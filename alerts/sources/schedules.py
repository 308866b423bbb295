"""Describes what is watched of scheduled settings and groups: the last start failed or was skipped, the next
one is late, a run takes too long, ended suspiciously soon, or none will ever begin.

Facts of an owner are read from its rows; what they mean is decided by pure functions of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import structlog
from django.db.models import DurationField, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

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
from agents.schedules.rules import ON_TIME
from agents.schedules.tick import timetable_of
from alerts.kinds import AlertKind, Observation, Observe
from alerts.models import Severity
from alerts.rules import Thresholds
from console.reasons import NO_REASON, Reason
from console.ui.amounts import duration, instant, number
from console.ui.page import link

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
    started: bool
    decided_at: datetime
    reason: Reason = NO_REASON


@dataclass(frozen=True, slots=True)
class Punctuality:
    """`next_due`: the first scheduled time that is not decided, None: there is none ever. `kept`: people keep
    it from every server. `lengths`: seconds of those that ended well, the latest first, the newest start not
    among them. `windows` were decided, of which none `started`."""

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
    return float(facts.window is not None and not facts.window.started)


def late(facts: Punctuality, now: datetime) -> float:
    """Returns by how many seconds the newest start is late: not decided, decided late, or without a server
    still."""
    if facts.kept:
        return 0.0
    undecided = (now - facts.next_due).total_seconds() if facts.next_due else 0.0
    return max(0.0, undecided, _waiting(facts.start, now), _began_late(facts.window, now))


def _waiting(start: Start | None, now: datetime) -> float:
    waits = start is not None and start.state == ActivationState.PENDING
    return (now - start.started_at).total_seconds() if start and waits else 0.0


def _began_late(window: Decided | None, now: datetime) -> float:
    """What began within ON_TIME was on time; what began late is told for an hour."""
    if window is None or not window.started or now - window.decided_at >= TOLD_FOR:
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
    kept = out_of_service(settings)
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
                kept=each.setting_id in kept,
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
    return len(Window.objects.filter(schedule=schedule, decided_at__gte=since).order_by("-due_at")[:NEVER])


def _decided(window: Window) -> Decided:
    return Decided(window.due_at, window.result == WindowResult.STARTED, window.decided_at, window.reason)


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


# -- the kinds -----------------------------------------------------------------------------------------------


def _observe(rule: Callable[[Punctuality, datetime], float]) -> Observe:
    def observe(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
        found = [(owner, facts, rule(facts, now)) for owner, facts in punctuality(now)]
        for owner, facts, value in sorted(found, key=lambda each: -each[2]):
            if value or owner.subject in live:
                yield Observation(
                    owner.subject,
                    value,
                    setting=owner.setting,
                    pools=owner.pools,
                    facts={**owner.facts, **_told(facts, now)},
                )

    return observe


def _told(facts: Punctuality, now: datetime) -> dict[str, Any]:
    """What the texts are made of, as JSON."""
    start, window = facts.start, facts.window
    ended = (start.ended_at or now) if start else now
    return {
        "started_at": start.started_at.isoformat() if start else "",
        "seconds": (ended - start.started_at).total_seconds() if start else 0.0,
        "usual": usual_seconds(facts, LONG_NEEDS) or 0.0,
        "due_at": window.due_at.isoformat() if window else "",
        "why": window.reason.as_json() if window else {},
        "next": facts.next_due is not None,
        "began": _began_late(window, now) > 0.0,
    }


def _at(facts: Mapping[str, Any], name: str) -> str:
    return instant(datetime.fromisoformat(facts[name])) if facts[name] else "—"


def _failed(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s”: the run started at %(at)s failed.")
    return text % {"name": facts["name"], "at": _at(facts, "started_at")}


def _skipped(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s”: the run scheduled for %(at)s was skipped. Reason: %(why)s")
    why = str(Reason.from_json(facts["why"])) or "—"
    return text % {"name": facts["name"], "at": _at(facts, "due_at"), "why": why}


def _late(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s”: the scheduled run has not started yet. It is %(time)s late.")
    if facts["began"]:
        text = _("“%(name)s”: the scheduled run started %(time)s late.")
    return text % {"name": facts["name"], "time": duration(round(value))}


def _long(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s” has been running for %(time)s. It usually takes %(usual)s.")
    return text % _lengths(facts)


def _short(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s” ended after %(time)s. It usually takes %(usual)s.")
    return text % _lengths(facts)


def _lengths(facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": facts["name"],
        "time": duration(round(facts["seconds"])),
        "usual": duration(round(facts["usual"])),
    }


def _never(facts: Mapping[str, Any], value: float) -> str:
    if not facts["next"]:
        return _("“%(name)s” is enabled, but its schedule has no further runs.") % {"name": facts["name"]}
    text = _("“%(name)s” has never started since it was enabled: its scheduled runs were skipped.")
    return text % {"name": facts["name"]}


def _url(facts: Mapping[str, Any]) -> str:
    return link("group", facts["group"]) if "group" in facts else link("setting", facts["setting"])


def _times(value: float) -> str:
    return f"×{number(value, 1)}"


AT_ONCE = Thresholds(1.0, 1.0)
FAILED_START = AlertKind(
    name="schedule_failed",
    label=gettext_lazy("Scheduled run failed"),
    severity=Severity.BAD,
    limits=AT_ONCE,
    unit=gettext_lazy("1 while the last run is a failed one"),
    says=_failed,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Open the setting or group and check the failures of its last run. Fix the cause, then "
        "run it now. The alert closes when a run starts."
    ),
    url=_url,
    observe=_observe(failed),
)
SKIPPED_START = AlertKind(
    name="schedule_skipped",
    label=gettext_lazy("Scheduled run skipped"),
    severity=Severity.WARNING,
    limits=AT_ONCE,
    unit=gettext_lazy("1 while the last scheduled run is a skipped one"),
    says=_skipped,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "If the previous run was still active, make the interval longer or the run shorter. If "
        "the run is needed now, start it. The alert closes when a scheduled run starts."
    ),
    url=_url,
    observe=_observe(skipped),
)
LATE_START = AlertKind(
    name="schedule_late",
    label=gettext_lazy("Scheduled run late"),
    severity=Severity.BAD,
    limits=Thresholds(60.0, 60.0),
    unit=gettext_lazy("seconds after the scheduled time"),
    says=_late,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "If it waits for a server, check that its pool has a server that is in service and "
        "offers the agent. If nothing is started at all, check the scheduler on the Health page."
    ),
    url=_url,
    observe=_observe(late),
)
LONG_RUN = AlertKind(
    name="schedule_long",
    label=gettext_lazy("Scheduled run takes too long"),
    severity=Severity.WARNING,
    limits=Thresholds(3.0, 3.0),
    unit=gettext_lazy("ratio of the duration so far to the usual duration"),
    says=_long,
    measure=_times,
    what_to_do=gettext_lazy(
        "Open its activation and check whether messages are still being processed. If the "
        "agent hangs, stop the activation and run it again."
    ),
    url=_url,
    observe=_observe(long),
)
SHORT_RUN = AlertKind(
    name="schedule_short",
    label=gettext_lazy("Scheduled run suspiciously short"),
    severity=Severity.WARNING,
    limits=Thresholds(10.0, 10.0),
    unit=gettext_lazy("ratio of the usual duration to that of the last run"),
    says=_short,
    measure=_times,
    what_to_do=gettext_lazy(
        "Check that the last run did all its work: the agent may have found no data, or ended "
        "before its work was done. The alert closes after a run of the usual duration."
    ),
    url=_url,
    observe=_observe(short),
)
NEVER_STARTED = AlertKind(
    name="schedule_never",
    label=gettext_lazy("Schedule never starts anything"),
    severity=Severity.BAD,
    limits=AT_ONCE,
    unit=gettext_lazy("scheduled times without a run since it was enabled"),
    says=_never,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Check the schedule and why its runs were skipped. Change the schedule, or disable the "
        "setting or group if it is not needed."
    ),
    url=_url,
    observe=_observe(never),
)

KINDS = (FAILED_START, SKIPPED_START, LATE_START, LONG_RUN, SHORT_RUN, NEVER_STARTED)
