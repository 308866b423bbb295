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
# Of the message's own row, while it may be in the trash itself: of an edited one the copy was replayed.
LEFT_FOR_THE_TRASH = (LetterState.DISCARDED.value, LetterState.GONE.value)


def word_of(state: str) -> str:
    """Returns what its state is called as a place of a message."""
    return WORDS[state]


def places_of(cases: Collection[Case]) -> Mapping[Case, Place]:
    """By the latest of its dead letters; processed since that was replayed where a KMA said so. A row in the
    trash is newer than the message's own one, and says nothing of a copy that was replayed instead."""
    keys = {key for _setting, key in cases}
    rows = DeadLetter.objects.filter(message_key__in=keys).order_by("seen_at", "pk")
    own: dict[Case, Place] = {}
    in_trash: dict[Case, Place] = {}
    for setting, key, queue, state, seen_at, state_at in rows.values_list(
        "setting_key", "message_key", "queue", "state", "seen_at", "state_at"
    ):
        (in_trash if queue == BIN_QUEUE else own)[setting, key] = state, max(seen_at, state_at)
    handled = _handled(keys)
    return {
        case: _place(own.get(case), in_trash.get(case), handled.get(case))
        for case in set(cases) & (own.keys() | in_trash.keys())
    }


def _handled(keys: Collection[str]) -> Mapping[Case, datetime]:
    reports = LetterReport.objects.filter(message_key__in=keys, result=LetterResult.HANDLED, verified=True)
    found = reports.order_by().values_list("setting_key", "message_key").annotate(Max("received_at"))
    return {(setting, key): at for setting, key, at in found}


def _place(own: Place | None, in_trash: Place | None, handled: datetime | None) -> Place:
    """Pure. `own`, `in_trash`: state of the latest dead letter there, and since when; one of them is
    known."""
    is_there = in_trash is not None and in_trash[0] == LetterState.DEAD
    if in_trash is not None and is_there and (own is None or own[0] in LEFT_FOR_THE_TRASH):
        return MessageState.IN_TRASH.value, in_trash[1]
    known = own or in_trash
    assert known is not None
    state, since = known
    if state == LetterState.GIVEN_BACK and handled is not None and handled >= since:
        return MessageState.RECOVERED.value, handled
    return WORDS[state], since
