"""When a dead-letter queue is walked."""

from datetime import UTC, datetime, timedelta

from dlq.index.rules import Judged, QueueRecord, judge_queue

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATELY = NOW - timedelta(hours=1)
LITTLE = timedelta(seconds=1)


def test_equal_counts_need_no_walk_until_the_day_is_over() -> None:
    day = timedelta(days=1)
    for walked_at, walk in ((LATELY, False), (NOW - day + LITTLE, False), (NOW - day, True), (None, True)):
        known = QueueRecord(5, 5, None, walked_at)
        assert judge_queue(known, 5, 5, feed_empty=True, now=NOW) == Judged(None, walked_at, walk=walk)


def test_a_difference_is_acted_upon_when_it_is_seen_twice_the_same() -> None:
    first = judge_queue(QueueRecord(5, 5, None, LATELY), 7, 5, feed_empty=True, now=NOW)
    assert first == Judged(NOW, LATELY, walk=False)
    later = NOW + timedelta(seconds=10)
    known = QueueRecord(7, 5, first.differs_since, LATELY)
    assert judge_queue(known, 9, 7, feed_empty=True, now=later) == Judged(NOW, LATELY, walk=True)
    assert judge_queue(known, 9, 5, feed_empty=True, now=later) == Judged(later, LATELY, walk=False)


def test_what_was_counted_while_the_feed_held_letters_was_not_seen() -> None:
    assert judge_queue(QueueRecord(7, 5, None, LATELY), 7, 5, feed_empty=True, now=NOW) == Judged(
        NOW, LATELY, walk=False
    )


def test_a_difference_says_nothing_while_the_feed_holds_letters() -> None:
    known = QueueRecord(7, 5, LATELY, None)
    assert judge_queue(known, 7, 5, feed_empty=False, now=NOW) == Judged(None, None, walk=False)


def test_an_empty_queue_counts_as_walked() -> None:
    assert judge_queue(QueueRecord(), 0, 0, feed_empty=False, now=NOW) == Judged(None, NOW, walk=False)
    half = timedelta(hours=12)
    for walked_at, known_then in ((NOW - half + LITTLE, NOW - half + LITTLE), (NOW - half, NOW)):
        known = QueueRecord(5, 5, LATELY, walked_at)
        assert judge_queue(known, 0, 0, feed_empty=True, now=NOW) == Judged(None, known_then, walk=False)


def test_a_day_without_a_walk_is_over_whatever_is_counted() -> None:
    yesterday = NOW - timedelta(days=1)
    assert judge_queue(QueueRecord(5, 5, None, yesterday), 7, 5, feed_empty=True, now=NOW) == Judged(
        NOW, yesterday, walk=True
    )


def test_what_was_never_counted_is_no_difference_that_was_seen_before() -> None:
    assert QueueRecord() == QueueRecord(broker=None, indexed=None, differs_since=None, walked_at=None)
    for broker, indexed in ((6, 5), (5, 6)):
        found = judge_queue(
            QueueRecord(differs_since=LATELY, walked_at=LATELY), broker, indexed, feed_empty=True, now=NOW
        )
        assert found == Judged(NOW, LATELY, walk=False)
