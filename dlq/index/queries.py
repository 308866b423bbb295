"""Describes what is known of each dead-letter queue as a whole: how many dead letters the broker counts and
how many the index knows.

Counting a million rows takes a tenth of a second or more, so pages do not do it: the process that follows the
feed counts, at most so often that it costs two per cent of its time (`dlq.index.sweep`), and writes both
figures down together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from console.reasons import NO_REASON, Reason
from contract.names import DEAD_LETTER_PREFIX, FEED, UNKNOWN, dead_letter_queue
from dlq.models import LetterQueue

FEED_QUEUE, UNKNOWN_QUEUE = dead_letter_queue(FEED), dead_letter_queue(UNKNOWN)
# Figures older than this say nothing of now: the process that writes them stands still.
FRESH = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class QueueState:
    """`broker` and `indexed` are of the moment `at`; None: nobody counted yet. `seen` dead letters of a walk
    at hand."""

    queue: str
    broker: int | None = None
    indexed: int | None = None
    at: datetime | None = None
    walking: bool = False
    seen: int = 0
    walked_at: datetime | None = None
    problem: Reason = NO_REASON

    @property
    def behind(self) -> int:
        """Returns how many dead letters the index does not know yet; below 0: it knows dead letters that are
        gone."""
        return (self.broker or 0) - (self.indexed or 0)

    @property
    def catching_up(self) -> bool:
        return self.walking or self.behind != 0

    def words(self) -> str:
        """`broker 1,204 · index 1,198 · catching up`, empty while nobody counted."""
        if self.broker is None or self.indexed is None:
            return ""
        said = _("broker %(broker)s · index %(indexed)s") % {
            "broker": f"{self.broker:,}",
            "indexed": f"{self.indexed:,}",
        }
        return said + " · " + _("catching up") if self.catching_up else said


def states(queues: Iterable[str] | None = None) -> dict[str, QueueState]:
    """Returns them by queue, of those that were ever counted; one query."""
    rows = LetterQueue.objects.all() if queues is None else LetterQueue.objects.filter(queue__in=list(queues))
    return {row.queue: state(row) for row in rows}


def state_of(queue: str) -> QueueState:
    return states([queue]).get(queue) or QueueState(queue)


def state(row: LetterQueue) -> QueueState:
    return QueueState(
        queue=row.queue,
        broker=row.broker_count,
        indexed=row.indexed,
        at=row.counted_at,
        walking=row.walk_started_at is not None,
        seen=row.walk_seen,
        walked_at=row.walked_at,
        problem=row.problem,
    )


def is_indexed(queue: str, foreign: Iterable[str]) -> bool:
    """Returns whether the index holds dead letters of this queue: the settings', of nobody, the trash, and
    the foreign ones."""
    return (queue.startswith(DEAD_LETTER_PREFIX) and queue != FEED_QUEUE) or queue in foreign


# -- written by the process that follows the feed ------------------------------------------------------------


def feed_counted(backlog: int, now: datetime) -> None:
    LetterQueue.objects.update_or_create(
        queue=FEED_QUEUE, defaults={"broker_count": backlog, "counted_at": now}
    )


def feed_lag(now: datetime) -> int | None:
    """Dead letters that wait to be indexed; None: nobody counted them lately."""
    row = LetterQueue.objects.filter(queue=FEED_QUEUE, counted_at__gt=now - FRESH).first()
    return row.broker_count if row is not None else None


def all_to_be_walked() -> None:
    LetterQueue.objects.exclude(queue=FEED_QUEUE).update(walked_at=None)
