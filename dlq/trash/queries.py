"""Describes whether a dead letter was put back from the trash, and as which one it goes on: each move gives
it a row of its own.

What lay in the trash is told by the job that took it out. The original is told by its message, which a weak
key does not tell apart from others.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dlq.models import Action, DeadLetter, EditState, ItemState, LetterState, ReplayItem, ReplayJob
from dlq.models.dead_letter import BIN_QUEUE
from dlq.replay.scopes import read, with_copies


@dataclass(frozen=True, slots=True)
class PutBack:
    """`as_letter` None: the index has not seen it there, or cannot tell it apart."""

    job: ReplayJob
    at: datetime
    as_letter: int | None


def put_back_of(letter: DeadLetter) -> PutBack | None:
    in_trash = _trash_time(letter)
    if in_trash is None:
        return None
    moved = ReplayItem.objects.filter(
        letter=in_trash, state=ItemState.GIVEN_BACK, job__action=Action.PUT_BACK
    )
    item = moved.select_related("job").first()
    return PutBack(item.job, item.state_at, _next(in_trash, item.job.target_queue)) if item else None


def _trash_time(letter: DeadLetter) -> int | None:
    """The row that it has in the trash, or had there."""
    if letter.queue == BIN_QUEUE:
        return letter.pk if letter.state == LetterState.GONE else None
    return _next(letter.pk, BIN_QUEUE) if letter.state == LetterState.DISCARDED else None


def _next(number: int, queue: str) -> int | None:
    """The row that dead letter `number` got in `queue`, where it was moved from its own."""
    letter = DeadLetter.objects.only("queue", "setting_key", "message_key", "message_key_weak").get(pk=number)
    if not letter.message_key or letter.message_key_weak:
        return None
    same = DeadLetter.objects.filter(message_key=letter.message_key, setting_key=letter.setting_key)
    moved = same.filter(queue=queue, orig_queue=letter.queue, pk__gt=number)
    return moved.order_by("pk").values_list("pk", flat=True).first()


# -- who put a dead letter into the trash, when and why ------------------------------------------------------
# A move gives a dead letter a new id, so it is told by its setting, its message and the time: the last job
# before it was seen there that moved this message into the trash.


# Jobs of one setting that are looked through, and those that are asked about one dead letter.
JOBS, ASKED = 200, 10
# A worker's clock and the one of the process that walks the trash may differ.
CLOCKS = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class TrashEntry:
    """`job` None: not by us, or so long ago that nobody knows."""

    letter: DeadLetter
    job: ReplayJob | None


def trash_entries(letters: Sequence[DeadLetter]) -> list[TrashEntry]:
    """Returns them in the same order; some questions for each dead letter, so of one page only."""
    jobs = _jobs({letter.setting_key for letter in letters})
    return [TrashEntry(letter, _job_of(letter, jobs[letter.setting_key])) for letter in letters]


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


# -- originals of edited messages, whose copies were replayed instead ----------------------------------------


def edited_copies(letters: Iterable[DeadLetter]) -> dict[int, ReplayItem]:
    """By dead letter that is or was in the trash: the item whose edited copy was replayed instead of it. Two
    statements, where any lies there."""
    there = [letter for letter in letters if letter.queue == BIN_QUEUE and letter.message_key]
    if not there:
        return {}
    rows = DeadLetter.objects.filter(pk__in=[letter.pk for letter in there]).order_by()
    copied = with_copies(read(rows))
    return _items_of([letter for letter in there if letter.pk in copied]) if copied else {}


def _items_of(letters: Sequence[DeadLetter]) -> dict[int, ReplayItem]:
    items = ReplayItem.objects.filter(
        letter__message_key__in={letter.message_key for letter in letters},
        job__action=Action.EDIT,
        edit__state__in=(EditState.SENT, EditState.DONE),
    )
    found: dict[int, ReplayItem] = {}
    for item in items.select_related("job", "letter").order_by("letter__orig_message_id", "pk"):
        for letter in letters:
            same = _place_of(item.letter) == _place_of(letter)
            if same and (letter.message_key_weak or item.letter.orig_message_id < letter.orig_message_id):
                found[letter.pk] = item
    return found


def _place_of(letter: DeadLetter) -> tuple[str, str, str]:
    return letter.node_id, letter.setting_key, letter.message_key
