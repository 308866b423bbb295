"""The sweep: does the index hold what the queues hold? It compares counts, and walks where they differ, and
every queue once a day.

It is done by the process that follows the feed, between two batches, in steps of some hundred dead letters:
that process alone knows that the feed is empty and that it holds no dead letter itself; it is the one that
writes dead letters, so a walk never meets another writer's batch; and no worker is held for the minutes that
a walk of a million dead letters takes. Were there two such processes, both would do the same twice and come
to the same.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import InterfaceError, OperationalError

from broker.management.queues import every
from broker.port import AddressUnknown, BrokerError, Browser, Management
from console.reasons import NO_REASON, Reason, said
from dlq.index.queries import FEED_QUEUE, is_indexed
from dlq.index.rules import QueueRecord, judge_queue
from dlq.index.walk import Gone, Walk
from dlq.models import DeadLetter, LetterQueue, LetterState, ReplayJob
from dlq.models.replay import OPEN_JOBS
from dlq.reasons import NO_QUEUE, STILL_DIFFERS

log = structlog.get_logger(__name__)

# Seconds: between two looks at the counts; between two notes of how far a walk is; after which a walk that
# could not go on (the feed had dead letters) is given up, for the broker ends a link that takes nothing; and
# before a walk that changed nothing, or failed, is begun again.
COMPARED_EVERY, NOTE_EVERY, STALLED, AGAIN = 10.0, 2.0, 5.0, 60.0
# … and between two notes that the counts still hold.
STILL_EVERY = 60.0
# Counting rows may take this part of the time: a count that took 0.2 s is done again after 10 s at the
# earliest.
SHARE = 50.0


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    address: str
    messages: int
    added: int


@dataclass(slots=True)
class RowCount:
    """The last count of rows: of which figures of the broker, and not again before."""

    of: tuple[int, int]
    not_before: float


class Sweep:
    def __init__(self, management: Management, browser: Browser, dla: str) -> None:
        self._management = management
        self._browser = browser
        self._dla = dla
        self._counted: dict[str, RowCount] = {}
        self._not_before: dict[str, float] = {}
        self._still: list[str] = []
        self._next_still = 0.0
        self._next_comparison = self._next_note = self._stepped = self._began = 0.0
        self._walk: Walk | Gone | None = None

    def step(self, now: datetime, idle: bool) -> bool:
        """A bounded piece of work; whether more is to be done at once. `idle`: the feed brought nothing just
        now. Never raises for the broker or the database: what was begun is begun anew later."""
        try:
            if self._walk is not None:
                return self._go_on(self._walk, now, idle)
            if time.monotonic() < self._next_comparison:
                return False
            self._next_comparison = time.monotonic() + COMPARED_EVERY
            return self._compare(now, idle)
        except (BrokerError, OperationalError, InterfaceError) as error:
            log.warning("sweep postponed", reason=str(error))
            self._give_up(said(str(error)))
            return False

    def stop(self) -> None:
        if self._walk is not None:
            self._walk.close()

    # -- looking ---------------------------------------------------------------------------------------------

    def _compare(self, now: datetime, idle: bool) -> bool:
        rows = {row.queue: row for row in LetterQueue.objects.exclude(queue=FEED_QUEUE)}
        foreign = {row.queue for row in rows.values() if row.foreign}
        found = {row["name"]: row for row in every(self._management, "listQueues")}
        feed_empty = idle and found.get(FEED_QUEUE, {}).get("messageCount") == "0"
        queues = [
            Queue(name, row["address"], max(0, int(row["messageCount"])), int(row["messagesAdded"]))
            for name, row in found.items()
            if is_indexed(name, foreign) and (row["address"] == self._dla or name in foreign)
        ]
        there = {queue.name for queue in queues}
        # Destroyed at the broker, or a foreign one that is not followed any more: nothing of it is in the
        # index.
        queues += [
            Queue(name, row.address or self._dla, 0, 0) for name, row in rows.items() if name not in there
        ]
        due = [queue for queue in queues if self._judged(queue, rows.get(queue.name), feed_empty, now)]
        self._note_still(now)
        self._forget(row for name, row in rows.items() if name not in there and not row.foreign)
        for queue in self._walkable(due):
            self._begin(queue, now, there=queue.name in there)
            return True
        return False

    def _note_still(self, now: datetime) -> None:
        """Notes now and then that unchanged counts are current."""
        still, self._still = self._still, []
        if time.monotonic() < self._next_still:
            return
        self._next_still = time.monotonic() + STILL_EVERY
        for start in range(0, len(still), 500):
            LetterQueue.objects.filter(queue__in=still[start : start + 500]).update(counted_at=now)

    def _forget(self, rows: Iterable[LetterQueue]) -> None:
        empty = [row.pk for row in rows if row.indexed == 0]
        if empty:
            LetterQueue.objects.filter(pk__in=empty, foreign=False, broker_count=0, indexed=0).delete()

    def _judged(self, queue: Queue, row: LetterQueue | None, feed_empty: bool, now: datetime) -> bool:
        """Writes down what changed; whether the queue is to be walked."""
        row = row or LetterQueue(queue=queue.name, address=queue.address, added_at=now)
        known = QueueRecord(row.broker_count, row.indexed, row.differs_since, row.walked_at)
        counted = self._count(queue, known)
        if counted is None:
            return False
        judged = judge_queue(known, queue.messages, counted, feed_empty=feed_empty, now=now)
        after = QueueRecord(queue.messages, counted, judged.differs_since, judged.walked_at)
        if row.pk is None or after != known:
            values = {
                "address": queue.address,
                "broker_count": queue.messages,
                "indexed": counted,
                "counted_at": now,
                "differs_since": judged.differs_since,
                "walked_at": judged.walked_at,
            }
            if queue.messages == counted:
                values["problem"] = NO_REASON
            LetterQueue.objects.update_or_create(queue=queue.name, defaults=values)
        else:
            self._still.append(queue.name)
        return judged.walk

    def _count(self, queue: Queue, known: QueueRecord) -> int | None:
        """The dead letters that the index has of it; None: counted too lately. They are counted anew only
        when the broker's figures changed or the last counts differed, and a walk at least once a day counts
        as well."""
        last = self._counted.get(queue.name)
        figures = queue.messages, queue.added
        if (
            last is not None
            and last.of == figures
            and known.indexed is not None
            and known.indexed == known.broker
        ):
            return known.indexed
        began = time.monotonic()
        if last is not None and began < last.not_before:
            return None
        counted = DeadLetter.objects.filter(queue=queue.name, state=LetterState.DEAD).order_by().count()
        ended = time.monotonic()
        self._counted[queue.name] = RowCount(figures, ended + SHARE * (ended - began))
        return counted

    def _walkable(self, due: Iterable[Queue]) -> list[Queue]:
        """The smallest first. Not those whose dead letters a replay is moving: it looks for itself what
        left."""
        moving = set(ReplayJob.objects.filter(state__in=OPEN_JOBS).values_list("source_queue", flat=True))
        free = [queue for queue in due if time.monotonic() >= self._not_before.get(queue.name, 0.0)]
        return sorted((queue for queue in free if queue.name not in moving), key=lambda queue: queue.messages)

    # -- walking ---------------------------------------------------------------------------------------------

    def _begin(self, queue: Queue, now: datetime, *, there: bool) -> None:
        self._began = self._stepped = time.monotonic()
        self._not_before[queue.name] = self._began + AGAIN
        LetterQueue.objects.filter(queue=queue.name).update(walk_started_at=now, walk_seen=0)
        try:
            if not there:
                raise AddressUnknown(str(NO_QUEUE()))
            self._walk = Walk(queue.name, queue.address, self._management, self._browser, now)
        except AddressUnknown:
            self._walk = Gone(queue.name, now)
        log.info("scan started", queue=queue.name, letters=queue.messages, known=there)

    def _go_on(self, walk: Walk | Gone, now: datetime, idle: bool) -> bool:
        if not idle:
            if time.monotonic() - self._stepped > STALLED:
                self._give_up(NO_REASON)
            return False
        more = walk.step(now)
        self._stepped = time.monotonic()
        if not more:
            self._end(walk, now)
        elif self._stepped >= self._next_note:
            self._next_note = self._stepped + NOTE_EVERY
            LetterQueue.objects.filter(queue=walk.queue).update(walk_seen=walk.seen)
        return True

    def _end(self, walk: Walk | Gone, now: datetime) -> None:
        """Counts both once more: what the page shows after a walk is of after it."""
        self._walk = None
        seconds = time.monotonic() - self._began
        self._not_before[walk.queue] = time.monotonic() + max(AGAIN, 20 * seconds)
        self._counted.pop(walk.queue, None)
        self._next_comparison = 0.0
        done = walk.done
        log.info("scan ended", queue=walk.queue, seconds=round(seconds, 1), seen=done.seen, new=done.added,
                 back=done.returned, gone=done.gone)  # fmt: skip
        changed = done.added or done.returned or done.gone
        row = LetterQueue.objects.filter(queue=walk.queue).first()
        if row is None:
            return
        problem = STILL_DIFFERS() if row.differs_since is not None and not changed else NO_REASON
        if isinstance(walk, Gone):
            problem = NO_QUEUE()
            if not row.foreign:
                row.delete()
                return
        LetterQueue.objects.filter(pk=row.pk).update(
            walk_started_at=None, walk_seen=done.seen, walked_at=now, differs_since=None, problem=problem
        )

    def _give_up(self, problem: Reason) -> None:
        if self._walk is None:
            return
        walk, self._walk = self._walk, None
        log.info("scan aborted", queue=walk.queue, reason=str(problem) or "the feed has new messages")
        self._not_before[walk.queue] = time.monotonic() + (AGAIN if problem else COMPARED_EVERY)
        with suppress(BrokerError):
            walk.close()
        with suppress(OperationalError, InterfaceError):
            LetterQueue.objects.filter(queue=walk.queue).update(walk_started_at=None, problem=problem)
