"""Figures of a range as people read them: points without gaps, bounded, of days of 23 and 25 hours, and the
same sums by whichever question."""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from metrics import queries
from metrics.models import Day, Hour
from metrics.queries import Series, scope_of, series, series_of, totals
from metrics.rules import Figures
from tests.web.test_minute_figures import DAY, HOUR, MINUTE, NOON, Hall, settle

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

BERLIN = ZoneInfo("Europe/Berlin")
ORIGIN = datetime(1970, 1, 1, tzinfo=UTC)


def succeeded(found: Series) -> int:
    return sum(point.succeeded for point in found.points)


def starts(found: Series) -> Iterator[bool]:
    pairs = zip(found.points, found.points[1:], strict=False)
    return (after.start - before.start == found.step for before, after in pairs)


@pytest.fixture
def hall() -> Hall:
    """Eight a minute, for two hours until noon, and in each of the sixty hours before for its first
    minute."""
    made = Hall()
    made.send(*(made.minute(NOON - 2 * HOUR + n * MINUTE) for n in range(120)), now=NOON)
    made.send(*(made.minute(NOON - n * HOUR) for n in range(3, 63)), now=NOON)
    settle(NOON)
    return made


def test_points_follow_each_other_without_a_gap(hall: Hall) -> None:
    for scope in hall.scopes.values():
        found = series(scope, NOON - HOUR, NOON, NOON + MINUTE)
        assert len(found.points) == 60 and all(starts(found)) and found.step == MINUTE
        assert {point.succeeded for point in found.points} == {8}
        assert {point.seconds for point in found.points} == {60}
        idle = series(scope, NOON - 4 * HOUR, NOON - 2 * HOUR, NOON + MINUTE)
        assert succeeded(idle) == 16 and len(idle.points) == 120 and all(starts(idle))
        assert idle.points[1].waiting is None and idle.points[1].processing == {}


@pytest.mark.parametrize(
    ("ago", "expected"), [(1, 8 * 60), (6, 8 * 124), (24, 8 * 142), (60, 8 * 178), (24 * 29, 8 * 180)]
)
def test_whatever_the_step_the_sum_is_the_same(hall: Hall, ago: int, expected: int) -> None:
    start = NOON - ago * HOUR
    for scope in hall.scopes.values():
        found = series(scope, start, NOON, NOON + MINUTE)
        assert succeeded(found) == expected, (scope, found.step)
        assert len(found.points) <= 400 and all(starts(found))
    by_total = totals(hall.scopes.values(), start, NOON, NOON + MINUTE)
    assert {each.succeeded for each in by_total.values()} == {expected}


def test_a_year_has_days_and_a_hundred_years_have_no_more(hall: Hall) -> None:
    with CaptureQueriesContext(connection) as asked:
        found = series("*", ORIGIN, NOON + 100 * 365 * DAY, NOON + MINUTE)
    assert found.step == DAY and len(found.points) == 366 and succeeded(found) == 8 * 180
    assert len(asked) <= 3
    assert succeeded(series("*", ORIGIN - 50 * 365 * DAY, NOON, NOON + MINUTE)) == 8 * 180


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (NOON, NOON - HOUR),
        (NOON, NOON),
        (NOON + HOUR, NOON + 2 * HOUR),
        (ORIGIN, ORIGIN + DAY),
        (NOON - 500 * DAY, NOON - 400 * DAY),
    ],
)
def test_a_range_of_which_nothing_is_kept_has_no_points(hall: Hall, start: datetime, end: datetime) -> None:
    assert series("*", start, end, NOON + MINUTE).points == ()
    assert totals(["*"], start, end, NOON + MINUTE) == {"*": Figures()}


def test_a_point_that_is_not_over_is_shorter(hall: Hall) -> None:
    found = series("*", NOON - 29 * DAY, NOON, NOON + MINUTE)
    assert (found.step, found.points[-1].seconds) == (2 * HOUR, 7200)
    found = series("*", NOON - 29 * DAY, NOON + 30 * MINUTE, NOON + 31 * MINUTE)
    assert found.points[-1].seconds == 30 * 60


def test_one_minute_is_one_point(hall: Hall) -> None:
    found = series("*", NOON - MINUTE, NOON, NOON + MINUTE)
    assert [(point.start, point.succeeded) for point in found.points] == [(NOON - MINUTE, 8)]


def test_a_scope_of_which_nothing_was_reported_is_idle(hall: Hall) -> None:
    for scope in (scope_of(99_999), "nonsense"):
        found = series(scope, NOON - HOUR, NOON, NOON + MINUTE)
        assert len(found.points) == 60 and succeeded(found) == 0
        assert totals([scope], NOON - HOUR, NOON, NOON) == {scope: Figures()}


@pytest.mark.parametrize(("day", "hours"), [((2026, 3, 29), 23), ((2026, 10, 25), 25)])
def test_a_day_of_summer_time_is_as_long_as_it_is(day: tuple[int, int, int], hours: int) -> None:
    start = datetime(*day, tzinfo=BERLIN)
    end = (start.replace(tzinfo=None) + DAY).replace(tzinfo=BERLIN)
    first, over = start.astimezone(UTC), end.astimezone(UTC)
    hall = Hall()
    times = [first - MINUTE, *(first + n * HOUR for n in range(hours)), over - MINUTE, over]
    hall.send(*(hall.minute(at) for at in times), now=over + HOUR)
    now = over + 3 * DAY
    settle(over + 2 * HOUR)
    settle(now)
    for scope in hall.scopes.values():
        found = series(scope, start, end, now)
        assert (len(found.points), succeeded(found)) == (hours, 8 * (hours + 1))
        assert found.points[0].start == first and found.points[-1].succeeded == 16
        assert totals([scope], start, end, now)[scope].succeeded == 8 * (hours + 1)


def test_totals_have_histograms_unless_nobody_wants_them(hall: Hall) -> None:
    scopes = hall.scopes.values()
    for ago in (HOUR, 50 * HOUR, 40 * DAY):
        whole = totals(scopes, NOON - ago, NOON, NOON + MINUTE)
        for scope, each in whole.items():
            minutes = each.succeeded // 8
            assert each.processing == {20: 8 * minutes, 24: 2 * minutes} and each.critical == {
                30: 8 * minutes
            }
            assert each.children_bytes == 1000 and each.busy_seconds == 2.5 * minutes
            bare = totals([scope], NOON - ago, NOON, NOON + MINUTE, histograms=False)[scope]
            assert (bare.succeeded, bare.processing) == (each.succeeded, {})


def test_small_series_of_many_have_the_same_sums_by_a_question_for_all(hall: Hall) -> None:
    scopes = [*hall.scopes.values(), scope_of(12_345)]
    with CaptureQueriesContext(connection) as asked:
        found = series_of(scopes, NOON - DAY, NOON, NOON + MINUTE)
    assert len(asked) <= 3
    assert {succeeded(found[scope]) for scope in hall.scopes.values()} == {8 * 142}
    assert succeeded(found[scopes[-1]]) == 0
    for each in found.values():
        assert len(each.points) == 24 and all(starts(each)) and each.points[0].processing == {}


def test_of_many_scopes_some_are_asked_for_at_once(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_SCOPES_AT_ONCE", 1)
    found = totals(hall.scopes.values(), NOON - DAY, NOON, NOON + MINUTE)
    assert {each.succeeded for each in found.values()} == {8 * 142}


def test_edges_of_a_range_are_exact_to_the_minute(hall: Hall) -> None:
    for name in ("*", "s", "h"):
        scope = hall.scopes[name]
        for first, last in ((90, 30), (119, 1), (61, 59), (60, 0)):
            start, end = NOON - first * MINUTE, NOON - last * MINUTE
            assert totals([scope], start, end, NOON)[scope].succeeded == 8 * (first - last)
            assert succeeded(series(scope, start, end, NOON + MINUTE)) == 8 * (first - last)


def test_a_day_is_the_sum_of_its_hours(hall: Hall) -> None:
    for scope in hall.scopes.values():
        hours = Hour.objects.filter(scope__key=scope)
        for day in Day.objects.filter(scope__key=scope):
            own = hours.filter(span__gte=day.span * 24, span__lt=day.span * 24 + 24)
            assert sum(own.values_list("succeeded", flat=True)) == day.succeeded
