"""Who put a letter into the bin, when and why. A move gives a letter a new id, so it is told by its setting,
its message and the time: the last job before it was seen there that moved this message into the bin."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from dlq.models import DeadLetter, ItemState, ReplayItem, ReplayJob
from dlq.models.letter import BIN_QUEUE

# Jobs of one setting that are looked through, and those that are asked about one letter.
JOBS, ASKED = 200, 10
# A worker's clock and the one of the process that walks the bin may differ.
CLOCKS = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Binned:
    """`job` None: not by us, or so long ago that nobody knows."""

    letter: DeadLetter
    job: ReplayJob | None


def told(letters: Sequence[DeadLetter]) -> list[Binned]:
    """In the same order; some questions for each letter, so of one page only."""
    jobs = _jobs({letter.setting_key for letter in letters})
    return [Binned(letter, _job_of(letter, jobs[letter.setting_key])) for letter in letters]


def _jobs(keys: Iterable[str]) -> dict[str, list[ReplayJob]]:
    found: dict[str, list[ReplayJob]] = defaultdict(list)
    for key in keys:
        jobs = ReplayJob.objects.filter(setting_key=key, target_queue=BIN_QUEUE).exclude(started_at=None)
        found[key] = list(jobs.select_related("by").order_by("-created_at")[:JOBS])
    return found


def _job_of(letter: DeadLetter, jobs: Sequence[ReplayJob]) -> ReplayJob | None:
    before = [job for job in jobs if job.started_at is not None and job.started_at <= letter.seen_at + CLOCKS]
    if not letter.message_key:
        return None
    for job in before[:ASKED]:
        moved = ReplayItem.objects.filter(job=job, state=ItemState.GIVEN_BACK)
        if moved.filter(
            letter__message_key=letter.message_key, letter__setting_key=letter.setting_key
        ).exists():
            return job
    return None
