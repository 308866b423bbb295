"""What holds new starts at an instant: a freeze until its end, a maintenance window from its begin for its
length."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agents.freezes.rules import Frozen, longest, next_window, open_window, stands
from agents.timetable import Timetable

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
BERLIN = ZoneInfo("Europe/Berlin")
AT_TWO = Timetable("0 2 * * *", "Europe/Berlin")


@pytest.mark.parametrize(
    ("lifted_at", "ends_at", "expected"),
    [
        (None, None, True),
        (None, NOON + SECOND, True),
        (None, NOON, False),
        (None, NOON - SECOND, False),
        (NOON - SECOND, None, False),
        (NOON - SECOND, NOON + HOUR, False),
    ],
)
def test_a_freeze_stands_until_its_end_or_until_it_is_lifted(
    lifted_at: datetime | None, ends_at: datetime | None, expected: bool
) -> None:
    assert stands(lifted_at, ends_at, NOON) is expected


@pytest.mark.parametrize(
    ("local", "opened"),
    [
        (datetime(2026, 3, 2, 1, 59, 59), False),
        (datetime(2026, 3, 2, 2, 0), True),
        (datetime(2026, 3, 2, 3, 59, 59), True),
        (datetime(2026, 3, 2, 4, 0), False),
    ],
)
def test_a_window_is_open_from_its_begin_up_to_its_end(local: datetime, opened: bool) -> None:
    found = open_window(AT_TWO, 2 * HOUR, None, local.replace(tzinfo=BERLIN).astimezone(UTC))

    begin = datetime(2026, 3, 2, 1, tzinfo=UTC)
    assert found == ((begin, begin + 2 * HOUR) if opened else None)


def test_where_the_clock_leaves_its_begin_out_a_window_opens_at_the_end_of_the_gap() -> None:
    # On 29 March 2026 the clock goes from 02:00 to 03:00, which is 01:00 UTC.
    begin = datetime(2026, 3, 29, 1, tzinfo=UTC)

    assert open_window(AT_TWO, 2 * HOUR, None, begin - SECOND) is None
    assert open_window(AT_TWO, 2 * HOUR, None, begin) == (begin, begin + 2 * HOUR)
    assert open_window(AT_TWO, 2 * HOUR, None, begin + 2 * HOUR) is None


def test_where_its_begin_comes_twice_a_window_opens_once_for_its_length_in_elapsed_time() -> None:
    # On 25 October 2026 the clock goes from 03:00 back to 02:00: 02:00 comes at 00:00 UTC and at 01:00 UTC.
    begin = datetime(2026, 10, 25, 0, tzinfo=UTC)

    assert open_window(AT_TWO, HOUR, None, begin) == (begin, begin + HOUR)
    assert open_window(AT_TWO, HOUR, None, begin + HOUR) is None
    assert next_window(AT_TWO, begin) == datetime(2026, 10, 26, 1, tzinfo=UTC)


def test_a_window_over_the_change_of_the_clock_keeps_its_length() -> None:
    evening = Timetable("0 22 * * *", "Europe/Berlin")
    begin = datetime(2026, 3, 28, 21, tzinfo=UTC)

    assert open_window(evening, 8 * HOUR, None, begin + 7 * HOUR) == (begin, begin + 8 * HOUR)
    assert (begin + 8 * HOUR).astimezone(BERLIN).hour == 7


def test_of_windows_that_overlap_the_newest_counts() -> None:
    hourly = Timetable("0 * * * *")

    assert open_window(hourly, 90 * MINUTE, None, NOON + 10 * MINUTE) == (NOON, NOON + 90 * MINUTE)


@pytest.mark.parametrize(("lifted", "opened"), [(NOON - SECOND, True), (NOON, False), (NOON + MINUTE, False)])
def test_a_lifted_window_stays_closed_and_the_next_one_opens(lifted: datetime, opened: bool) -> None:
    hourly = Timetable("0 * * * *")

    assert (open_window(hourly, 30 * MINUTE, lifted, NOON + 2 * MINUTE) is not None) is opened
    assert open_window(hourly, 30 * MINUTE, lifted, NOON + HOUR) == (NOON + HOUR, NOON + 90 * MINUTE)


def frozen(until: datetime | None, pool: int | None = None, **more: int) -> Frozen:
    return Frozen(pool, "main" if pool else "", "alice", "release", NOON, until, **more)


def test_the_one_that_ends_last_is_told() -> None:
    short, long, open_ended = frozen(NOON + MINUTE), frozen(NOON + HOUR, 7), frozen(None, 7)

    assert longest([]) is None
    assert longest([short, long]) == long
    assert longest([open_ended, long, short]) == open_ended
    assert longest([frozen(NOON + HOUR, 7), frozen(NOON + HOUR)]) == frozen(NOON + HOUR)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (frozen(None), "start.frozen"),
        (frozen(None, 7), "start.frozen_pool"),
        (frozen(None, maintenance=1), "start.maintenance"),
        (frozen(None, 7, maintenance=1), "start.maintenance_pool"),
    ],
)
def test_its_reason_names_scope_and_cause(given: Frozen, code: str) -> None:
    assert given.reason.code == code
    assert given.reason.params["why"] == "release"
