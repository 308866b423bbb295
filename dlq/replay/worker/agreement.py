"""Describes whether the index knows exactly the dead letters of a queue: then nothing has to be walked to
plan a job.

The feed is asked between two figures of the queue. It was empty: every death before the first is a row. The
figures are equal: nothing died or left meanwhile. As many rows as dead letters: they are the same dead
letters.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from uuid import UUID

from django.db.models import Max

from broker.port import Management
from console.jobs import crash
from dlq.index.broker import LetterQueues
from dlq.index.walk import WalkIncomplete
from dlq.index.walk_ids import Numbers
from dlq.models import DeadLetter, LetterState, ReplayJob
from dlq.replay.counts import walking

TRIES, APART = 4, 0.25
# Dead letters of a queue that a walk reads in a second, and that a move looks at to find its own.
WALKED, LOOKED_AT = 4000, 400_000
# Seconds of a move of one dead letter besides.
ONE_BY_ONE = 0.01
AT_ONCE = 1000
# Seconds between two signs that a walk goes on.
SIGN_EVERY = 5.0


def agrees(queue: str, queues: LetterQueues, tries: int = TRIES) -> bool:
    """Asked some times, for dead letters that die at this moment. Raises AddressUnknown: there is no such
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
    """How often to ask: once where what is done else (dead letters moved `alone`, a walk) takes no longer
    than asking."""
    return 1 if alone or in_queue < WALKED * APART * TRIES else TRIES


def walk_costs_more(letters: int, in_queue: int) -> bool:
    """Than moving so few dead letters each alone, which is exact without a walk."""
    return letters * (ONE_BY_ONE + in_queue / LOOKED_AT) < in_queue / WALKED


@dataclass(frozen=True, slots=True)
class IdsInQueue:
    """The ids that lie in a queue; `held` are those of them that a consumer has in delivery."""

    numbers: Numbers
    held: frozenset[int] = frozenset()

    def __contains__(self, number: int) -> bool:
        return number in self.numbers

    def within(self, first: int, last: int) -> int:
        return self.numbers.within(first, last)


def present(queue: str, queues: LetterQueues, renew: Callable[[int], bool]) -> IdsInQueue | None:
    """The ids that lie in the queue, few bytes each. `renew` is asked from time to time whether to go on
    after so many; None: it said no. Raises WalkIncomplete, BrokerError.

    A walk does not see what another consumer has in delivery. Such a dead letter is still there: it may come
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
        # Dead letters that came during the walk may have made up in the count for those that it could not
        # see.
        held = queues.in_delivery(queue)
        unseen = [number for number in held if number not in found]
    found.add(unseen)
    return IdsInQueue(found, held)


# -- one walk of a dead-letter queue for every job that was asked for before it began ------------------------
# A job whose queue and index disagree needs the ids that lie in the queue before it is planned. Many small
# jobs of one queue would each read the whole of it. What a walk saw is kept in the memory of the worker, 8
# bytes a dead letter, and serves the jobs that follow. Nothing of it is stored: a worker that dies takes it
# along, and the next job walks again.
#
# It may be old, because a job takes from it only what cannot have changed to its harm:
#
# - A letter that the walk did not see is missing, where its row is older than the walk (`letters_up_to` of
#   the job is not above the newest row at its begin). The row of a letter is written after it came into the
#   queue, so the walk would have seen it. A job that may hold younger rows walks itself.
# - A letter that it saw and that left since is planned and found missing by the answer to its move, as one
#   that leaves after a walk of the job's own.
# - It is of one broker: another node id is another walk.
#
# What jobs moved into one dead-letter queue (the trash) is indexed by one walk too. It serves every job whose
# dead letters were all there before it began, by the rows of its slices. Which jobs it served is kept in
# memory: after a death they walk again.


# Seconds that a walk is kept, and of how many queues.
KEPT = 600.0
MOST_QUEUES = 4
MOST_INDEXED = 10_000


@dataclass(frozen=True, slots=True)
class SharedWalk:
    """`broker` is whom it asked. `newest`: the last row of the index before it began. `ended_at`: by the
    clock of this process."""

    broker: Management
    numbers: Numbers
    node_id: str
    newest: int
    ended_at: float

    def serves(self, job: ReplayJob, node_id: str, now: float) -> bool:
        younger = job.letters_up_to is None or job.letters_up_to > self.newest
        return self.node_id == node_id and not younger and now - self.ended_at < KEPT


_lock = threading.Lock()
_numbers = count()
_walks: dict[str, SharedWalk] = {}
# Jobs by the walk that goes on, and those of walks that came to their end: bounded, the oldest first.
_under_way: dict[int, set[UUID]] = {}
_indexed: dict[UUID, None] = {}


def present_for(job: ReplayJob, node_id: str, queues: LetterQueues) -> Numbers | None:
    """The ids in the queue that the job takes from, for planning it: of a walk that there was, or of one now.
    None: it may not go on. Raises WalkIncomplete, BrokerError."""
    with _lock:
        known = _walks.get(job.source_queue)
    if (
        known is not None
        and known.broker is queues.management
        and known.serves(job, node_id, time.monotonic())
    ):
        return known.numbers
    newest = DeadLetter.objects.aggregate(last=Max("pk"))["last"] or 0
    with walking(job, job.source_queue) as renew:
        found = present(job.source_queue, queues, renew)
    crash.point("walked to plan")
    if found is None:
        return None
    _keep(job.source_queue, SharedWalk(queues.management, found.numbers, node_id, newest, time.monotonic()))
    return found.numbers


@contextmanager
def indexing(jobs: set[UUID]) -> Iterator[Callable[[], None]]:
    """A walk of the queue that these jobs moved to, which begins now. What it gives is called at the end of a
    whole one."""
    walk, ended = next(_numbers), False

    def end() -> None:
        nonlocal ended
        ended = True

    with _lock:
        _under_way[walk] = jobs
    try:
        yield end
    finally:
        with _lock:
            del _under_way[walk]
            if ended:
                _indexed.update(dict.fromkeys(jobs))
            while len(_indexed) > MOST_INDEXED:
                del _indexed[next(iter(_indexed))]


def was_indexed(job: ReplayJob) -> bool:
    with _lock:
        return job.pk in _indexed


def is_being_indexed(job: ReplayJob) -> bool:
    with _lock:
        return any(job.pk in jobs for jobs in _under_way.values())


def _keep(queue: str, walk: SharedWalk) -> None:
    # Sorted before others read it: two threads would sort it at once.
    iter(walk.numbers)
    with _lock:
        _walks.pop(queue, None)
        _walks[queue] = walk
        for old in [each for each, kept in _walks.items() if walk.ended_at - kept.ended_at >= KEPT]:
            del _walks[old]
        while len(_walks) > MOST_QUEUES:
            del _walks[next(iter(_walks))]
