"""Where a message is that was dead-lettered, for who lists its failures."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Max

from dlq.models import DeadLetter, LetterReport, LetterState
from dlq.models.dead_letter import LetterResult
from failures.protocols.messages import Case, MessageState, Place

WORDS = {
    LetterState.DEAD.value: MessageState.DEAD.value,
    LetterState.GIVEN_BACK.value: MessageState.REPLAYED.value,
    LetterState.GONE.value: MessageState.GONE.value,
    LetterState.DISCARDED.value: MessageState.DISCARDED.value,
}


def word_of(state: str) -> str:
    """Returns what its state is called as a place of a message."""
    return WORDS[state]


def places_of(cases: Collection[Case]) -> Mapping[Case, Place]:
    """By the latest of its dead letters; processed since that was replayed where a KMA said so."""
    keys = {key for _setting, key in cases}
    rows = DeadLetter.objects.filter(message_key__in=keys).order_by("seen_at", "pk")
    latest = {
        (setting, key): (state, max(seen_at, state_at))
        for setting, key, state, seen_at, state_at in rows.values_list(
            "setting_key", "message_key", "state", "seen_at", "state_at"
        )
    }
    handled = _handled(keys)
    return {case: _place(*found, handled.get(case)) for case, found in latest.items() if case in cases}


def _handled(keys: Collection[str]) -> Mapping[Case, datetime]:
    reports = LetterReport.objects.filter(message_key__in=keys, result=LetterResult.HANDLED, verified=True)
    found = reports.order_by().values_list("setting_key", "message_key").annotate(Max("received_at"))
    return {(setting, key): at for setting, key, at in found}


def _place(state: str, since: datetime, handled: datetime | None) -> Place:
    if state == LetterState.GIVEN_BACK and handled is not None and handled >= since:
        return MessageState.RECOVERED.value, handled
    return WORDS[state], since
