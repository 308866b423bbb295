"""Charts say what there is and nothing else: no point, one, a year of them, gaps, marks, tiny and huge
values."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from console.ui.amounts import duration, instant, number
from console.ui.charts.chart import draw, sparkline
from console.ui.charts.curves import Chart, Curve, Kind, Mark, Shape
from console.ui.charts.plot import APART, LETTER, apart, beside, grouped, runs
from console.ui.charts.scales import (
    AMOUNT,
    BYTES,
    COUNT,
    LINES,
    MOST_TICKS,
    SECONDS,
    Unit,
    by_label,
    compact,
    over_time,
    three_digits,
    time_ticks,
    value_ticks,
)

START = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BERLIN = ZoneInfo("Europe/Berlin")


def edges(count: int, step: timedelta = HOUR) -> list[datetime]:
    return [START + step * index for index in range(count + 1)]


def chart(
    values: Sequence[float | None], *more: Curve, marks: Sequence[Mark] = (), unit: Unit = COUNT
) -> str:
    curves = [Curve("failures", values), *more]
    with override("en"):
        return draw(Chart("one", "Failures", over_time(edges(len(values)), UTC), curves, unit, marks))


def mark(hours: float, text: str = "Trip", about: str = "", url: str = "") -> Mark:
    return Mark(START + hours * HOUR, Shape.DOWN, "bad", text, about, url)


def test_what_is_written_once_is_told_apart_by_zone_and_language() -> None:
    autumn = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    with override("en"):
        english = [instant(autumn), number(1234.5, 1), duration(90)]
        with timezone.override(BERLIN):
            # The clocks are put back between both.
            zoned = [instant(autumn - HOUR), instant(autumn + 2 * HOUR)]
    with override("ru"):
        russian = [instant(autumn), number(1234.5, 1), duration(90)]
    assert all(one != other for one, other in zip(english, russian, strict=True))
    assert len({english[0], *zoned}) == 3 and zoned[0].endswith("CEST") and zoned[1].endswith("CET")


# -- values --------------------------------------------------------------------------------------------------


@given(
    st.floats(0, 1e30, allow_nan=False, allow_infinity=False),
    st.sampled_from([AMOUNT, COUNT, SECONDS, BYTES]),
)
def test_the_values_beside_the_axis_are_few_grow_evenly_and_reach_the_highest(
    most: float, unit: Unit
) -> None:
    ticks = value_ticks(most, unit)
    assert ticks[0] == 0 and ticks[-1] >= most * (1 - 1e-6)
    assert 2 <= len(ticks) <= LINES + 2
    steps = {round((above - below) / ticks[-1], 6) for below, above in pairwise(ticks)}
    assert len(steps) == 1


@pytest.mark.parametrize(
    ("unit", "most", "expected"),
    [
        (COUNT, 0, ["0", "1"]),
        (COUNT, 3, ["0", "1", "2", "3"]),
        (COUNT, 1200, ["0", "500", "1,000", "1,500"]),
        (COUNT, 2_500_000, ["0", "1 M", "2 M", "3 M"]),
        (AMOUNT, 0.0031, ["0", "0.001", "0.002", "0.003", "0.004"]),
        (SECONDS, 200, ["0 s", "1 min", "2 min", "3 min", "4 min"]),
        (SECONDS, 0.05, ["0 s", "20 ms", "40 ms", "60 ms"]),
        (BYTES, 3000, ["0 bytes", "1 KiB", "2 KiB", "3 KiB"]),
    ],
)
def test_values_beside_the_axis_are_round(unit: Unit, most: float, expected: list[str]) -> None:
    with override("en"):
        found = [unit.short(value).replace("\N{NO-BREAK SPACE}", " ") for value in value_ticks(most, unit)]
    assert (
        found == [each if each != "1.0 KiB" else unit.short(1024) for each in expected] or found == expected
    )


def test_amounts_are_written_as_the_language_does() -> None:
    with override("ru"):
        assert compact(12_345) == "12,3 тыс." and three_digits(1234567) == "1 234 567".replace(
            " ", "\N{NO-BREAK SPACE}"
        )
    with override("en"):
        assert (
            three_digits(0.00234) == "0.00234"
            and three_digits(1e18) == "1.00e+18"
            and compact(3e-12) == "3.00e-12"
        )


# -- time ----------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 400 * 24 * 60),
    st.integers(1, 100 * 366 * 24 * 60),
    st.sampled_from([UTC, BERLIN, ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Asia/Kathmandu")]),
)
def test_instants_below_the_axis_are_few_and_in_order_for_every_span(
    begin: int, length: int, zone: ZoneInfo
) -> None:
    start = START + timedelta(minutes=begin)
    with override("en"):
        ticks = time_ticks(start, start + timedelta(minutes=length), zone)
    places = [tick.at for tick in ticks]
    assert len(ticks) <= MOST_TICKS and places == sorted(set(places))
    assert all(0 <= place <= 100 for place in places)
    assert ticks or length < 60


def labels(start: datetime, end: datetime, zone: ZoneInfo) -> list[str]:
    with override("en"):
        return [tick.label for tick in time_ticks(start, end, zone)]


def test_a_day_of_23_hours_has_no_hour_twice_and_one_of_25_hours_its_own_length() -> None:
    spring = datetime(2026, 3, 29, tzinfo=BERLIN)
    assert labels(spring, spring.astimezone(UTC) + 23 * HOUR, BERLIN) == [
        "29 Mar", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "30 Mar",
    ]  # fmt: skip
    with override("en"):
        week = over_time(
            [datetime(2026, 10, day, tzinfo=BERLIN).astimezone(UTC) for day in range(22, 30)], BERLIN
        )
    hours = [round(place.width / week.places[0].width * 24) for place in week.places]
    assert hours == [24, 24, 24, 25, 24, 24, 24]
    assert [tick.label for tick in week.ticks][3:5] == ["25 Oct", "26 Oct"]
    assert [tick.at for tick in week.ticks] == pytest.approx([*(place.left for place in week.places), 100])


def test_days_are_those_of_the_site_and_times_those_of_the_reader() -> None:
    with override("en"):
        days, hours = over_time(edges(30, DAY), UTC), over_time(edges(30), UTC)
    assert not any(tick.instant for tick in days.ticks) and not any(place.instant for place in days.places)
    assert all(tick.instant and tick.form for tick in hours.ticks)
    assert days.places[0].label == "1 Mar 2026" and hours.places[0].instant == START


def test_a_year_is_labelled_by_months_in_both_languages() -> None:
    assert labels(START, START + 365 * DAY, BERLIN)[:3] == ["May 2026", "Jul 2026", "Sep 2026"]
    with override("ru"):
        assert time_ticks(START, START + 200 * DAY, UTC)[0].label == "апр 2026"


# -- the picture ---------------------------------------------------------------------------------------------


def test_nothing_is_said_to_be_nothing() -> None:
    for drawn in (chart([]), chart([None, None])):
        assert "No data in this period." in drawn and "<svg" not in drawn


def test_one_point_is_a_point_no_line() -> None:
    drawn = chart([7])
    assert drawn.count('class="point') == 2  # one is in the key
    assert 'class="line' not in drawn.partition('class="plot"')[2]
    assert "last 7, highest 7" in drawn and '<td class="num">7</td>' in drawn


def test_an_unknown_stretch_breaks_the_line_and_is_shown() -> None:
    drawn = chart([1, 2, None, None, 3, 4])
    plot = drawn.partition('class="plot"')[2]
    assert plot.count('<path class="line') == 2
    assert '<rect class="gap" x="33.33%" width="33.33%"' in plot and ">no data</text>" in plot
    assert drawn.count('<td class="num">—</td>') == 2
    assert 'class="gap"' not in chart([1, 0, 0, 4]), "nothing happened: that is known"


@given(st.lists(st.none() | st.floats(allow_nan=True, allow_infinity=True), max_size=12))
def test_what_is_no_number_is_unknown(values: list[float | None]) -> None:
    drawn = chart(values, Curve("bars", values, Kind.BARS))
    numbers = re.findall(r'(?:x|y|x1|x2|y1|y2|width|height|d)="([^"]*)"', drawn)
    assert not any("nan" in each.lower() or "inf" in each.lower() for each in numbers)
    known = [value for value in values if value is not None and abs(value) < 1e100]
    assert ("<svg" in drawn) is bool(known)
    if known:
        assert drawn.count('<td class="num">—</td>') == 2 * (len(values) - len(known))


def test_a_curve_that_does_not_fit_the_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="late: 1 values at 2 places"):
        chart([1, 2], Curve("late", [1]))


def test_curves_differ_without_colour_and_each_is_named_at_its_end() -> None:
    lines = [Curve(name, [1, 2, 3]) for name in ("median", "95 %", "99 %")]
    drawn = chart([3, 2, 1], *lines)
    assert {f"line s{index} info" for index in range(4)} <= set(re.findall(r'class="(line [^"]+)"', drawn))
    assert len(set(re.findall(r'class="point info" d="([^"]+)"', drawn))) == 4
    assert [drawn.count(f">{name}</text>") for name in ("median", "95 %", "99 %")] == [1, 1, 1]


def test_stacked_bars_stand_on_each_other_and_differ_by_stripes() -> None:
    parts = [Curve("lasting", [3, 0], Kind.BARS, "bad"), Curve("temporary", [1, 4], Kind.BARS, "warn")]
    drawn = draw(Chart("stack", "Failures", over_time(edges(2), UTC), parts))
    lasting, temporary = re.findall(r'<path class="bars \w+" d="([^"]+)"', drawn)
    assert lasting.startswith("M50.0 150.0") and lasting.count("M") == 1
    high = float(re.findall(r"v-([\d.]+)", lasting)[0])
    assert temporary.startswith(f"M50.0 {150 - high:.1f}") and "M550.0 150.0" in temporary
    assert drawn.count('class="stripes s1"') == 2, "in the key and in the plot"


def test_what_is_little_is_seen_beside_what_is_much() -> None:
    drawn = draw(Chart("bars", "Bars", over_time(edges(2), UTC), [Curve("bars", [1, 10**12], Kind.BARS)]))
    assert "v-1.5h" in drawn


def test_a_bar_with_an_address_is_a_link_that_says_its_time_for_the_page_to_write_in_another_zone() -> None:
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    curve = Curve("failures", [3, 0], Kind.BARS, "bad", ["/there/", ""])
    with override("en"):
        axis = by_label([("1 Mar", at), ("2 Mar", None)])
        drawn = draw(
            Chart("linked", "Failures", axis, [curve], notes=["1 Mar 2026, 23:30:00 UTC: three", "none"])
        )
    moment = 'data-instant="2026-03-01T23:30:00+00:00" data-written="1 Mar 2026, 23:30:00 UTC"'
    assert f"<g {moment}><title>1 Mar 2026, 23:30:00 UTC: three</title>" in drawn
    assert drawn.count('<a href="/there/" aria-label=') == 1 and 'role="group"' in drawn


def test_the_picture_is_told_in_words() -> None:
    [label] = re.findall(r'role="img" aria-label="([^"]+)"', chart([1, 5, 2]))
    assert label == (
        "Failures. From 1 Mar 2026, 06:00:00 UTC to 1 Mar 2026, 08:00:00 UTC. "
        "failures: highest 5 (1 Mar 2026, 07:00:00 UTC), last 2."
    )


def test_hostile_texts_are_only_texts() -> None:
    drawn = chart([1], Curve("<i>&\"'", [1]), marks=[mark(0.5, about='"><script>\u202e', url="/x/")])
    assert "<script" not in drawn and "<i>" not in drawn and "\u202e" not in drawn


def test_nothing_in_it_needs_a_style_or_a_script() -> None:
    drawn = chart([1, 2], marks=[mark(1, url="/t/")])
    assert "style" not in drawn and "<script" not in drawn and "onclick" not in drawn


def test_a_year_of_days_stays_small() -> None:
    curves = [Curve(name, [float(index % 97) for index in range(366)], Kind.BARS) for name in "ab"]
    drawn = draw(Chart("year", "Year", over_time(edges(366, DAY), BERLIN), curves))
    assert drawn.count("<tr>") == 367 and len(drawn) < 120_000


# -- marks ---------------------------------------------------------------------------------------------------


def test_marks_say_what_happened_and_lead_there() -> None:
    drawn = chart([1, 2, 3, 4], marks=[mark(1, "Trip", "orders", "/trips/1/"), mark(3, "Enabled")])
    assert '<a href="/trips/1/" aria-label="1 Mar 2026, 07:00:00 UTC: Trip: orders">' in drawn
    assert '<g role="img" aria-label="1 Mar 2026, 09:00:00 UTC: Enabled">' in drawn
    assert "2 events" in drawn and drawn.count("<li>") == 3


def test_marks_outside_of_the_period_are_left_out_and_near_ones_are_one() -> None:
    drawn = chart([1] * 100, marks=[mark(-1), mark(101), mark(50), mark(50.5), mark(51)])
    assert "3 events" in drawn and drawn.count('class="event"') == 1 and ">Trip ×3</text>" in drawn
    mixed = chart([1] * 100, marks=[mark(50), mark(50.5, "Enabled")])
    assert ">+1</text>" in mixed and ": Trip; Enabled" in mixed


def test_marks_that_another_chart_has_too_are_no_links_and_no_list() -> None:
    axis = over_time(edges(4), UTC)
    curves, marks = [Curve("failures", [1, 2, 3, 4])], [mark(1, url="/trips/1/")]
    drawn = draw(Chart("one", "Failures", axis, curves, marks=marks, marked_elsewhere=True))
    assert 'class="event"' in drawn and "<a " not in drawn and "1 event" not in drawn
    assert 'role="img"' in drawn


def test_marks_without_values_are_shown() -> None:
    drawn = chart([None, None], marks=[mark(1)])
    assert 'class="mark bad"' in drawn and ">no data</text>" in drawn


@given(st.lists(st.floats(0, 100), max_size=40))
def test_no_mark_is_lost_when_they_are_grouped(places: list[float]) -> None:
    marks = [mark(place) for place in sorted(places)]
    groups = grouped(marks, lambda at: (at - START) / HOUR)
    assert [each for _at, those in groups for each in those] == marks
    assert all(second - first >= 2 - 1e-6 for (first, _), (second, _) in pairwise(groups))


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.sampled_from(["Trip", "Enabled", "A long name of one"])), max_size=40
    )
)
def test_words_of_marks_lie_within_the_picture_and_not_on_each_other(those: list[tuple[float, str]]) -> None:
    groups = grouped([mark(*each) for each in sorted(those)], lambda at: (at - START) / HOUR)
    spans = []
    for (at, _marks), (text, left) in zip(groups, beside(groups), strict=True):
        wide = (len(text) + 2) * LETTER if text else 0.0
        spans.append((at - wide, at) if left else (at, at + wide))
    assert all(first >= 0 and last <= 100 for first, last in spans)
    assert all(before <= after + 1e-6 for (_, before), (after, _) in pairwise(spans))


def test_what_just_happened_is_named_on_the_left() -> None:
    late = [(99.7, [mark(99.7), mark(99.8, "Enabled")])]
    assert beside(late) == [("+1", True)]
    assert beside([(97.0, [mark(97.0)]), *late]) == [("", False), ("", False)]
    assert beside([(60.0, [mark(60.0)]), *late]) == [("Trip", False), ("+1", True)]
    drawn = chart([1] * 100, marks=[mark(99.7), mark(99.8, "Enabled")])
    assert re.search(r'<text class="said last less"[^>]* dx="-10"[^>]*>\+1</text>', drawn)


# -- rules of the drawing ------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 150), max_size=6))
def test_names_at_the_ends_do_not_lie_on_each_other(heights: list[float]) -> None:
    found = apart(sorted(heights), 160)
    assert all(below - above >= APART - 1e-6 for above, below in pairwise(found))
    assert all(height <= 160 for height in found)


@given(st.lists(st.booleans()))
def test_runs_are_all_the_true_ones_and_no_other(wanted: list[bool]) -> None:
    covered = [index for first, last in runs(wanted) for index in range(first, last + 1)]
    assert covered == [index for index, each in enumerate(wanted) if each]


# -- small curves --------------------------------------------------------------------------------------------


def test_a_small_curve_shows_little_beside_much_and_what_is_going_on() -> None:
    drawn = sparkline([0, 1, 1000], "failures")
    assert '<path class="bar" d="M5.5 20v-2"/><path class="bar now" d="M9.5 20v-20"/>' in drawn
    assert '<path class="foot" d="M0 20H12"/>' in drawn and 'aria-label="failures"' in drawn
    assert "now" not in sparkline([0, 1], "ended", going_on=False)


def test_a_small_curve_has_no_line_where_nobody_knows() -> None:
    assert '"M0 20H4M12 20H16"' in sparkline([1, None, math.nan, 2], "words")
    assert "bar" not in sparkline([], "none") and "bar" not in sparkline([0, 0], "none")
