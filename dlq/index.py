"""Writing letters to the index: the same letter twice is one row."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

import structlog
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models import F

from agents.models import LaunchSetting
from dlq import causes
from dlq.inserting import insert
from dlq.models import DeadLetter
from dlq.numbered import letters_numbered
from dlq.reading import raw_row
from dlq.replay import joining
from dlq.search.storing import add, prepare

log = structlog.get_logger(__name__)

Case = tuple[str, str]
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
    """As `store`; of letters that the database refuses the bytes are kept, for they must not stop the
    others."""
    try:
        return store(rows, now)
    except (OperationalError, InterfaceError):
        raise
    except (DatabaseError, ValueError, TypeError) as error:
        log.error("letters stored one by one", reason=str(error))
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
    add(new, words)
    joining.settle({case_of(row) for row in new if row.message_key}, now)
    return new


def case_of(row: DeadLetter) -> Case:
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
    """By the deaths of the same key before. A weak key tells nothing: the replay that it came back from does.
    What was moved from one dead-letter queue to another did not die again."""
    strong = [row for row in new if row.message_key and not row.message_key_weak]
    before: dict[Case, int] = defaultdict(int)
    keys = {row.message_key for row in strong}
    died = DeadLetter.objects.filter(message_key__among=keys, orig_queue=F("setting_key"))
    # The rows of the first ones may be gone by their age; those that came later know how many there were.
    for key, message_key, chapter in died.values_list("setting_key", "message_key", "chapter").order_by("pk"):
        before[key, message_key] = max(before[key, message_key] + 1, chapter)
    for row in sorted(strong, key=lambda row: row.orig_message_id):
        if row.died_here:
            before[case_of(row)] += 1
        row.chapter = max(1, before[case_of(row)])
