"""Whether the index knows exactly the letters of a queue: then nothing has to be walked to plan a job.

The feed is asked between two figures of the queue. It was empty: every death before the first is a row. The
figures are equal: nothing died or left meanwhile. As many rows as letters: they are the same letters.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dlq.letter_queues import LetterQueues, WalkIncomplete
from dlq.models import DeadLetter, LetterState
from dlq.walking import Numbers

TRIES, APART = 4, 0.25
# Letters of a queue that a walk reads in a second, and that a move looks at to find its own.
WALKED, LOOKED_AT = 4000, 400_000
# Seconds of a move of one letter besides.
ONE_BY_ONE = 0.01
AT_ONCE = 1000
# Seconds between two signs that a walk goes on.
SIGN_EVERY = 5.0


def agrees(queue: str, queues: LetterQueues, tries: int = TRIES) -> bool:
    """Asked some times, for letters that die at this moment. Raises AddressUnknown: there is no such
    queue."""
    for attempt in range(tries):
        if attempt:
            time.sleep(APART)
        before = queues.figures(queue)
        if not queues.feed_is_empty():
            continue
        rows = DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD).count()
        if queues.figures(queue) == before and rows == before.count:
            return True
    return False


def worth(in_queue: int, *, alone: bool) -> int:
    """How often to ask: once where what is done else (letters moved `alone`, a walk) takes no longer than
    asking."""
    return 1 if alone or in_queue < WALKED * APART * TRIES else TRIES


def walk_costs_more(letters: int, in_queue: int) -> bool:
    """Than moving so few letters each alone, which is exact without a walk."""
    return letters * (ONE_BY_ONE + in_queue / LOOKED_AT) < in_queue / WALKED


@dataclass(frozen=True, slots=True)
class Found:
    """The ids that lie in a queue; `held` are those of them that a consumer has in delivery."""

    numbers: Numbers
    held: frozenset[int] = frozenset()

    def __contains__(self, number: int) -> bool:
        return number in self.numbers

    def within(self, first: int, last: int) -> int:
        return self.numbers.within(first, last)


def present(queue: str, queues: LetterQueues, renew: Callable[[int], bool]) -> Found | None:
    """The ids that lie in the queue, few bytes each. `renew` is asked from time to time whether to go on
    after so many; None: it said no. Raises WalkIncomplete, BrokerError.

    A walk does not see what another consumer has in delivery. Such a letter is still there: it may come
    back."""
    found, some = Numbers(), list[int]()
    sign, seen = 0.0, 0
    try:
        for number in queues.numbers(queue):
            some.append(number)
            if len(some) == AT_ONCE:
                found.add(some)
                seen += len(some)
                some = []
                if time.monotonic() >= sign:
                    sign = time.monotonic() + SIGN_EVERY
                    if not renew(seen):
                        return None
        found.add(some)
    except WalkIncomplete as incomplete:
        found.add(some)
        held = queues.in_delivery(queue)
        unseen = [number for number in held if number not in found]
        if not unseen or incomplete.seen + len(unseen) < incomplete.counted:
            raise
    else:
        # Letters that came during the walk may have made up in the count for those that it could not see.
        held = queues.in_delivery(queue)
        unseen = [number for number in held if number not in found]
    found.add(unseen)
    return Found(found, held)
