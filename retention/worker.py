"""One step of retention: what is old of all settings together, setting by setting, what is of none, then what
others keep for a time of their own."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.db.models import Q

from agents.models import LaunchSetting
from console.database.storage import checkpoints_apart
from console.jobs.engine import Wait, Worker, run
from retention.ages import activations, dead_letters, error_groups, limits
from retention.batches import Chunks, TimeIsUp
from retention.models import PART_FAILED, RetentionFigure, RetentionRun, RetentionState
from retention.protocols.queries import settings_due
from retention.protocols.setting_rule import PROTOCOLS, apply_to_nobodys, apply_to_setting
from retention.protocols.sweep import sweep
from retention.run_ledger import Claim, LeaseLost, open_run

log = structlog.get_logger(__name__)

# A run begins so often; one that has more to do than a step takes goes on with the next tick.
EVERY = timedelta(hours=1)
STEP_SECONDS = 20.0
# Parts of a run, in this order; `PARTS` are those from the last one on.
SWEEP, SETTINGS, OTHERS = range(3)

# Deletes what is over, a chunk at a time. Raises TimeIsUp where the step ends before it is done.
Part = Callable[[datetime, Chunks], None]
# After what goes by the rule: what is of no activation that the MA knows, then what has a time of its own.
PARTS: tuple[tuple[str, Part], ...] = (
    ("nobodys", apply_to_nobodys),
    (activations.RUNS, activations.old_runs),
    (activations.ACTIVATIONS, activations.old_activations),
    (error_groups.GROUPS, error_groups.old_groups),
    (error_groups.KINDS, error_groups.old_kinds),
    (limits.REPLAYS, limits.forget_old_replays),
    (dead_letters.ROWS, dead_letters.delete_old_rows),
    (dead_letters.BODIES, dead_letters.delete_old_bodies),
    (dead_letters.EDITS, dead_letters.delete_old_copies),
    (limits.AUDIT, limits.forget_old_audit),
    *((each.what, each.forget) for each in limits.AGE_LIMITS),
)


class RetentionWorker(Worker[RetentionRun]):
    """`now` is the instant by which rows are old, for a whole step."""

    model, workable, order = RetentionRun, Q(state=RetentionState.RUNNING), "pk"

    def __init__(self, now: datetime, seconds: float) -> None:
        self._now, self._seconds = now, seconds

    def step(self, job: RetentionRun) -> bool | Wait:
        now, chunks = self._now, Chunks(Claim(job), time.monotonic() + self._seconds)
        try:
            with checkpoints_apart():
                _sweep(now, chunks)
                _settings(now, chunks)
                _others(now, chunks)
            chunks.claim.end(now)
            _tell(chunks.claim)
        except TimeIsUp:
            return Wait(now, "turn")
        except LeaseLost as error:
            log.warning("retention was taken over", reason=str(error))
        finally:
            log.info("retention step", run=job.pk, longest_chunk_seconds=round(chunks.longest, 4))
        return False


def run_retention_turn(
    now: datetime, *, every: timedelta = EVERY, seconds: float = STEP_SECONDS
) -> RetentionRun | None:
    """The run as it is after this step, or None where there was nothing to do or another one is at it."""
    job = open_run(now, every=every)
    if job is None or not run(RetentionWorker(now, seconds), job.pk, now):
        return None
    return RetentionRun.objects.get(pk=job.pk)


def _sweep(now: datetime, chunks: Chunks) -> None:
    """Sweeps; where it fails, each setting is processed by itself all the same."""
    claim = chunks.claim
    if claim.run.part == SWEEP:
        _guarded(claim, "sweep", partial(sweep, now, chunks))
        claim.move(SETTINGS, 0)


def _settings(now: datetime, chunks: Chunks) -> None:
    claim = chunks.claim
    if claim.run.part != SETTINGS:
        return
    # Of one that a step ended in, what was kept is counted from the beginning.
    figures = RetentionFigure.objects.filter(run=claim.run, what=PROTOCOLS).values_list(
        "setting_key", "kept_for"
    )
    looked_at = Q(pk__in=settings_due(now)) | Q(key__in=[key for key, kept in figures if kept])
    for setting in LaunchSetting.objects.filter(looked_at, pk__gt=claim.run.position).order_by("pk"):
        _guarded(claim, setting.key, partial(apply_to_setting, setting, now, chunks))
        claim.move(SETTINGS, setting.pk)
    claim.move(OTHERS, 0)


def _others(now: datetime, chunks: Chunks) -> None:
    claim = chunks.claim
    while claim.run.part < OTHERS + len(PARTS):
        if claim.run.part > OTHERS:
            chunks.among_others()
        name, part = PARTS[claim.run.part - OTHERS]
        _guarded(claim, name, partial(part, now, chunks))
        claim.move(claim.run.part + 1, 0)


def _guarded(claim: Claim, name: str, act: Callable[[], None]) -> None:
    """A fault of one setting stops no other one; the run says so and the next one tries again."""
    try:
        act()
    except (TimeIsUp, LeaseLost):
        raise
    except Exception as error:
        log.exception("retention failed", of=name)
        claim.note_problem(PART_FAILED(part=name, type=type(error).__name__, text=str(error)))


def _tell(claim: Claim) -> None:
    """One line per setting of which something went or was kept."""
    run = RetentionRun.objects.get(pk=claim.run.pk)
    for figure in run.figures.all():
        log.info(
            "retention", what=figure.what, setting=figure.setting_key, rule=figure.rule,
            deleted=figure.deleted,
            kept=figure.kept_for,
        )  # fmt: skip
    log.info("retention ended", state=run.state, deleted=run.deleted, problem=str(run.problem))
