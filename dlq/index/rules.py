"""Decides when a dead-letter queue is to be walked. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

# Every queue is walked whole once in this time, whatever the counts say: equal counts may be of unequal dead
# letters.
WALK_EVERY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """Holds what was written down at the last look."""

    broker: int | None = None
    indexed: int | None = None
    differs_since: datetime | None = None
    walked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    differs_since: datetime | None
    walked_at: datetime | None
    walk: bool


def judge_queue(known: QueueRecord, broker: int, indexed: int, *, feed_empty: bool, now: datetime) -> Judged:
    """A difference means something only while nothing waits in the feed, and when it is seen twice the same:
    a dead letter that died between the two counts is none. Of a queue that is empty at the broker and in the
    index nothing could be seen: it counts as walked."""
    if broker == indexed == 0:
        # Written down now and then only: most queues are empty, and the sweep looks at all of them all the
        # time.
        lately = known.walked_at is not None and now - known.walked_at < WALK_EVERY / 2
        return Judged(None, known.walked_at if lately else now, walk=False)
    if not feed_empty:
        return Judged(None, known.walked_at, walk=False)
    due = known.walked_at is None or now - known.walked_at >= WALK_EVERY
    if broker == indexed:
        return Judged(None, known.walked_at, walk=due)
    before = (known.broker or 0) - (known.indexed or 0)
    again = known.differs_since is not None and before == broker - indexed
    return Judged(known.differs_since if again else now, known.walked_at, walk=again or due)
