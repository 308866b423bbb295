"""What becomes of due windows: started, skipped as older ones, missed."""

from datetime import UTC, datetime, timedelta

import pytest

from agents.models import Missed
from agents.reasons import (
    HELD_MANY,
    LATER_ONE_STARTED,
    MISSED,
    MISSED_MANY,
    STARTED_AFTER_FREEZE,
    STARTED_LATE,
)
from agents.schedules.rules import Holding, Skip, Verdict, decide_windows
from agents.timetable import Timetable
from console.reasons import NO_REASON, said

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
HOURLY, MINUTELY = Timetable(every_seconds=3600), Timetable(every_seconds=60)


def missed(*windows: datetime) -> tuple[Skip, ...]:
    return tuple(Skip(due, MISSED()) for due in windows)


def many(count: str, first: str, last: str) -> tuple[Skip, ...]:
    at = datetime.fromisoformat(first).replace(tzinfo=UTC)
    return (Skip(at, MISSED_MANY(count=count, first=f"{first} UTC", last=f"{last} UTC")),)


def test_where_nothing_is_due_nothing_happens() -> None:
    assert decide_windows(HOURLY, NOON, NOON + 59 * MINUTE, Missed.ONCE) == Verdict(None, NO_REASON, ())


def test_of_several_that_are_on_time_the_newest_starts() -> None:
    assert decide_windows(MINUTELY, NOON, NOON + 3 * MINUTE, Missed.SKIP) == Verdict(
        NOON + 3 * MINUTE,
        NO_REASON,
        (Skip(NOON + MINUTE, LATER_ONE_STARTED()), Skip(NOON + 2 * MINUTE, LATER_ONE_STARTED())),
    )


@pytest.mark.parametrize("rule", [Missed.SKIP, Missed.ONCE])
def test_a_restart_of_less_than_five_minutes_misses_nothing(rule: Missed) -> None:
    just = decide_windows(HOURLY, NOON - SECOND, NOON + 5 * MINUTE - SECOND, rule)
    assert just == Verdict(NOON, NO_REASON, ())
    assert decide_windows(HOURLY, NOON - SECOND, NOON + 5 * MINUTE, rule).start == (
        NOON if rule == Missed.ONCE else None
    )


def test_what_was_missed_is_skipped_or_runs_once() -> None:
    since, now = NOON - 3 * HOUR, NOON + 30 * MINUTE
    assert decide_windows(HOURLY, since, now, Missed.SKIP) == Verdict(
        None, NO_REASON, missed(NOON - 2 * HOUR, NOON - HOUR, NOON)
    )
    assert decide_windows(HOURLY, since, now, Missed.ONCE) == Verdict(
        NOON, STARTED_LATE(), missed(NOON - 2 * HOUR, NOON - HOUR)
    )


def test_what_was_missed_never_runs_where_one_is_on_time() -> None:
    assert decide_windows(HOURLY, NOON - 2 * HOUR, NOON + MINUTE, Missed.ONCE) == Verdict(
        NOON, NO_REASON, missed(NOON - HOUR)
    )


def test_twenty_missed_windows_are_rows_and_more_are_one_row() -> None:
    now = NOON + 30 * MINUTE
    twenty = decide_windows(HOURLY, NOON - 20 * HOUR, now, Missed.SKIP)
    assert twenty.skips == missed(*(NOON - n * HOUR for n in reversed(range(20))))
    more = decide_windows(HOURLY, NOON - 21 * HOUR, now, Missed.SKIP)
    assert more == Verdict(None, NO_REASON, many("21", "2026-02-28 16:00", "2026-03-01 12:00"))
    once = decide_windows(HOURLY, NOON - 21 * HOUR, now, Missed.ONCE)
    assert once == Verdict(NOON, STARTED_LATE(), many("21", "2026-02-28 16:00", "2026-03-01 12:00"))


def test_more_than_a_thousand_are_not_counted_and_the_newest_is_known() -> None:
    since, now = NOON - 1000 * HOUR, NOON + 30 * MINUTE
    assert decide_windows(HOURLY, since, now, Missed.SKIP).skips == many(
        "1000", "2026-01-18 21:00", "2026-03-01 12:00"
    )
    more = decide_windows(HOURLY, since - HOUR, now, Missed.ONCE)
    assert more == Verdict(NOON, STARTED_LATE(), many("1000+", "2026-01-18 20:00", "2026-03-01 12:00"))


FROZEN = said("frozen")


def held(*windows: datetime) -> tuple[Skip, ...]:
    return tuple(Skip(due, FROZEN) for due in windows)


@pytest.mark.parametrize(("rule", "owed"), [(Missed.SKIP, None), (Missed.ONCE, NOON + 2 * MINUTE)])
def test_what_is_due_while_something_is_frozen_is_held(rule: Missed, owed: datetime | None) -> None:
    verdict = decide_windows(MINUTELY, NOON, NOON + 2 * MINUTE, rule, Holding(FROZEN))

    assert verdict == Verdict(holds=held(NOON + MINUTE, NOON + 2 * MINUTE), owed=owed)


def test_while_nothing_more_is_due_what_is_owed_stays_owed_and_nothing_is_written_down() -> None:
    verdict = decide_windows(HOURLY, NOON, NOON + MINUTE, Missed.ONCE, Holding(FROZEN, NOON))

    assert verdict == Verdict(owed=NOON)
    assert not verdict.is_any


def test_of_many_held_windows_the_first_tells_how_many_and_the_newest_has_its_row() -> None:
    verdict = decide_windows(MINUTELY, NOON, NOON + 21 * MINUTE, Missed.ONCE, Holding(FROZEN))

    many = HELD_MANY(count="21", first="2026-03-01 12:01 UTC", last="2026-03-01 12:21 UTC", why=FROZEN)
    newest = NOON + 21 * MINUTE
    assert verdict == Verdict(holds=(Skip(NOON + MINUTE, many), Skip(newest, FROZEN)), owed=newest)


def test_after_the_freeze_what_is_owed_starts_once() -> None:
    verdict = decide_windows(HOURLY, NOON, NOON + MINUTE, Missed.ONCE, Holding(owed=NOON))

    assert verdict == Verdict(NOON, STARTED_AFTER_FREEZE())


def test_a_newer_window_starts_in_place_of_what_is_owed() -> None:
    verdict = decide_windows(HOURLY, NOON, NOON + HOUR, Missed.ONCE, Holding(owed=NOON))

    assert verdict == Verdict(NOON + HOUR, NO_REASON)


def test_where_missed_windows_are_skipped_nothing_is_owed() -> None:
    assert decide_windows(HOURLY, NOON, NOON + MINUTE, Missed.SKIP, Holding(owed=NOON)) == Verdict()
