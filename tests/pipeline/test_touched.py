"""What new blocks touch, and which blocks can hold it."""

from datetime import UTC, date, datetime, timedelta

from pipeline.archive.manifests import Manifest
from pipeline.run import MOST_STRETCHES, blocks_that_hold, days_of, hours_between, stretch_of, stretches

NOON = datetime(2026, 3, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


def manifest(block: int, least: datetime, most: datetime, day: str = "2026-03-30") -> Manifest:
    first = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    return Manifest(
        kind="protocols", block=block, day=day, folder="", files=(), rows=1, checksum="", keys="",
        first=text(first),
        last=text(first + timedelta(days=1)), occurred_min=text(least), occurred_max=text(most), schema=1,
        archived_at=text(first),
    )  # fmt: skip


def test_hours_that_a_stretch_touches() -> None:
    assert hours_between(NOON + timedelta(minutes=59), NOON + HOUR) == [NOON]
    assert hours_between(NOON, NOON + 2 * HOUR + timedelta(seconds=1)) == [NOON, NOON + HOUR, NOON + 2 * HOUR]


def test_an_hour_may_be_of_two_days() -> None:
    """In India midnight is at half past six in the evening, UTC."""
    assert days_of([datetime(2026, 3, 30, 18, tzinfo=UTC)], "Asia/Kolkata") == [
        date(2026, 3, 30),
        date(2026, 3, 31),
    ]
    assert days_of([datetime(2026, 3, 30, 18, tzinfo=UTC)], "UTC") == [date(2026, 3, 30)]


def test_a_day_of_a_zone_has_23_24_or_25_hours() -> None:
    hours = {}
    for day in (date(2026, 3, 29), date(2026, 3, 30), date(2026, 10, 25)):
        first, last = stretch_of(day, "Europe/Berlin")
        hours[day] = (last - first) / HOUR

    assert list(hours.values()) == [23, 24, 25]


def test_stretches_that_meet_are_one_and_many_are_few() -> None:
    assert stretches([(NOON + HOUR, NOON + 2 * HOUR), (NOON, NOON + HOUR)]) == [(NOON, NOON + 2 * HOUR)]
    many = [(NOON + each * 3 * HOUR, NOON + each * 3 * HOUR + HOUR) for each in range(100)]
    few = stretches(many)
    assert len(few) == MOST_STRETCHES
    assert all(any(first <= piece[0] and piece[1] <= last for first, last in few) for piece in many)


def test_blocks_are_read_where_rows_occurred_then_or_were_received_then() -> None:
    away = manifest(1, NOON - timedelta(days=7), NOON, day="2026-03-30")
    before = manifest(2, NOON - timedelta(days=3), NOON - timedelta(days=2), day="2026-03-28")
    # Its clock says 2099: what counts is when it was received.
    skewed = manifest(3, datetime(2099, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC), day="2026-03-30")

    assert blocks_that_hold([away, before, skewed], [(NOON, NOON + HOUR)]) == [1, 3]
    assert blocks_that_hold(
        [away, before, skewed], [(NOON - timedelta(days=3), NOON - timedelta(days=2))]
    ) == [1, 2]
