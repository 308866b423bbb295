"""Writing letters to the index: the same letter twice is one row."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import IntegrityError, transaction

from agents.models import LaunchSetting
from dlq import causes
from dlq.models import DeadLetter
from dlq.replay import joining
from dlq.search.storing import add, prepare

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
    DeadLetter.objects.bulk_create(new)
    add(new, words)
    joining.settle({case_of(row) for row in new if row.message_key}, now)
    return new


def case_of(row: DeadLetter) -> Case:
    return row.setting_key, row.message_key


def _death(row: DeadLetter) -> Death:
    return row.node_id, row.queue, row.orig_message_id


def _new(rows: Iterable[DeadLetter]) -> list[DeadLetter]:
    unique = {_death(row): row for row in rows}
    numbers = {number for _, _, number in unique}
    stored = DeadLetter.objects.filter(orig_message_id__in=numbers)
    for death in stored.values_list("node_id", "queue", "orig_message_id"):
        unique.pop(death, None)
    return list(unique.values())


def _number_chapters(new: Sequence[DeadLetter]) -> None:
    """By the deaths of the same key before. A weak key tells nothing: the replay that it came back from does."""
    strong = [row for row in new if row.message_key and not row.message_key_weak]
    before: dict[Case, int] = defaultdict(int)
    keys = {row.message_key for row in strong}
    for case in DeadLetter.objects.filter(message_key__in=keys).values_list("setting_key", "message_key"):
        before[case] += 1
    for row in sorted(strong, key=lambda row: row.orig_message_id):
        before[case_of(row)] += 1
        row.chapter = before[case_of(row)]
