"""How fast a replay goes and how long it takes, from its latest slices."""

from datetime import UTC, datetime, timedelta

from dlq.replay.rules.slices import Moved, MoveRate, move_rate

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def moved(size: int, begun: float, checked: float) -> Moved:
    """Seconds before now."""
    return Moved(size, NOW - timedelta(seconds=begun), NOW - timedelta(seconds=checked))


def test_the_pace_is_that_of_all_looked_at_with_the_waiting_between_them() -> None:
    found = move_rate([moved(100, 2, 1), moved(100, 11, 10)], 500, NOW)

    assert found and found.per_second == 20 and found.left == timedelta(seconds=25)


def test_nothing_is_said_before_the_first_and_long_after_the_last() -> None:
    assert move_rate([], 500, NOW) is None
    assert move_rate([moved(100, 2, 1)], 500, NOW + timedelta(minutes=2)) is None
    assert move_rate([moved(100, 2, 0)], 500, NOW + timedelta(minutes=2)) is not None


def test_nothing_is_left_when_nothing_remains_and_one_instant_is_no_division_by_zero() -> None:
    assert (
        (found := move_rate([moved(100, 1, 1)], 0, NOW))
        and found.left is None
        and found.per_second == 100_000
    )


def test_a_limit_is_not_promised_to_be_exceeded() -> None:
    assert move_rate([moved(100, 10, 0)], 50, NOW, most=5) == MoveRate(5, timedelta(seconds=10))
    assert move_rate([moved(100, 10, 0)], 50, NOW, most=20) == MoveRate(10, timedelta(seconds=5))


def test_a_slow_replay_ends_and_one_that_stands_still_does_not() -> None:
    assert move_rate([moved(1, 2, 0)], 10, NOW) == MoveRate(0.5, timedelta(seconds=20))
    assert move_rate([moved(0, 2, 0)], 10, NOW) == MoveRate(0, None)
