"""Hours of a recipient: days of the week and times in a time zone, also over midnight and over changes of the
clock."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.notices.routing import Hours, Turn, Waiting, turn_of

BERLIN = ZoneInfo("Europe/Berlin")
OFFICE = Hours(frozenset({1, 2, 3, 4, 5}), time(9), time(18), BERLIN)
NIGHT = Hours(frozenset({5}), time(22), time(6), BERLIN)


def berlin(day: int, hour: int, minute: int = 0, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("hours", "now", "opens_at"),
    [
        (Hours(), berlin(7, 3), berlin(7, 3)),
        (OFFICE, berlin(6, 9), berlin(6, 9)),
        (OFFICE, berlin(6, 17, 59), berlin(6, 17, 59)),
        (OFFICE, berlin(6, 18), berlin(9, 9)),
        (OFFICE, berlin(6, 8, 59), berlin(6, 9)),
        (OFFICE, berlin(7, 12), berlin(9, 9)),
        (NIGHT, berlin(6, 23), berlin(6, 23)),
        (NIGHT, berlin(7, 5, 59), berlin(7, 5, 59)),
        (NIGHT, berlin(7, 6), berlin(13, 22)),
        (Hours(frozenset({7}), zone=BERLIN), berlin(7, 12), berlin(8, 0)),
        # The clocks go forward on 29 March and back on 25 October.
        (Hours(begin=time(9), end=time(10), zone=BERLIN), berlin(28, 23), berlin(29, 9)),
        # Between 2:00 and 3:00 there is nothing on that day.
        (Hours(begin=time(2, 30), end=time(3), zone=BERLIN), berlin(29, 0), berlin(30, 2, 30)),
        (Hours(begin=time(2), end=time(3), zone=BERLIN), berlin(29, 0), berlin(30, 2)),
        (Hours(frozenset({7}), time(2, 30), time(3), BERLIN), berlin(22, 3), berlin(5, 2, 30, month=4)),
        (Hours(begin=time(9), end=time(10), zone=BERLIN), berlin(24, 23, month=10), berlin(25, 9, month=10)),
    ],
)  # fmt: skip
def test_it_waits_until_the_hours_begin(hours: Hours, now: datetime, opens_at: datetime) -> None:
    assert hours.opens_at(now.astimezone(UTC)) == opens_at.astimezone(UTC)


INSTANTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
TIMES = st.builds(time, st.integers(0, 23), st.integers(0, 59))
ZONES = st.sampled_from([UTC, BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")])


@given(st.frozensets(st.integers(1, 7)), TIMES, TIMES, ZONES, INSTANTS)
def test_the_hours_begin_on_a_day_of_theirs_and_within_a_week(
    days: frozenset[int], begin: time, end: time, zone: ZoneInfo, now: datetime
) -> None:
    hours = Hours(days, begin, end, zone)

    opens_at = hours.opens_at(now)

    assert timedelta() <= opens_at - now <= timedelta(days=14)
    assert hours.opens_at(opens_at) == opens_at
    if days and opens_at > now:
        assert opens_at.astimezone(zone).isoweekday() in days


@pytest.mark.parametrize(
    ("waiting", "within", "turn"),
    [
        (Waiting(), True, Turn.SEND),
        (Waiting(), False, Turn.HOLD),
        (Waiting(reminds=True), True, Turn.SEND),
        (Waiting(reminds=True), False, Turn.SKIP),
        (Waiting(over=True, told=True), False, Turn.HOLD),
        (Waiting(over=True, told=True, incident=True), False, Turn.SEND),
        (Waiting(over=True, incident=True), False, Turn.HOLD),
        (Waiting(told=True, incident=True), False, Turn.HOLD),
        (Waiting(held=True), True, Turn.SEND),
        (Waiting(held=True, cause_over=True), True, Turn.SKIP),
        (Waiting(cause_over=True), True, Turn.SEND),
        (Waiting(incident=True), True, Turn.SEND),
        (Waiting(incident=True, cause_over=True), True, Turn.SKIP),
        (Waiting(incident=True, cause_over=True, over=True), True, Turn.SEND),
        (Waiting(held=True, over=True, cause_over=True, told=True), True, Turn.SEND),
        (Waiting(held=True, over=True, cause_over=True), True, Turn.SEND),
        (Waiting(held=True, over=True, cause_over=True, unheard=True), True, Turn.SKIP),
        (Waiting(over=True, unheard=True), True, Turn.SKIP),
        (Waiting(over=True, unheard=True), False, Turn.SKIP),
        (Waiting(unheard=True), True, Turn.SEND),
    ],
)
def test_what_becomes_of_one_that_is_due(waiting: Waiting, within: bool, turn: Turn) -> None:
    assert turn_of(waiting, within_hours=within) is turn


def test_each_day_of_a_year_has_its_window() -> None:
    day = date(2026, 1, 1)
    while day.year == 2026:
        noon = datetime.combine(day, time(20), BERLIN).astimezone(UTC)
        opened = Hours(begin=time(9), end=time(18), zone=BERLIN).opens_at(noon).astimezone(BERLIN)
        assert (opened.date(), opened.time()) == (day + timedelta(days=1), time(9))
        day += timedelta(days=1)
