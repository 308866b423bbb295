"""The period that charts show is what the address says, and bounded whatever it says."""

from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from console.ui.time_range import LONGEST, OWN, RANGES, TimeRange, time_range

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def asked(query: str) -> TimeRange:
    with override("en"):
        return time_range(QueryDict(query), NOW)


def test_nothing_asked_is_the_last_day() -> None:
    found = asked("q=x")
    assert (found.key, found.end - found.start, found.end, found.problem) == (
        "24h",
        timedelta(days=1),
        NOW,
        "",
    )


@pytest.mark.parametrize("key", RANGES)
def test_each_range_ends_now_and_is_marked(key: str) -> None:
    found = asked(f"range={key}")
    assert found.end == NOW and found.end - found.start == RANGES[key]
    assert [choice.here for choice in found.choices] == [each == key for each in RANGES]


def test_an_own_range_is_of_the_zone_of_the_site_and_never_ends_in_the_future() -> None:
    found = asked("from=2026-02-28T10:00&until=2026-04-01T00:00")
    assert found.key == OWN and found.start == datetime(2026, 2, 28, 10, tzinfo=UTC) and found.end == NOW
    assert found.typed == ("2026-02-28T10:00", "2026-04-01T00:00")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("range=fortnight", "Unknown period"),
        ("compare=year", "Unknown comparison"),
        ("from=yesterday", "Enter a date and time"),
        ("range=own", "Enter the start"),
        ("until=2026-02-01T00:00", "Enter the start"),
        ("from=2026-02-28T10:00&until=2026-02-28T09:00", "at least a minute after it starts"),
        ("from=2026-03-02T00:00", "must be in the past"),
        ("from=1926-03-01T00:00", "longer than a year"),
        ("from=0001-01-01T00:00:00%2B23:59", "Invalid date"),
    ],
)
def test_what_cannot_be_shown_is_said_and_the_last_day_is_shown(query: str, problem: str) -> None:
    found = asked(query)
    assert problem in found.problem and found.key == "24h" and found.end - found.start == timedelta(days=1)


def test_what_else_the_address_holds_is_kept() -> None:
    found = asked("q=a%26b&range=7d&from=&kind=trip&kind=alert&compare=week")
    assert found.compared == timedelta(weeks=1) and found.compared_label == "a week earlier"
    assert found.kept == [("q", "a&b"), ("kind", "trip"), ("kind", "alert")]
    hour = next(
        choice for choice in found.choices if choice.query.endswith("range=1h") or "range=1h" in choice.query
    )
    assert "q=a%26b" in hour.query and "kind=trip&kind=alert" in hour.query and "from=" not in hour.query
    assert [key for key, _label, here in found.comparisons if here] == ["week"]


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=8), st.text(max_size=8))
def test_every_address_gives_a_bounded_period(start: str, end: str, key: str, compare: str) -> None:
    query = QueryDict(mutable=True)
    query.update({"from": start, "until": end, "range": key, "compare": compare})
    found = time_range(query, NOW)
    assert timedelta() < found.end - found.start <= LONGEST and found.end <= NOW


@given(st.datetimes(), st.datetimes())
def test_every_two_instants_give_a_bounded_period(start: datetime, end: datetime) -> None:
    query = QueryDict(mutable=True)
    query.update({"from": start.isoformat(), "until": end.isoformat()})
    found = time_range(query, NOW)
    assert timedelta() < found.end - found.start <= LONGEST and found.end <= NOW
