"""Spans of figures: how a long record is shared, when it was, and which rows answer for a range."""

import itertools
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.histogram import merged
from metrics.rules import (
    COUNTS,
    DAY,
    DAYS_KEPT,
    FIGURES,
    HOUR,
    HOURS_KEPT,
    KEPT,
    MINUTE,
    MINUTES_KEPT,
    MOST_POINTS,
    PLAIN,
    SECONDS,
    Figures,
    as_text,
    axis,
    believed,
    cover,
    instant,
    is_long,
    minute_of,
    of_text,
    pack_minutes,
    shared,
    unpack_minutes,
)

NOW = datetime(2026, 3, 1, 12, 30, 20, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")

numbers = st.integers(0, 10**12)
histograms = st.dictionaries(st.integers(0, 127), st.integers(1, 10**9), max_size=6)
figures = st.builds(
    Figures,
    **dict.fromkeys(COUNTS, numbers),
    **dict.fromkeys(SECONDS, st.floats(0, 1e9)),
    children_bytes=numbers,
    processing=histograms,
    critical=histograms,
)
seconds = st.integers(0, 366 * 86_400)


def together(parts: list[Figures]) -> Figures:
    total = Figures()
    for each in parts:
        total.add(each)
    return total


def same(one: Figures, other: Figures) -> bool:
    """Seconds may differ by a thousandth."""
    for name in SECONDS:
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=0.001), name
    return replace(one, **{name: getattr(other, name) for name in SECONDS}) == other


@given(figures, seconds)
@example(Figures(succeeded=1, processing={3: 1}), 3 * 3600)
def test_shares_are_together_what_was_given(of: Figures, length: int) -> None:
    parts = list(shared(of, NOW, NOW + timedelta(seconds=length)))
    total = together([each for _, each in parts])
    assert total.children_bytes == of.children_bytes and same(total, of)
    assert len({minute for minute, _ in parts}) == len(parts) <= 744
    assert all(minute_of(NOW) <= minute <= minute_of(NOW + timedelta(seconds=length)) for minute, _ in parts)


@pytest.mark.parametrize("length", [0, 1, 59.9, 60, 61.2, 90])
def test_about_a_minute_is_the_one_in_which_it_begins(length: float) -> None:
    given = Figures(succeeded=7)
    begun = NOW.replace(second=0)
    assert list(shared(given, begun, begun + timedelta(seconds=length))) == [(minute_of(NOW), given)]


def test_ten_minutes_are_shared_evenly() -> None:
    parts = list(shared(Figures(succeeded=25), NOW, NOW + timedelta(minutes=10)))
    assert [each.succeeded for _, each in parts] == [2, 3, 2, 3, 2, 3, 2, 3, 2, 3]
    assert [minute for minute, _ in parts] == list(range(minute_of(NOW), minute_of(NOW) + 10))


@pytest.mark.parametrize(
    ("length", "pieces", "apart"),
    [
        (timedelta(seconds=90.5), 2, MINUTE),
        (timedelta(hours=6), 360, MINUTE),
        (timedelta(hours=6, seconds=1), 6, HOUR),
        (timedelta(days=31), 744, HOUR),
        (timedelta(days=31, seconds=1), 31, DAY),
        (timedelta(days=366), 366, DAY),
    ],
)
def test_longer_ones_are_shared_among_longer_spans(length: timedelta, pieces: int, apart: int) -> None:
    minutes = [minute for minute, _ in shared(Figures(succeeded=1), NOW, NOW + length)]
    assert minutes == [minute_of(NOW) + n * apart for n in range(pieces)]
    assert is_long(NOW, NOW + length)


def test_figures_begin_with_nothing() -> None:
    assert all(getattr(Figures(), name) == 0 for name in PLAIN)
    assert [each.name for each in fields(Figures)] == list(FIGURES)


def test_minutes_are_counted_since_1970_in_utc() -> None:
    assert instant(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert minute_of(datetime(1970, 1, 1, 1, 0, 59, tzinfo=BERLIN)) == 0


def test_each_span_is_kept_for_so_long() -> None:
    days = {unit: kept / DAY for unit, kept in KEPT.items()}
    assert days == {MINUTE: 2, HOUR: 30, DAY: 365}


# -- clocks --------------------------------------------------------------------------------------------------

AGO = timedelta(minutes=5)
LENGTH = timedelta(minutes=1)


@pytest.mark.parametrize("skew", [None, 0.0, 30.0, -30.0])
def test_a_clock_that_is_about_right_is_believed(skew: float | None) -> None:
    assert believed(NOW - AGO, NOW - AGO + LENGTH, skew=skew, received_at=NOW) == (
        NOW - AGO,
        NOW - AGO + LENGTH,
    )


@pytest.mark.parametrize("skew", [3600.0, -3600.0, 86_400.0 * 400, -86_400.0 * 20_000])
def test_a_clock_that_is_wrong_is_set_right_by_what_it_showed_at_sending(skew: float) -> None:
    at = NOW - AGO + timedelta(seconds=skew)
    assert believed(at, at + LENGTH, skew=skew, received_at=NOW) == (NOW - AGO, NOW - AGO + LENGTH)


@pytest.mark.parametrize(
    ("at", "skew"),
    [
        (NOW + timedelta(days=1), None),
        (NOW - timedelta(days=366), 0.0),
        (datetime(1, 1, 1, tzinfo=UTC), 1e9),
        (datetime(9999, 12, 31, tzinfo=UTC), -1e9),
        (datetime(1970, 1, 1, tzinfo=UTC), None),
    ],
)
def test_what_cannot_be_is_of_the_moment_of_its_receipt(at: datetime, skew: float | None) -> None:
    start, end = believed(at, at + timedelta(hours=1) if at.year < 9999 else at, skew=skew, received_at=NOW)
    assert start == NOW and NOW <= end <= NOW + timedelta(seconds=30)


def test_what_is_just_kept_is_believed() -> None:
    oldest = NOW - timedelta(days=365)
    assert believed(oldest, oldest + LENGTH, skew=None, received_at=NOW) == (oldest, oldest + LENGTH)


def test_nothing_ends_in_the_future() -> None:
    start, end = believed(NOW - AGO, NOW + timedelta(days=3), skew=None, received_at=NOW)
    assert (start, end) == (NOW - AGO, NOW + timedelta(seconds=30))


# -- stored text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("histogram", "text"),
    [
        ({}, ""),
        ({0: 7}, "0:7"),
        ({42: 5, 40: 3, 41: 17}, "40:3,17,5"),
        ({40: 3, 43: 1, 47: 2}, "40:3,0,0,1 47:2"),
        ({40: 3, 41: 0, 127: 1}, "40:3 127:1"),
        ({10: 1, 40: 2, 42: 3}, "10:1 40:2,0,3"),
    ],
)
def test_buckets_side_by_side_are_written_once(histogram: dict[int, int], text: str) -> None:
    assert as_text(histogram) == text
    assert of_text(text) == {bucket: number for bucket, number in histogram.items() if number}


@given(st.lists(histograms, max_size=4))
def test_texts_side_by_side_are_their_sum(several: list[dict[int, int]]) -> None:
    assert of_text(" ".join(map(as_text, several))) == merged(several)


# -- bytes ---------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.dictionaries(st.integers(0, 59), figures, max_size=5))
def test_minutes_are_read_as_they_were_packed(minutes: dict[int, Figures]) -> None:
    found = unpack_minutes(pack_minutes(minutes))
    assert found.keys() == minutes.keys()
    for minute, each in minutes.items():
        assert same(found[minute], each)


def test_seconds_are_packed_to_a_thousandth() -> None:
    packed = unpack_minutes(pack_minutes({7: Figures(busy_seconds=0.12345, spool_seconds=1e9)}))
    assert (packed[7].busy_seconds, packed[7].spool_seconds) == (0.123, 1e9)


# -- ranges --------------------------------------------------------------------------------------------------

instants = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
near = st.integers(-400 * DAY, 10).map(lambda minutes: NOW + timedelta(minutes=minutes))
ends = st.one_of(instants, near)


@given(ends, ends)
def test_an_axis_is_bounded_and_holds_the_range_as_far_as_it_is_kept(start: datetime, end: datetime) -> None:
    found = axis(start, end, NOW)
    assert len(found.points) <= MOST_POINTS and found.first % found.step == 0
    assert found.end <= minute_of(NOW) and found.step % found.unit == 0
    oldest = minute_of(NOW) - DAYS_KEPT
    if found.points:
        assert found.first <= max(minute_of(start), oldest) < found.first + found.step
        assert instant(found.end) >= min(end, instant(minute_of(NOW - timedelta(seconds=15))))
    else:
        assert start >= end or end <= instant(oldest) or start >= NOW - timedelta(seconds=75)


@pytest.mark.parametrize(
    ("ago", "step"),
    [
        (timedelta(minutes=1), 1),
        (timedelta(hours=1), 1),
        (timedelta(hours=6), 1),
        (timedelta(hours=12), 2),
        (timedelta(minutes=400), 1),
        (timedelta(minutes=401), 2),
        (timedelta(minutes=800), 2),
        (timedelta(minutes=804), 5),
        (timedelta(hours=25), 5),
        (timedelta(hours=26), HOUR),
        (timedelta(days=7), HOUR),
        (timedelta(hours=398), HOUR),
        (timedelta(hours=402), 2 * HOUR),
        (timedelta(days=29), 2 * HOUR),
        (timedelta(days=31), DAY),
        (timedelta(days=400), DAY),
        (timedelta(days=36_525), DAY),
    ],
)
def test_the_step_fits_the_range(ago: timedelta, step: int) -> None:
    assert axis(NOW - ago, NOW, NOW).step == step


@pytest.mark.parametrize(
    ("hours", "step"),
    [
        (1, 1),
        (1.5, 2),
        (24, HOUR),
        (59, HOUR),
        (62, 2),
        (5 * 24, 3),
        (13 * 24, 6),
        (29 * 24, 12),
        (40 * 24, 24),
    ],
)
def test_few_points_have_longer_steps(hours: float, step: int) -> None:
    found = axis(NOW - timedelta(hours=hours), NOW, NOW, most=60, by_minutes=90)
    assert found.step == (step if hours < 2 or step == HOUR else step * HOUR) and len(found.points) <= 60


def test_an_hour_of_yesterday_has_minutes_and_one_of_last_week_has_hours() -> None:
    def of(day: int) -> int:
        return axis(NOW - timedelta(days=day, hours=1), NOW - timedelta(days=day), NOW).step

    assert [of(1), of(7), of(40)] == [MINUTE, HOUR, DAY]


@pytest.mark.parametrize(("day", "hours"), [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 7, 1), 24)])
def test_a_day_of_people_may_have_23_or_25_hours(day: tuple[int, int, int], hours: int) -> None:
    start = datetime(*day, tzinfo=BERLIN)
    end = (start.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=BERLIN)
    now = end.astimezone(UTC) + timedelta(days=5)
    found = axis(start, end, now)
    assert (found.step, len(found.points)) == (HOUR, hours)
    covered = list(cover(start, end, now))
    assert sum((over - begin) * unit for unit, begin, over in covered) == hours * HOUR


@given(ends, ends)
def test_spans_cover_a_range_without_a_gap_or_an_overlap(start: datetime, end: datetime) -> None:
    spans = list(cover(start, end, NOW))
    minutes = [(begin * unit, over * unit) for unit, begin, over in spans]
    assert all(before[1] == after[0] for before, after in itertools.pairwise(minutes))
    assert all(begin < over for begin, over in minutes)
    # Each is one of which rows are kept.
    kept = {MINUTE: MINUTES_KEPT, HOUR: HOURS_KEPT, DAY: DAYS_KEPT}
    present = minute_of(NOW)
    assert all(begin * unit > present - kept[unit] - unit for unit, begin, _ in spans)
    first, last = max(minute_of(start), present - DAYS_KEPT), min(minute_of(end), present)
    if first < last:
        assert minutes[0][0] <= first and minutes[-1][1] >= last
        assert first - minutes[0][0] < DAY and minutes[-1][1] - last <= DAY
    # A few questions, whatever the range.
    assert len(spans) <= 5
