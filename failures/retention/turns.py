"""One turn of retention: what is old of all settings together, setting by setting, what is of none, then what
others keep for a time of their own."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.db.models import Q

from agents.models import LaunchSetting
from console.jobs.worker import Wait, Worker, run
from failures.models import RetentionFigure, RetentionRun, RetentionState
from failures.reasons import PART_FAILED
from failures.retention import checkpoints
from failures.retention.applying import PROTOCOLS, TurnOver, apply_to_nobodys, apply_to_setting
from failures.retention.chunks import Chunks
from failures.retention.running import LeaseLost, Turn, open_run
from failures.retention.settling import due
from failures.retention.sweeping import sweep

log = structlog.get_logger(__name__)

# A run begins so often; one that has more to do than a turn takes goes on with the next tick.
EVERY = timedelta(hours=1)
TURN_SECONDS = 20.0
# Parts of a run, in this order; those of others follow.
SWEEP, SETTINGS, OTHERS = range(3)

# Deletes what is over, a chunk at a time. Raises TurnOver where the turn ends before it is done.
Part = Callable[[datetime, Chunks], None]


@dataclass(frozen=True, slots=True)
class _Registered:
    order: int
    name: str
    part: Part


_parts: list[_Registered] = []


def register(order: int, name: str, part: Part) -> None:
    """What else is deleted by its age; small orders come first."""
    if all(each.name != name for each in _parts):
        _parts.append(_Registered(order, name, part))
        _parts.sort(key=lambda each: (each.order, each.name))


class RetentionWorker(Worker[RetentionRun]):
    """A step is a whole turn, of which `now` is the instant by which rows are old."""

    model, workable, order = RetentionRun, Q(state=RetentionState.RUNNING), "pk"

    def __init__(self, now: datetime, seconds: float) -> None:
        self._now, self._seconds = now, seconds

    def step(self, job: RetentionRun) -> bool | Wait:
        now, chunks = self._now, Chunks(Turn(job), time.monotonic() + self._seconds)
        try:
            with checkpoints.apart():
                _sweep(now, chunks)
                _settings(now, chunks)
                _others(now, chunks)
            chunks.turn.end(now)
            _tell(chunks.turn)
        except TurnOver:
            return Wait(now, "turn")
        except LeaseLost as error:
            log.warning("retention was taken over", reason=str(error))
        finally:
            log.info("retention turn", run=job.pk, longest_chunk_seconds=round(chunks.longest, 4))
        return False


def work(now: datetime, *, every: timedelta = EVERY, seconds: float = TURN_SECONDS) -> RetentionRun | None:
    """The run as it is after this turn, or None where there was nothing to do or another one is at it."""
    job = open_run(now, every=every)
    if job is None or not run(RetentionWorker(now, seconds), job.pk, now):
        return None
    return RetentionRun.objects.get(pk=job.pk)


def _sweep(now: datetime, chunks: Chunks) -> None:
    """Where it fails, each setting is gone through by itself all the same."""
    turn = chunks.turn
    if turn.run.part == SWEEP:
        _guarded(turn, "sweep", partial(sweep, now, chunks))
        turn.move(SETTINGS, 0)


def _settings(now: datetime, chunks: Chunks) -> None:
    turn = chunks.turn
    if turn.run.part != SETTINGS:
        return
    # Of one that a turn ended in, what was kept is counted from the beginning.
    figures = RetentionFigure.objects.filter(run=turn.run, what=PROTOCOLS).values_list(
        "setting_key", "kept_for"
    )
    looked_at = Q(pk__in=due(now)) | Q(key__in=[key for key, kept in figures if kept])
    for setting in LaunchSetting.objects.filter(looked_at, pk__gt=turn.run.position).order_by("pk"):
        _guarded(turn, setting.key, partial(apply_to_setting, setting, now, chunks))
        turn.move(SETTINGS, setting.pk)
    turn.move(OTHERS, 0)


def _others(now: datetime, chunks: Chunks) -> None:
    parts: list[tuple[str, Part]] = [
        ("nobodys", apply_to_nobodys),
        *((each.name, each.part) for each in _parts),
    ]
    turn = chunks.turn
    while turn.run.part < OTHERS + len(parts):
        if turn.run.part > OTHERS:
            chunks.among_others()
        name, part = parts[turn.run.part - OTHERS]
        _guarded(turn, name, partial(part, now, chunks))
        turn.move(turn.run.part + 1, 0)


def _guarded(turn: Turn, name: str, act: Callable[[], None]) -> None:
    """A fault of one setting keeps no other from its turn; the run says so and the next one tries again."""
    try:
        act()
    except (TurnOver, LeaseLost):
        raise
    except Exception as error:
        log.exception("retention failed", of=name)
        turn.note_problem(PART_FAILED(part=name, type=type(error).__name__, text=str(error)))


def _tell(turn: Turn) -> None:
    """One line per setting of which something went or was kept."""
    run = RetentionRun.objects.get(pk=turn.run.pk)
    for figure in run.figures.all():
        log.info(
            "retention", what=figure.what, setting=figure.setting_key, rule=figure.rule,
            deleted=figure.deleted,
            kept=figure.kept_for,
        )  # fmt: skip
    log.info("retention ended", state=run.state, deleted=run.deleted, problem=str(run.problem))
