"""What became of messages after the broker was asked: looked up where they were to go and where they were."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from broker import waiting
from broker.port import Management
from contract.properties import HOLD, dead_letter_queue, hold_queue
from dlq.letter_queues import LetterQueues
from dlq.models import DeadLetter
from dlq.models.waiting import WaitingAction, WaitingKind
from dlq.reading import origin_of

Numbers = Collection[int]
AT_ONCE = 500
# More than any queue holds: a walk ends where the queue does.
EVERYTHING = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """By the broker's id. Of the others nothing is known; `later`: more may be known in a moment."""

    done: frozenset[int]
    stayed: frozenset[int] = frozenset()
    later: bool = False


def look_up(action: WaitingAction, numbers: Numbers, queues: LetterQueues) -> Found:
    broker, key = queues.management, action.setting_key
    if action.kind == WaitingKind.TRY_NOW:
        return _no_more_delayed(broker, key, numbers)
    if action.kind == WaitingKind.RELEASE:
        return _no_more_held(broker, key, numbers)
    if action.kind == WaitingKind.HOLD:
        done, later = _held(queues, key).intersection(numbers), False
    else:
        done, later = _dead(key, numbers, queues.node_id()), True
    stayed = frozenset(numbers) - done
    return Found(done, stayed & _in_subscription(broker, key) if stayed else stayed, later)


def _no_more_delayed(broker: Management, key: str, numbers: Numbers) -> Found:
    """Of more than can be told which are still delayed is unknown."""
    rows = waiting.delayed(broker, key)
    if rows is None:
        return Found(frozenset())
    still = _ids(rows).intersection(numbers)
    return Found(frozenset(numbers) - still, still)


def _no_more_held(broker: Management, key: str, numbers: Numbers) -> Found:
    """They were among the first of the hold queue, and nobody else takes anything from it: what has not left
    it is among the first still."""
    still = _ids(waiting.first_waiting(broker, hold_queue(key))).intersection(numbers)
    return Found(frozenset(numbers) - still, still)


def _held(queues: LetterQueues, key: str) -> frozenset[int]:
    """The ids that the held messages had in the subscription: a walk, linear in what is held."""
    walk = queues.browser.browse(HOLD, hold_queue(key), limit=EVERYTHING)
    found = (origin_of(browsed.message).message_id for browsed in walk if browsed.message)
    return frozenset(number for number in found if number is not None)


def _dead(key: str, numbers: Numbers, node_id: str) -> frozenset[int]:
    wanted = sorted(numbers)
    found: set[int] = set()
    for start in range(0, len(wanted), AT_ONCE):
        letters = DeadLetter.objects.filter(
            node_id=node_id, queue=dead_letter_queue(key), orig_message_id__in=wanted[start : start + AT_ONCE]
        )
        found.update(letters.values_list("orig_message_id", flat=True))
    return frozenset(found)


def _in_subscription(broker: Management, key: str) -> frozenset[int]:
    """As far as it can be told in bounded answers: those in delivery above all, for they cannot be acted
    upon."""
    groups = waiting.in_delivery(broker, key) or ()
    held = (row for group in groups for row in group.rows)
    return _ids([*waiting.first_waiting(broker, key), *(waiting.delayed(broker, key) or ()), *held])


def _ids(rows: Iterable[waiting.Row]) -> frozenset[int]:
    return frozenset(int(row["messageID"]) for row in rows)
