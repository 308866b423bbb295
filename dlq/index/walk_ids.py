"""Describes which dead letters a walk sees: each by one number that is its own in its queue.

Mostly that is the broker's id of the message before it died. But one message that dies in two subscriptions
has the same id twice in a queue that takes the dead letters of both (foreign ones, those of nobody, the
trash); and a dead letter that somebody sent there has none. Such dead letters get a negative number from what
else tells them apart.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from broker.amqp.sections import read_named_values
from broker.port import MessageUndecodable
from contract.names import (
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
    subscription_of,
)
from dlq.dead_letters.rules.parser import name_of_queue, own_number
from dlq.models import DeadLetter

IDS = (ORIG_MESSAGE_ID, ORIG_QUEUE), (ANNOTATED_ORIG_MESSAGE_ID, ANNOTATED_ORIG_QUEUE)
ID = (ORIG_MESSAGE_ID,), (ANNOTATED_ORIG_MESSAGE_ID,)


class Numbers:
    """The ids that a walk saw, 8 bytes each: 8 MB for a million dead letters, where a set of them takes 60
    MB. Queues are mostly in the order of ids, so it is mostly sorted already."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._sorted = True

    def add(self, numbers: Iterable[int]) -> None:
        self._numbers.extend(numbers)
        self._sorted = False

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[int]:
        """Sorted."""
        self._sort()
        return iter(self._numbers)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        self._sort()
        place = bisect_left(self._numbers, number)
        return place < len(self._numbers) and self._numbers[place] == number

    def within(self, first: int, last: int) -> int:
        """Returns how many lie between the two, both inclusive."""
        self._sort()
        return bisect_right(self._numbers, last) - bisect_left(self._numbers, first)

    def _sort(self) -> None:
        if not self._sorted:
            if any(before > after for before, after in pairwise(self._numbers)):
                self._numbers = array("q", sorted(self._numbers))
            self._sorted = True


@dataclass(frozen=True, slots=True)
class IndexedRow:
    """Holds what the index has under a number."""

    state: str
    orig_queue: str
    body_deleted: bool = False


@dataclass(slots=True)
class Seen:
    """A dead letter of a piece. `row` is there where it had to be read to tell which one it is."""

    encoded: bytes
    row: DeadLetter | None = None


class DeadLetterIdentifier:
    """Tells the dead letters of one walk apart. `mixed`: the queue takes dead letters of several queues.
    `read` makes the row of a dead letter, `known` asks the index."""

    def __init__(
        self,
        *,
        mixed: bool,
        read: Callable[[bytes], DeadLetter],
        known: Callable[[Iterable[int]], Mapping[int, IndexedRow]],
    ) -> None:
        self._mixed = mixed
        self._read = read
        self._known = known
        self._repeated: Counter[int] = Counter()

    def of(self, piece: Sequence[bytes]) -> tuple[dict[int, Seen], dict[int, IndexedRow]]:
        """Each dead letter of the piece under its number, and what the index has of these."""
        letters: dict[int, Seen] = {}
        origins: dict[int, str] = {}
        apart: dict[int, Seen] = {}
        for encoded in piece:
            number, origin = _identity(encoded, self._mixed)
            if number is None:
                row = self._without_id(encoded)
                letters[row.orig_message_id] = Seen(encoded, row)
            elif self._mixed and number in letters and origins.get(number) != origin:
                apart[_number_apart(number, origin)] = Seen(encoded)
            else:
                letters[number], origins[number] = Seen(encoded), origin
        known = dict(self._known(letters))
        if self._mixed:
            others = [
                number
                for number in origins
                if number in known and known[number].orig_queue != origins[number]
            ]
            for number in others:
                apart[_number_apart(number, origins[number])] = letters.pop(number)
                del known[number]
            known.update(self._known(apart) if apart else {})
        return letters | apart, known

    def _without_id(self, encoded: bytes) -> DeadLetter:
        """The same content again is one more dead letter."""
        row = self._read(encoded)
        self._repeated[row.orig_message_id] += 1
        again = self._repeated[row.orig_message_id]
        if again > 1:
            row.orig_message_id = own_number(f"{row.orig_message_id}\0{again}".encode())
        return row


def number_of(encoded: bytes) -> int | None:
    """The id by which a dead letter is known and moved; None where it has none or is no message."""
    return _identity(encoded, False)[0]


def _identity(encoded: bytes, mixed: bool) -> tuple[int | None, str]:
    try:
        found = read_named_values(encoded, *(IDS if mixed else ID))
    except MessageUndecodable:
        return None, ""
    number = found.get(ORIG_MESSAGE_ID, found.get(ANNOTATED_ORIG_MESSAGE_ID))
    if not isinstance(number, int) or not 0 <= number < 2**63:
        return None, ""
    origin = found.get(ORIG_QUEUE, found.get(ANNOTATED_ORIG_QUEUE))
    return number, subscription_of(name_of_queue(origin)) if isinstance(origin, str) else ""


def _number_apart(number: int, origin: str) -> int:
    return own_number(f"{number}\0{origin}".encode())
