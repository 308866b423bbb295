"""Describes whether the next slice of a job may move now: the facts of its rows, and the rules of rate and
run window for them. Those of the ladder are in `dlq.replay.rules.ladder`."""

from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, tzinfo
from enum import Enum
from time import sleep
from typing import Any

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from agents.heartbeat.desired import carried_counts
from agents.models import LaunchSetting, Run
from agents.models.server import lost_before
from broker.port import Management, ManagementFailed
from console.jobs import crash
from dlq.models import JobState, Outcome, ReplayItem, ReplayJob, ReplaySlice, SliceState
from dlq.models.replay import DELIVERING
from dlq.replay import counts
from dlq.replay.counts import BLOCKED, CONSUMERS_OPEN, STOPPING, TARGET_BLOCKED
from dlq.replay.creation import audit
from dlq.replay.requests import blocked_attempt
from dlq.replay.rules import ladder
from dlq.replay.rules.ladder import Decision, Outcomes, Streak, Surroundings

# -- rate and run window, pure: when the next slice may move -------------------------------------------------


# A day with a change of the clocks has up to 25 hours; the search for an opening looks a little further.
_MINUTES_AHEAD = 27 * 60


@dataclass(frozen=True, slots=True)
class Window:
    """Local times of day in `zone`: from (inclusive) until (exclusive). It may span midnight."""

    opens: time
    closes: time
    zone: tzinfo

    def holds(self, now: datetime) -> bool:
        at = now.astimezone(self.zone).time()
        if self.opens <= self.closes:
            return self.opens <= at < self.closes
        return at >= self.opens or at < self.closes


def window_allows(now: datetime, window: Window | None) -> datetime:
    """`now` inside of the window, else when it opens next.

    It looks minute by minute: where the clocks are put forward an opening that does not exist is the end of
    the gap, where they are put back the window is open each time that its local times come."""
    if window is None or window.holds(now):
        return now
    minute = now.replace(second=0, microsecond=0)
    for ahead in range(1, _MINUTES_AHEAD):
        at = minute + timedelta(minutes=ahead)
        if window.holds(at):
            return at
    return minute + timedelta(minutes=_MINUTES_AHEAD)  # a window inside of a gap: it opens another day


def rate_allows(now: datetime, last_at: datetime | None, last_size: int, per_second: float) -> datetime:
    """Returns when the slice after one of `last_size` dead letters at `last_at` may move. What was missed is
    not made up for: a job that waited does not burst afterwards."""
    if not per_second or last_at is None:
        return now
    return max(now, last_at + timedelta(seconds=last_size / per_second))


# -- the facts of its rows -----------------------------------------------------------------------------------


# A shorter wait is slept, a longer one gives the worker to others.
SLEPT = timedelta(seconds=1.5)
# How often a ladder asks for outcomes.
LOOK_EVERY = timedelta(seconds=2)
WINDOW, RATE = "window", "rate"


@dataclass(frozen=True, slots=True)
class PaceDecision:
    """`stop`: for good, and why. `until`: not before then, and why. Neither: go."""

    until: datetime | None = None
    why: str = ""
    stop: str = ""


class Pacer:
    """Paces one job, for as long as one worker has it."""

    def __init__(self, job: ReplayJob) -> None:
        self._job = job
        self._last = job.slices.exclude(moved_at=None).order_by("-moved_at").first()
        self._window = None
        if job.window_from is not None and job.window_until is not None:
            self._window = Window(job.window_from, job.window_until, timezone.get_default_timezone())

    def moved(self, piece: ReplaySlice, now: datetime) -> None:
        piece.moved_at = now
        self._last = piece

    def before(self, piece: ReplaySlice, now: datetime) -> PaceDecision:
        """Call it with no other slice of the job on its way."""
        if self._job.ladder:
            climbed = self._climb(piece, now)
            if climbed.why or climbed.stop:
                return climbed
        opens = window_allows(now, self._window)
        if opens > now:
            return PaceDecision(opens, WINDOW)
        allowed = self.rate_allows(now)
        return PaceDecision(allowed, RATE) if allowed > now else PaceDecision()

    def rate_allows(self, now: datetime) -> datetime:
        last = self._last
        return rate_allows(
            now, last.moved_at if last else None, last.size if last else 0, self._job.per_second
        )

    @property
    def hurries(self) -> bool:
        """Returns whether slices may follow each other without a look at anything."""
        return not (self._job.ladder or self._job.per_second or self._window)

    # -- the ladder ------------------------------------------------------------------------------------------

    def _climb(self, piece: ReplaySlice, now: datetime) -> PaceDecision:
        """Each write is a conditional UPDATE, and each may be the last one of this worker. Killed before the
        first counts are written: no dead letter has moved, the next worker writes them. Killed after them, or
        after the instant at which the outcomes were known: the next worker compares with the same row. Killed
        after the step was moved on: its slices are planned, and nothing of them has moved."""
        job, setting = self._job, target_of(self._job)
        streaks = streaks_of(setting, now)
        if job.ladder_counts is None:
            self._write({"ladder_counts__isnull": True}, {"ladder_counts": _counts(streaks)})
            crash.point("ladder counted")
        around = _surroundings(job, setting)
        if piece.step <= job.ladder_step:
            decided = ladder.next_step(Outcomes(), 100, around)
            return (
                PaceDecision(stop=decided.why) if decided.why in ("tripped", "disabled") else PaceDecision()
            )
        outcomes = outcomes_of(job, job.ladder_step)
        if not outcomes.open:
            around = self._compared(around, streaks, now)
        decided = ladder.next_step(outcomes, job.ladder_percent, around)
        if decided.decision is Decision.STOP:
            return PaceDecision(stop=decided.why)
        if decided.decision is Decision.WAIT:
            return PaceDecision(now + LOOK_EVERY, decided.why)
        changes = {"ladder_step": piece.step, "ladder_counts": _counts(streaks), "ladder_known_at": None}
        self._write({"ladder_step": job.ladder_step}, changes)
        crash.point("ladder climbed")
        return PaceDecision()

    def _compared(self, around: Surroundings, streaks: list[Streak], now: datetime) -> Surroundings:
        """The surroundings of a step of which every outcome is here, the first time now."""
        job = self._job
        if job.ladder_known_at is None:
            same_step = {"ladder_step": job.ladder_step, "ladder_known_at": None}
            self._write(same_step, {"ladder_known_at": now})
            crash.point("ladder known")
        known_at = job.ladder_known_at or now
        before = {int(run): count for run, count in (job.ladder_counts or {}).items()}
        return replace(
            around,
            breaker_moved=ladder.breaker_moved(before, streaks, known_at),
            unheard=ladder.unheard(streaks, known_at, now),
        )

    def _write(self, expected: dict[str, Any], changes: dict[str, Any]) -> None:
        """Lets one of two workers write; both continue with what is written."""
        ReplayJob.objects.filter(pk=self._job.pk, **expected).update(**changes)
        self._job.refresh_from_db(fields=["ladder_step", "ladder_counts", "ladder_known_at"])


def target_of(job: ReplayJob) -> LaunchSetting | None:
    """The setting whose agent gets the dead letters."""
    return LaunchSetting.objects.filter(key=job.target_key).first() if job.target_key else job.setting


def outcomes_of(job: ReplayJob, step: int) -> Outcomes:
    """Counts outcomes of the dead letters that left in that step, by our moves or perhaps by them; what
    another consumer took is no outcome. One without a message key is never told of: it is not waited for."""
    pieces = job.slices.filter(step=step)
    items = ReplayItem.objects.filter(slice__in=pieces, state__in=counts.LEFT).order_by()
    told = dict(items.exclude(outcome=Outcome.WAITING).values_list("outcome").annotate(Count("pk")))
    silent = items.filter(outcome=Outcome.WAITING).exclude(letter__message_key="").count()
    failed = told.get(Outcome.FAILED_AGAIN, 0) + told.get(Outcome.DEAD_AGAIN, 0)
    unknown = told.get(Outcome.UNKNOWN, 0)
    return Outcomes(handled=told.get(Outcome.HANDLED, 0), failed=failed, unknown=unknown, open=silent)


def streaks_of(setting: LaunchSetting | None, now: datetime) -> list[Streak]:
    """Returns streaks of the runs that are to continue, on servers that are there: an interrupted or disabled
    one counts for nothing any more, though its last counts are kept."""
    if setting is None:
        return []
    runs = Run.objects.filter(activation__setting=setting, wanted=True, closed_at=None)
    alive = runs.filter(server__last_seen_at__gt=lost_before(now)).select_related(
        "server", "activation__setting"
    )
    return [_streak(run) for run in alive.order_by("pk")]


def _streak(run: Run) -> Streak:
    carried = carried_counts(run)
    return Streak(run.pk, run.any_count, run.server.last_seen_at, carried.any if carried else 0)


def _counts(streaks: list[Streak]) -> dict[str, int]:
    return {str(streak.run): streak.count for streak in streaks}


def _surroundings(job: ReplayJob, setting: LaunchSetting | None) -> Surroundings:
    if setting is None or job.started_at is None:
        return Surroundings(disabled=setting is None)
    return Surroundings(
        tripped=setting.trips.filter(at__gt=job.started_at).exists(),
        disabled=not setting.enabled and setting.state_since > job.started_at,
    )


def has_unsettled_slice(job: ReplayJob, before: int) -> bool:
    """Returns whether a slice before that number waits for a walk: nobody knows yet what left."""
    begun = Q(state=SliceState.MOVED) | Q(state=SliceState.PLANNED, count_before__isnull=False)
    return job.slices.filter(begun, number__lt=before).exists()


def sleep_until(allowed: datetime) -> None:
    sleep(max(0.0, (allowed - timezone.now()).total_seconds()))


# -- gate: replays of a disabled setting wait for its open consumers -----------------------------------------
# So do redirects to another destination for the message that blocks an ordered subscription there, which
# nobody may pass.
#
# Disabled is a desired state until every run has closed: a server may learn of it seconds later, and what
# comes into the subscription before goes to the old run. The broker is asked for the consumers before each
# slice; where there are some, the job waits for WAITS_FOR at most and then pauses. A person may let it
# continue all the same.
#
# The beginning of the wait is a column of the job, written by a conditional UPDATE. Killed before it: the
# next worker writes it. Killed after it: the next worker waits for the rest. Killed before the pause is
# committed: the next worker asks the broker again, and pauses or continues. After it: the job is paused and
# has no worker.


WAITS_FOR = timedelta(seconds=60)
ASKED_EVERY = timedelta(seconds=2)
MOST_SERVERS = 20


class Gate(Enum):
    OPEN = "open"
    WAIT = "wait"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class GateReading:
    """Holds what is in the way: so many consumers are open, as the broker says; or a message at this attempt
    blocks the subscription, as its run says."""

    gate: Gate
    consumers: int = 0
    blocked: int = 0

    @property
    def why(self) -> str:
        return BLOCKED if self.blocked else STOPPING


def decide(in_the_way: int, waits_since: datetime | None, now: datetime) -> Gate:
    """Pure. `waits_since`: when this job first saw something in its way."""
    if in_the_way == 0:
        return Gate.OPEN
    waited = waits_since is not None and now - waits_since >= WAITS_FOR
    return Gate.PAUSE if waited else Gate.WAIT


def read_gate(job: ReplayJob, broker: Management, now: datetime) -> GateReading:
    """Returns whether the next slice may move as far as the setting that gets it goes. Raises BrokerError."""
    setting = target_of(job) if job.action in DELIVERING else None
    if setting is None or not setting.takes_messages:
        return GateReading(Gate.OPEN)
    blocked = _blocked(job, setting)
    asks = not (blocked or setting.enabled or job.goes_on_all_the_same)
    consumers = open_consumers(broker, job.target_queue) if asks else 0
    if not (asks or blocked) and job.stopping_since is None:
        return GateReading(Gate.OPEN)
    gate = decide(blocked or consumers, job.stopping_since, now)
    mine = ReplayJob.objects.filter(pk=job.pk)
    if gate is Gate.WAIT:
        mine.filter(stopping_since=None).update(stopping_since=now)
        crash.point("stopping seen")
    elif gate is Gate.OPEN and job.stopping_since is not None:
        # One that opens later is waited for as long again.
        mine.update(stopping_since=None)
    job.refresh_from_db(fields=["stopping_since"])
    return GateReading(gate, consumers, blocked)


def _blocked(job: ReplayJob, target: LaunchSetting) -> int:
    """Returns the attempt of the message that blocks the target in another destination; 0: none does. Within
    a destination the pre-flight warns of the order, and that is all."""
    if job.setting is None or job.setting.destination_id == target.destination_id:
        return 0
    return blocked_attempt(target) or 0


def open_consumers(broker: Management, queue: str) -> int:
    """Counts them; a queue that is not there has none: the move says why it fails. Raises BrokerError."""
    try:
        return int(broker.attribute(f"queue.{queue}", "ConsumerCount"))
    except ManagementFailed:
        return 0


def pause(job: ReplayJob, asked: GateReading, now: datetime) -> bool:
    """Pauses a job that waited in vain; whether it was still ours and running."""
    setting = target_of(job)
    servers = servers_of(setting) if setting else []
    why: dict[str, Any] = {"code": CONSUMERS_OPEN, "consumers": asked.consumers, "servers": servers}
    if asked.blocked:
        why = {"code": TARGET_BLOCKED, "setting": job.target_key, "attempt": asked.blocked}
    with transaction.atomic():
        paused = job.end(
            state=JobState.PAUSED, paused_at=now, paused_by=None, pause_reason=why, stopping_since=None
        )
        if paused:
            audit(job, "replay.pause", by=job.by, now=now, detail={"why": why}, counts=counts.so_far(job))
        crash.point("stopping pauses")
    return paused


def servers_of(setting: LaunchSetting) -> list[str]:
    """The servers whose runs of the setting have not closed. None where the consumers belong to somebody
    else."""
    runs = Run.objects.filter(activation__setting=setting, closed_at=None)
    return sorted(set(runs.order_by().values_list("server__name", flat=True)))[:MOST_SERVERS]
