"""Where a message is that was dead-lettered, for who lists its failures."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Max

from dlq.models import DeadLetter, LetterReport, LetterState
from dlq.models.dead_letter import BIN_QUEUE, LetterResult
from failures.protocols.messages import Case, MessageState, Place

WORDS = {
    LetterState.DEAD.value: MessageState.DEAD.value,
    LetterState.GIVEN_BACK.value: MessageState.REPLAYED.value,
    LetterState.GONE.value: MessageState.GONE.value,
    LetterState.DISCARDED.value: MessageState.DISCARDED.value,
}


def word_of(queue: str, state: str) -> str:
    """Returns what its state is called as a place of a message: what lies in the trash is discarded."""
    in_trash = queue == BIN_QUEUE and state == LetterState.DEAD
    return WORDS[LetterState.DISCARDED.value if in_trash else state]


def places_of(cases: Collection[Case]) -> Mapping[Case, Place]:
    """By the latest of its dead letters; processed since that was replayed where a KMA said so. A row in the
    trash counts where there is no other: the one that it had before says whether the message was discarded,
    or edited and replayed."""
    keys = {key for _setting, key in cases}
    rows = DeadLetter.objects.filter(message_key__in=keys).order_by("seen_at", "pk")
    found = rows.values_list("queue", "setting_key", "message_key", "state", "seen_at", "state_at")
    trash_first = sorted(found, key=lambda row: row[0] != BIN_QUEUE)
    latest = {
        (setting, key): (word_of(queue, state), max(seen_at, state_at))
        for queue, setting, key, state, seen_at, state_at in trash_first
    }
    handled = _handled(keys)
    return {case: _place(*found, handled.get(case)) for case, found in latest.items() if case in cases}


def _handled(keys: Collection[str]) -> Mapping[Case, datetime]:
    reports = LetterReport.objects.filter(message_key__in=keys, result=LetterResult.HANDLED, verified=True)
    found = reports.order_by().values_list("setting_key", "message_key").annotate(Max("received_at"))
    return {(setting, key): at for setting, key, at in found}


def _place(word: str, since: datetime, handled: datetime | None) -> Place:
    if word == MessageState.REPLAYED and handled is not None and handled >= since:
        return MessageState.RECOVERED.value, handled
    return word, since
