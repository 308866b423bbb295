"""Whether the next slice of a job may move now: the facts of its rows for the pure rules of pacing and the ladder."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Q
from django.utils import timezone

from agents.models import LaunchSetting
from agents.models.activation import Run
from dlq.models import ItemState, Outcome, ReplayItem, ReplayJob, ReplaySlice, SliceState
from dlq.replay import ladder, pacing
from dlq.replay.ladder import Decision, Outcomes, Surroundings

# A shorter wait is slept, a longer one gives the worker to others.
SLEPT = timedelta(seconds=1.5)
# How often a ladder asks for outcomes.
LOOK_EVERY = timedelta(seconds=2)
WINDOW, RATE = "window", "rate"
# Failures in a row: one alone is what the percentage is for.
BREAKER_MOVES = 2


@dataclass(frozen=True, slots=True)
class Pace:
    """`stop`: for good, and why. `until`: not before then, and why. Neither: go."""

    until: datetime | None = None
    why: str = ""
    stop: str = ""


class Pacer:
    """Of one job, for as long as one worker has it."""

    def __init__(self, job: ReplayJob) -> None:
        self._job = job
        self._last = job.slices.exclude(moved_at=None).order_by("-moved_at").first()
        self._window = None
        if job.window_from is not None and job.window_until is not None:
            self._window = pacing.Window(job.window_from, job.window_until, timezone.get_default_timezone())

    def moved(self, piece: ReplaySlice, now: datetime) -> None:
        piece.moved_at = now
        self._last = piece

    def before(self, piece: ReplaySlice, now: datetime) -> Pace:
        """Call it with no other slice of the job on its way."""
        if self._job.ladder:
            climbed = self._climb(piece, now)
            if climbed.why or climbed.stop:
                return climbed
        opens = pacing.window_allows(now, self._window)
        if opens > now:
            return Pace(opens, WINDOW)
        allowed = self.rate_allows(now)
        return Pace(allowed, RATE) if allowed > now else Pace()

    def rate_allows(self, now: datetime) -> datetime:
        last = self._last
        return pacing.rate_allows(now, last.moved_at if last else None, last.size if last else 0, self._job.per_second)

    @property
    def hurries(self) -> bool:
        """Whether slices may follow each other without a look at anything."""
        return not (self._job.ladder or self._job.per_second or self._window)

    # -- the ladder --------------------------------------------------------------------------------------------------

    def _climb(self, piece: ReplaySlice, now: datetime) -> Pace:
        job, setting = self._job, target_of(self._job)
        around = _surroundings(job, setting)
        if piece.step <= job.ladder_step:
            decided = ladder.next_step(Outcomes(), 100, around)
            return Pace(stop=decided.why) if decided.why in ("tripped", "disabled") else Pace()
        decided = ladder.next_step(outcomes_of(job, job.ladder_step), job.ladder_percent, around)
        if decided.decision is Decision.STOP:
            return Pace(stop=decided.why)
        if decided.decision is Decision.WAIT:
            return Pace(now + LOOK_EVERY, decided.why)
        job.ladder_step, job.ladder_breaker = piece.step, breaker_of(setting)
        job.save(update_fields=["ladder_step", "ladder_breaker"])
        return Pace()


def target_of(job: ReplayJob) -> LaunchSetting | None:
    """The setting whose agent gets the letters."""
    return LaunchSetting.objects.filter(key=job.target_key).first() if job.target_key else job.setting


def outcomes_of(job: ReplayJob, step: int) -> Outcomes:
    """Of the letters that left in that step. One without a message key is never told of: it is not waited for."""
    pieces = job.slices.filter(step=step)
    items = ReplayItem.objects.filter(slice__in=pieces, state=ItemState.GIVEN_BACK).order_by()
    told = dict(items.exclude(outcome=Outcome.WAITING).values_list("outcome").annotate(Count("pk")))
    silent = items.filter(outcome=Outcome.WAITING).exclude(letter__message_key="").count()
    failed = told.get(Outcome.FAILED_AGAIN, 0) + told.get(Outcome.DEAD_AGAIN, 0)
    return Outcomes(handled=told.get(Outcome.HANDLED, 0), failed=failed, open=silent)


def breaker_of(setting: LaunchSetting | None) -> int:
    """The highest count of failures in a row on any of its servers."""
    runs = Run.objects.filter(activation__setting=setting, closed_at=None) if setting else Run.objects.none()
    highest: int | None = runs.aggregate(highest=Max("any_count"))["highest"]
    return highest or 0


def _surroundings(job: ReplayJob, setting: LaunchSetting | None) -> Surroundings:
    if setting is None or job.started_at is None:
        return Surroundings(disabled=setting is None)
    return Surroundings(
        tripped=setting.trips.filter(at__gt=job.started_at).exists(),
        disabled=not setting.enabled and setting.state_since > job.started_at,
        breaker_moved=breaker_of(setting) >= job.ladder_breaker + BREAKER_MOVES,
    )


def unsettled(job: ReplayJob, before: int) -> bool:
    """Whether a slice before that number waits for a walk: nobody knows yet what left."""
    begun = Q(state=SliceState.MOVED) | Q(state=SliceState.PLANNED, count_before__isnull=False)
    return job.slices.filter(begun, number__lt=before).exists()


def sleep_until(allowed: datetime) -> None:
    time.sleep(max(0.0, (allowed - timezone.now()).total_seconds()))
