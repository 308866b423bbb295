"""When a dead-letter queue is walked."""

from datetime import UTC, datetime, timedelta

from dlq.judging import Judged, Known, judge

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATELY = NOW - timedelta(hours=1)


def test_equal_counts_need_no_walk_until_the_day_is_over() -> None:
    for walked_at, walk in ((LATELY, False), (NOW - timedelta(days=1), True), (None, True)):
        known = Known(5, 5, None, walked_at)
        assert judge(known, 5, 5, feed_empty=True, now=NOW) == Judged(None, walked_at, walk=walk)


def test_a_difference_is_acted_upon_when_it_is_seen_twice_the_same() -> None:
    first = judge(Known(5, 5, None, LATELY), 7, 5, feed_empty=True, now=NOW)
    assert first == Judged(NOW, LATELY, walk=False)
    later = NOW + timedelta(seconds=10)
    known = Known(7, 5, first.differs_since, LATELY)
    assert judge(known, 9, 7, feed_empty=True, now=later) == Judged(NOW, LATELY, walk=True)
    assert judge(known, 9, 5, feed_empty=True, now=later) == Judged(later, LATELY, walk=False)


def test_a_difference_says_nothing_while_the_feed_holds_letters() -> None:
    known = Known(7, 5, LATELY, None)
    assert judge(known, 7, 5, feed_empty=False, now=NOW) == Judged(None, None, walk=False)


def test_an_empty_queue_counts_as_walked() -> None:
    assert judge(Known(), 0, 0, feed_empty=False, now=NOW) == Judged(None, NOW, walk=False)
