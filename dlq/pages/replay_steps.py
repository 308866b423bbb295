"""The steps of a ladder, each with what became of its letters: exact for the first ones, the rest in one
row."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from console.ui.labels import Shown
from dlq.models import ItemState, JobState, Outcome, ReplayItem, ReplayJob, ReplaySlice
from dlq.models.replay import OPEN_JOBS
from dlq.replay.counting import LEFT
from dlq.replay.ladder import step_size

# Steps of which each letter is counted: 1 + 5 + 25 + 125 + 625 of them, however large the job is.
COUNTED_STEPS = 5

PASSED = Shown(_("went on"), "ok", "ok")
AT_HAND = Shown(_("at hand"), "info", "run")
HELD = Shown(_("waits for its outcomes"), "off", "wait")
STOPPED = Shown(_("stopped here"), "bad", "warn")
OVER = Shown(_("moved"), "info", "ok")
TO_COME = Shown(_("not begun"), "off", "wait")


@dataclass(frozen=True, slots=True)
class Step:
    """`number` from 1; `onwards`: this step and all after it. `moved` counts what is unconfirmed too.
    `planned` letters of it did not move yet."""

    number: int
    onwards: bool
    size: int
    moved: int
    handled: int
    failed: int
    dead: int
    unknown: int
    planned: int
    state: Shown

    @property
    def waiting(self) -> int:
        return max(0, self.moved - self.handled - self.failed - self.dead - self.unknown)

    @property
    def failed_share(self) -> int:
        """Per cent of those that moved, as the ladder judges it."""
        return round(100 * (self.failed + self.dead) / self.moved) if self.moved else 0


def steps_of(job: ReplayJob, counts: Mapping[str, int]) -> list[Step]:
    if not job.ladder:
        return []
    pieces = dict(ReplaySlice.objects.filter(job=job, step__lt=COUNTED_STEPS).values_list("pk", "step"))
    rows = ReplayItem.objects.filter(slice__in=list(pieces)).order_by()
    found: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for piece, state, outcome, count in rows.values_list("slice", "state", "outcome").annotate(Count("pk")):
        found[pieces[piece]][state] += count
        if outcome and state in LEFT:
            found[pieces[piece]][outcome] += count
    steps = [_step(job, number, found[number], step_size(number)) for number in sorted(found)]
    rest = {name: count - sum(each[name] for each in found.values()) for name, count in counts.items()}
    if any(rest.get(name, 0) > 0 for name in (*LEFT, ItemState.PLANNED)) and len(steps) == COUNTED_STEPS:
        steps.append(_step(job, COUNTED_STEPS, rest, 0))
    return steps


def _step(job: ReplayJob, number: int, counts: Mapping[str, int], size: int) -> Step:
    def count(name: str) -> int:
        return max(0, counts.get(name, 0))

    moved, planned = sum(count(state) for state in LEFT), count(ItemState.PLANNED)
    handled, failed, dead = count(Outcome.HANDLED), count(Outcome.FAILED_AGAIN), count(Outcome.DEAD_AGAIN)
    unknown = count(Outcome.UNKNOWN)
    waits = moved > handled + failed + dead + unknown
    onwards = number >= COUNTED_STEPS
    state = _state(job, number, onwards, at_rest=bool(moved and not planned and waits), moved=bool(moved))
    return Step(number + 1, onwards, size, moved, handled, failed, dead, unknown, planned, state)


def _state(job: ReplayJob, number: int, onwards: bool, *, at_rest: bool, moved: bool) -> Shown:
    if number < job.ladder_step and not onwards:
        return PASSED
    if job.state == JobState.STOPPED and (number == job.ladder_step or onwards):
        return STOPPED
    if job.state in OPEN_JOBS:
        return HELD if at_rest else AT_HAND if moved or number <= job.ladder_step else TO_COME
    return OVER if moved else TO_COME
