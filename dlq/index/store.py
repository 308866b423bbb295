"""Writing dead letters to the index: the same dead letter twice is one row."""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import wraps
from typing import ParamSpec, TypeVar

import structlog
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models import F

from agents.models import LaunchSetting
from console.database.bulk import insert_rows, reserve_numbers
from dlq.dead_letters.queries.ranges import letters_numbered
from dlq.dead_letters.rules.parser import raw_row
from dlq.index import causes
from dlq.index.causes import Case
from dlq.models import DeadLetter
from dlq.models.content import content_of
from dlq.outcomes import settlement
from dlq.search.word_index import add_words, prepare

log = structlog.get_logger(__name__)


def insert(rows: Sequence[DeadLetter]) -> None:
    """Stores unsaved rows and gives each its pk, growing in their order. Call it in a transaction.

    Raises IntegrityError when one of them is stored already, DataError for a value that its column does not
    take; then nothing of them is stored once the transaction ends.
    """
    contents = [content_of(row) for row in rows]
    numbers = reserve_numbers(DeadLetter, len(rows))
    for row, content, number in zip(rows, contents, numbers, strict=True):
        row.pk = content.letter_id = number
    insert_rows(rows)
    insert_rows(contents)
    for each in (*rows, *contents):
        each._state.adding, each._state.db = False, connection.alias


Death = tuple[str, str, int]


def store(rows: Sequence[DeadLetter], now: datetime) -> list[DeadLetter]:
    """Stores what is new, with what is known of why each died, in one transaction; the rows that were new."""
    try:
        new = _store(rows, now)
    except IntegrityError:
        # Somebody else stored one of them meanwhile: now it is seen.
        new = _store(rows, now)
    causes.explain_stored(new)
    return new


def store_safely(rows: Sequence[DeadLetter], now: datetime) -> list[DeadLetter]:
    """Stores as `store` does; keeps the bytes of dead letters that the database refuses, for they must not
    stop the others."""
    try:
        return store(rows, now)
    except (OperationalError, InterfaceError):
        raise
    except (DatabaseError, ValueError, TypeError) as error:
        log.error("dead letters indexed one by one", reason=str(error))
    return [stored for row in rows for stored in _store_one(row, now)]


def _store_one(row: DeadLetter, now: datetime) -> list[DeadLetter]:
    encoded = bytes(row.encoded)
    try:
        return store([row], now)
    except (OperationalError, InterfaceError):
        raise
    except (DatabaseError, ValueError, TypeError) as error:
        raw = raw_row(encoded, row.node_id, now, f"{type(error).__name__}: {error}")
        raw.queue, raw.orig_message_id = row.queue, row.orig_message_id
        raw.setting_key, raw.orig_queue = row.setting_key, row.orig_queue
        return store([raw], now)


@transaction.atomic
def _store(rows: Sequence[DeadLetter], now: datetime) -> list[DeadLetter]:
    new = _new(rows)
    if not new:
        return []
    settings = LaunchSetting.objects.in_bulk({row.setting_key for row in new}, field_name="key")
    for row in new:
        row.setting = settings.get(row.setting_key)
    _number_chapters(new)
    causes.explain(new)
    words = prepare(new)
    insert(new)
    add_words(new, words)
    settlement.settle({case_key(row) for row in new if row.message_key}, now)
    return new


def case_key(row: DeadLetter) -> Case:
    return row.setting_key, row.message_key


def _death(row: DeadLetter) -> Death:
    return row.node_id, row.queue, row.orig_message_id


def _new(rows: Iterable[DeadLetter]) -> list[DeadLetter]:
    unique = {_death(row): row for row in rows}
    numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for node_id, queue, number in unique:
        numbers[node_id, queue].append(number)
    for (node_id, queue), some in numbers.items():
        for number in letters_numbered(node_id, queue, some).values_list("orig_message_id", flat=True):
            del unique[node_id, queue, number]
    return list(unique.values())


def _number_chapters(new: Sequence[DeadLetter]) -> None:
    """Numbers them by earlier deaths of the same key. A weak key tells nothing: the replay that it came back
    from does. What was moved from one dead-letter queue to another did not die again."""
    strong = [row for row in new if row.message_key and not row.message_key_weak]
    before: dict[Case, int] = defaultdict(int)
    keys = {row.message_key for row in strong}
    died = DeadLetter.objects.filter(message_key__among=keys, orig_queue=F("setting_key"))
    # The rows of the first ones may be gone by their age; those that came later know how many there were.
    for key, message_key, chapter in died.values_list("setting_key", "message_key", "chapter").order_by("pk"):
        before[key, message_key] = max(before[key, message_key] + 1, chapter)
    for row in sorted(strong, key=lambda row: row.orig_message_id):
        if row.died_here:
            before[case_key(row)] += 1
        row.chapter = max(1, before[case_key(row)])


# -- batches without the search for reference cycles ---------------------------------------------------------
# Among many thousand objects that all live until the commit it finds none, again and again, for a fifth of
# the time.


Given = ParamSpec("Given")
Result = TypeVar("Result")


def uncollected(batch: Callable[Given, Result]) -> Callable[Given, Result]:
    """Wraps a function that works on one batch of bounded size and keeps nothing of it: counting references
    frees what it made when it returns."""

    @wraps(batch)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        collected = gc.isenabled()
        gc.disable()
        try:
            return batch(*args, **kwargs)
        finally:
            if collected:
                gc.enable()

    return run
