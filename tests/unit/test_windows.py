"""When a schedule is due: wall clocks, gaps, repeated hours, anchors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from agents.crontab import check_crontab, crontab_fields
from agents.timetable import Timetable, due_windows, last_window, next_windows

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(crontab: str, after: str, until: str, zone: str = BERLIN) -> list[str]:
    found = due_windows(Timetable(crontab, zone), at(after), at(until), 1000)
    return [f"{instant:%m-%d %H:%M}" for instant in found]


def test_the_wall_clock_decides_in_winter_and_in_summer() -> None:
    assert due("30 2 * * *", "2026-01-10", "2026-01-12") == ["01-10 01:30", "01-11 01:30"]
    assert due("30 2 * * *", "2026-07-10", "2026-07-12") == ["07-10 00:30", "07-11 00:30"]


def test_a_time_that_does_not_exist_comes_at_the_end_of_the_gap() -> None:
    """2026-03-29 the clock goes from 02:00 to 03:00, which is 01:00 UTC."""
    assert due("30 2 * * *", "2026-03-28", "2026-03-31") == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]


def test_several_times_in_one_gap_come_once() -> None:
    assert due("0,20,40 2,3 * * *", "2026-03-29", "2026-03-29T02:00") == [
        "03-29 01:00",
        "03-29 01:20",
        "03-29 01:40",
    ]


def test_a_time_that_occurs_twice_comes_the_first_time_only() -> None:
    """2026-10-25 the hour from 02:00 to 03:00 comes twice, from 00:00 UTC and from 01:00 UTC on."""
    assert due("30 2 * * *", "2026-10-24", "2026-10-27") == ["10-24 00:30", "10-25 00:30", "10-26 01:30"]
    assert due("30 2 * * *", "2026-10-25T00:45", "2026-10-26") == []
    assert due("30 2 * * *", "2026-10-25T01:15", "2026-10-26") == []


def test_a_step_of_minutes_means_elapsed_time() -> None:
    assert due("*/30 * * * *", "2026-03-29T00:00", "2026-03-29T02:00") == [
        "03-29 00:30", "03-29 01:00", "03-29 01:30", "03-29 02:00",
    ]  # fmt: skip
    assert len(due("*/30 * * * *", "2026-10-24T22:00", "2026-10-25T23:00")) == 50


def test_a_window_belongs_to_the_moments_after_its_predecessor_up_to_itself() -> None:
    hourly = Timetable("0 * * * *")
    assert due_windows(hourly, at("2026-01-01T10:00"), at("2026-01-01T11:00"), 9) == [at("2026-01-01T11:00")]
    just_before = at("2026-01-01T11:00") - timedelta(microseconds=1)
    assert due_windows(hourly, just_before, at("2026-01-01T11:00"), 9) == [at("2026-01-01T11:00")]
    assert due_windows(hourly, at("2026-01-01T10:00"), just_before, 9) == []


def test_day_of_month_or_weekday_is_enough_where_both_are_given() -> None:
    """2026-02-13 is a Friday; 2026-03-13 too."""
    assert due("0 0 14 * 5", "2026-02-11", "2026-02-21", "UTC") == [
        "02-13 00:00",
        "02-14 00:00",
        "02-20 00:00",
    ]


def test_a_timetable_of_seconds_has_no_crontab_and_one_without_a_zone_means_utc() -> None:
    assert Timetable(every_seconds=600) == Timetable("", "UTC", 600)
    assert Timetable("0 0 * * *") == Timetable("0 0 * * *", "UTC", None)


def test_an_interval_is_counted_from_a_fixed_instant() -> None:
    every = Timetable(every_seconds=600)
    late = at("2026-01-01T10:07:31")
    assert next_windows(every, late, 2) == [at("2026-01-01T10:10"), at("2026-01-01T10:20")]
    assert next_windows(every, at("2026-01-01T10:10"), 1) == [at("2026-01-01T10:20")]
    assert last_window(every, at("2025-01-01"), late) == at("2026-01-01T10:00")
    assert last_window(every, at("2026-01-01T10:00"), late) is None


@given(
    st.sampled_from(
        ["* * * * *", "30 2 * * *", "0 0 1 * *", "15 3 29 2 *", "*/7 1-5 * * 1", "0 2,3 * 3,10 0"]
    ),
    st.sampled_from([BERLIN, "UTC", "Australia/Lord_Howe", "America/New_York", "Asia/Kathmandu"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    st.integers(1, 200_000),
)
def test_the_newest_window_is_the_last_of_all(crontab: str, zone: str, start: datetime, seconds: int) -> None:
    timetable, after = Timetable(crontab, zone), start.replace(tzinfo=UTC)
    until = after + timedelta(seconds=seconds)
    found = due_windows(timetable, after, until, 10_000)
    assert found == sorted(set(found))
    assert all(after < instant <= until for instant in found)
    assert last_window(timetable, after, until) == (found[-1] if found else None)


@dataclass(frozen=True, slots=True)
class Watched(Timetable):
    """Keeps from when on it was asked for instants."""

    asked: list[datetime] = field(default_factory=list)

    def after(self, instant: datetime) -> Iterator[datetime]:
        self.asked.append(instant)
        return Timetable.after(self, instant)


@pytest.mark.parametrize(
    ("crontab", "days", "looks"),
    [
        ("* * * * *", 500, [1 / 24]),
        ("0 1 * * *", 500, [1 / 24, 1]),
        ("0 0 1 * *", 500, [1 / 24, 1, 32]),
        ("0 0 1 2 *", 500, [1 / 24, 1, 32, 366]),
        ("0 0 29 2 *", 1000, [1 / 24, 1, 32, 366, 1000]),
        ("0 0 1 2 *", 32, [1 / 24, 1, 32]),
        ("0 0 1 2 *", 33, [1 / 24, 1, 32, 33]),
    ],
)
def test_the_newest_window_is_looked_for_in_an_hour_a_day_a_month_a_year_and_then_in_all(
    crontab: str, days: int, looks: list[float]
) -> None:
    until = at("2026-12-20T12:30")
    timetable = Watched(crontab)
    last_window(timetable, until - timedelta(days=days), until)
    assert [until - instant for instant in timetable.asked] == [timedelta(days=each) for each in looks]


def test_the_newest_multiple_is_computed_and_one_that_is_due_just_now_is_the_newest() -> None:
    every = Watched(every_seconds=600)
    assert last_window(every, at("2000-01-01"), at("2026-01-01T10:10")) == at("2026-01-01T10:10")
    assert every.asked == []
    assert last_window(Timetable("0 * * * *"), at("2000-01-01"), at("2026-01-01T11:00")) == at(
        "2026-01-01T11:00"
    )


@pytest.mark.db  # as dear: many examples
@given(
    st.datetimes(datetime(2026, 3, 28), datetime(2026, 3, 30)),
    st.datetimes(datetime(2026, 3, 28), datetime(2026, 3, 30)),
)
def test_no_window_is_lost_or_doubled_where_two_spans_meet(one: datetime, other: datetime) -> None:
    for crontab in ("30 2 * * *", "*/15 2 * * *", "0,30 1-4 * * *"):
        timetable, ends = Timetable(crontab, BERLIN), (at("2026-03-27"), at("2026-03-31"))
        first, second = sorted((one.replace(tzinfo=UTC), other.replace(tzinfo=UTC)))
        marks = [ends[0], first, second, ends[1]]
        parts = [due_windows(timetable, *pair, 500) for pair in pairwise(marks)]
        assert [instant for part in parts for instant in part] == due_windows(timetable, *ends, 500)


@given(st.text("0123456789*/-,#LWMONJA ", max_size=20), st.text("0123456789*/-,#LW", max_size=6))
def test_no_text_breaks_the_check(one: str, other: str) -> None:
    for text in (one, f"{other} * * * *", f"0 0 {other} * *", f"0 0 * * {other}"):
        try:
            check_crontab(text)
        except ValidationError:
            continue
        crontab_fields(text)
        assert next_windows(Timetable(text), at("2026-01-01"), 1)
