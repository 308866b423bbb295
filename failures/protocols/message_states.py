"""Where the message of a failure is now: still retried, dead-lettered, replayed or recovered."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Q, TextChoices
from django.utils.translation import pgettext_lazy

from failures.hooks import message_places
from failures.models import FailureProtocol, RecoveredMessage

# (setting key, message key)
Case = tuple[str, str]
# What a higher app knows of it: a word of `MessageState`, and since when.
Place = tuple[str, datetime]


class MessageState(TextChoices):
    RETRIED = "retried", pgettext_lazy("message", "being retried")
    DEAD = "dead", pgettext_lazy("message", "dead-lettered")
    REPLAYED = "replayed", pgettext_lazy("message", "replayed")
    RECOVERED = "recovered", pgettext_lazy("message", "processed later")
    ELSEWHERE = "exception", pgettext_lazy("message", "sent to the exception destination")
    DISCARDED = "discarded", pgettext_lazy("message", "discarded")
    GONE = "gone", pgettext_lazy("message", "no longer at the broker")


@dataclass(frozen=True, slots=True)
class LastFailure:
    """Of a message. `attempt` and `at` are the greatest of all. `exhausted`: there is no attempt left;
    `disposition` says what became of it then."""

    at: datetime
    attempt: int
    exhausted: bool = False
    disposition: str = ""


def state_of(
    failed: LastFailure, recovered: tuple[int, datetime] | None, place: Place | None
) -> MessageState:
    """Pure. `recovered`: the greatest attempt and instant at which it was processed. A later attempt is later
    also where the clocks of two servers disagree."""
    processed = recovered is not None and (recovered[0] > failed.attempt or recovered[1] >= failed.at)
    if place is not None and not (processed and recovered is not None and recovered[1] >= place[1]):
        return MessageState(place[0])
    if processed:
        return MessageState.RECOVERED
    if not failed.exhausted:
        return MessageState.RETRIED
    return {"exception": MessageState.ELSEWHERE, "discarded": MessageState.DISCARDED}.get(
        failed.disposition, MessageState.DEAD
    )


def message_states(rows: Iterable[FailureProtocol]) -> dict[Case, MessageState]:
    """Of a page of protocols, in a few questions by indexes. Messages that share a weak key have none: nobody
    can tell which is which."""
    cases = {
        (row.setting_key, row.message_key) for row in rows if row.message_key and not row.message_key_weak
    }
    if not cases:
        return {}
    failed, recovered = _failed(cases), _recovered(cases)
    places: dict[Case, Place] = {}
    for known in message_places(cases):
        places |= known
    return {
        case: state_of(failed[case], recovered.get(case), places.get(case)) for case in cases & failed.keys()
    }


def _failed(cases: Collection[Case]) -> Mapping[Case, LastFailure]:
    keys = {key for _setting, key in cases}
    rows = FailureProtocol.objects.filter(message_key__in=keys).order_by()
    exhausted = rows.filter(Q(last_attempt=True) | ~Q(disposition=""))
    last = exhausted.values_list("setting_key", "message_key").annotate(Max("disposition"))
    ended = {(setting, key): disposition for setting, key, disposition in last}
    found = rows.values_list("setting_key", "message_key").annotate(Max("occurred_at"), Max("attempt"))
    return {
        (setting, key): LastFailure(at, attempt, (setting, key) in ended, ended.get((setting, key), ""))
        for setting, key, at, attempt in found
    }


def _recovered(cases: Collection[Case]) -> Mapping[Case, tuple[int, datetime]]:
    keys = {key for _setting, key in cases}
    rows = RecoveredMessage.objects.filter(message_key__in=keys, verified=True).order_by()
    found = rows.values_list("setting_key", "message_key").annotate(Max("attempt"), Max("occurred_at"))
    return {(setting, key): (attempt, at) for setting, key, attempt, at in found}
