"""What a filter of protocols finds: the same as looking at each of them, page by page, forth and back, at any
size."""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import LaunchSetting, Server
from console.lists.keyset import Place, place_in
from failures.models import FailureProtocol
from failures.protocols import search
from failures.protocols.filter import ProtocolFilter
from failures.protocols.search import Count, count, listed, newest, part_of, protocols_at
from tests.web import reports
from tests.web.reports import AT

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
ACTIVATIONS = [UUID(int=n + 1) for n in range(3)]
Row = FailureProtocol


def stored(many: int, seed: int = 1) -> list[Row]:
    """Many at the same instants; some of a setting and a server that were deleted and made anew."""
    random = Random(seed)
    settings: list[LaunchSetting | None] = [reports.setting("orders"), reports.setting("mails"), None]
    servers: list[Server | None] = [reports.server("srv-1"), reports.server("srv-2"), None]
    rows = []
    for number in range(many):
        setting, server = random.choice(settings), random.choice(servers)
        kind = random.choice(("KeyError", "ValueError", "exit:3"))
        row = Row(
            id=UUID(int=random.getrandbits(128)), spool=UUID(int=5), number=number, setting=setting,
            server=server,
            setting_key=setting.key if setting else random.choice(("orders", "gone")), epoch=1, agent="demo",
            server_name=server.name if server else random.choice(("srv-1", "gone")), outcome="raised",
            activation_uuid=random.choice(ACTIVATIONS), exception_type=kind, fingerprint=f"v1:{kind[0]}",
            exception_text=random.choice(("no such order", "100 % \\ gone", "Ж_x")),
            counted=random.random() < 0.5,
            message_key=random.choice(("", "ID:1", "ID:2")), temporary=random.random() < 0.3,
            occurred_at=AT + timedelta(seconds=random.randrange(many // 3)),
            disposition=random.choice(("", "dlq", "discarded")),
        )  # fmt: skip
        rows.append(row)
    Row.objects.bulk_create(rows)
    return rows


def found_by(query: str) -> ProtocolFilter:
    filters = ProtocolFilter(QueryDict(query))
    assert not filters.problem, filters.problem
    return filters


def pages(query: str, size: int) -> list[list[Place]]:
    """All of them, downwards."""
    asked, before, found = found_by(query).asked, None, []
    while True:
        part = part_of(asked, before=before, size=size)
        found.append(list(part.places))
        if part.older is None:
            return found
        before = part.older


QUERIES: dict[str, Callable[[Row], bool]] = {
    "": lambda row: True,
    "setting=orders": lambda row: row.setting_key == "orders",
    "setting=gone": lambda row: row.setting_key == "gone",
    "server=srv-1": lambda row: row.server_name == "srv-1",
    "setting=orders&server=srv-2&fingerprint=v1:K": lambda row: (
        (row.setting_key, row.server_name, row.fingerprint) == ("orders", "srv-2", "v1:K")
    ),
    f"activation={ACTIVATIONS[1]}": lambda row: row.activation_uuid == ACTIVATIONS[1],
    f"activation={ACTIVATIONS[1]}&fingerprint=v1:V&counted=true": lambda row: (
        row.activation_uuid == ACTIVATIONS[1] and row.fingerprint == "v1:V" and row.counted
    ),
    "fingerprint=v1:nothing": lambda row: False,
    "message_key=ID:1": lambda row: row.message_key == "ID:1",
    "message_key=ID:1&setting=mails&temporary=false": lambda row: (
        row.message_key == "ID:1" and row.setting_key == "mails" and not row.temporary
    ),
    "exception=error&temporary=true": lambda row: "Error" in row.exception_type and row.temporary,
    "exception_type=exit:3&counted=false": lambda row: row.exception_type == "exit:3" and not row.counted,
    "text=SUCH": lambda row: "such" in row.exception_text,
    "text=%25": lambda row: "%" in row.exception_text,
    "text=_x&outcome=raised": lambda row: "_x" in row.exception_text,
    "outcome=timed_out": lambda row: False,
    "disposition=discarded&setting=orders": lambda row: (
        (row.disposition, row.setting_key) == ("discarded", "orders")
    ),
    "disposition=exception": lambda row: False,
    "since=2026-03-01T12:00:20Z&until=2026-03-01T12:00:40Z": lambda row: _within(row, 20, 40),
    "message_key=ID:2&since=2026-03-01T12:00:20Z&until=2026-03-01T12:00:40Z": lambda row: (
        row.message_key == "ID:2" and _within(row, 20, 40)
    ),
    "setting=orders&until=2026-03-01T12:00:30Z": lambda row: (
        row.setting_key == "orders" and _within(row, 0, 30)
    ),
}


def _within(row: Row, first: int, last: int) -> bool:
    return AT + timedelta(seconds=first) <= row.occurred_at < AT + timedelta(seconds=last)


def of(rows: list[Row], matches: Callable[[Row], bool]) -> list[Place]:
    return sorted((Place(row.occurred_at, row.pk) for row in rows if matches(row)), reverse=True)


@pytest.fixture(params=["with time", "without time", "many of a message"])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(search, "WINDOW", 4)
    monkeypatch.setattr(search, "BUDGET", -1.0 if request.param == "without time" else 60.0)
    if request.param != "with time":
        monkeypatch.setattr(search, "FEW", 3)
    return str(request.param)


@pytest.mark.parametrize("query", QUERIES)
def test_every_page_together_is_what_matches(query: str, pace: str) -> None:
    expected = of(stored(200), QUERIES[query])

    found = pages(query, size=7)

    assert [place for page in found for place in page] == expected
    if pace == "with time":
        assert all(len(page) == 7 for page in found[:-1])
        assert count(found_by(query).asked).count == len(expected)


@pytest.mark.parametrize("query", QUERIES)
def test_the_newest_page_is_counted_on_its_way(query: str, pace: str) -> None:
    """As `part_of` and `count` say it, which walk twice; where the time runs out, as far as the page was
    looked for."""
    expected, asked = of(stored(200), QUERIES[query]), found_by(query).asked

    part, counted = listed(asked, before=None, after=None, size=7)

    assert (list(part.places), part.newer) == (expected[: len(part.places)], None)
    if pace == "with time":
        assert (part, counted) == (part_of(asked, size=7), Count(len(expected)))
    else:
        there = [place for place in expected if counted.back_to is None or place.at >= counted.back_to]
        assert (counted.count, counted.more) == (len(there), counted.back_to is not None)
    if len(part.places) < 7:
        assert (part.stopped_at.at if part.stopped_at else None) == counted.back_to


def test_the_newest_page_is_whole_where_there_are_more_than_are_counted(pace: str) -> None:
    expected, asked = of(stored(200), QUERIES["setting=orders"]), found_by("setting=orders").asked
    found, counted = newest(asked, 7, most=7)

    assert counted.more and (
        pace == "without time" or (found.places, counted) == (expected[:7], Count(7, more=True))
    )


def test_a_page_that_is_not_the_newest_is_counted_as_well(pace: str) -> None:
    expected, asked = of(stored(200), QUERIES["setting=orders"]), found_by("setting=orders").asked
    part, counted = listed(asked, before=expected[30], after=None, size=7)

    assert part == part_of(asked, before=expected[30], size=7)
    assert counted.count == len(expected) or (pace == "without time" and counted.more)


@pytest.mark.parametrize(
    "query", ["", "setting=orders&text=such", "message_key=ID:1", "server=srv-1&temporary=true"]
)
def test_the_way_back_shows_the_pages_of_the_way_there(query: str, pace: str) -> None:
    expected = of(stored(200), QUERIES.get(query) or (lambda row: _found_as(row, query)))
    asked = found_by(query).asked
    above: list[Place] = []
    newer: Place | None = expected[-1]
    for _ in range(1000):
        assert newer is not None
        part = part_of(asked, after=newer, size=7)
        if part.newer is None:
            break
        assert part.newer > newer
        newer, above = part.newer, [*part.places, *above]

    assert (
        list(part.places) == expected[:7]
        if pace != "without time"
        else list(part.places) == expected[: len(part.places)]
    )
    assert set(above) | set(expected[:7]) | {expected[-1]} == set(expected)


def _found_as(row: Row, query: str) -> bool:
    if "text" in query:
        return row.setting_key == "orders" and "such" in row.exception_text
    return row.server_name == "srv-1" and row.temporary


def test_case_is_that_of_every_script() -> None:
    rows = stored(30)
    Row.objects.filter(pk=rows[0].pk).update(exception_text="Нет ЗАКАЗА", exception_type="ОшибкаЗаказа")

    for query in ("text=нет заказа", "text=НЕТ", "exception=оШИБКА", "text=нет&exception=ЗАКАЗА"):
        assert [[place.key for place in page] for page in pages(query, size=7)] == [[rows[0].pk]], query


@pytest.mark.parametrize(("since_receipt", "found"), [(timedelta(minutes=5), 1), (timedelta(hours=2), 0)])
def test_the_last_hour_of_a_clock_that_is_ahead_is_that_of_its_receipt(
    since_receipt: timedelta, found: int
) -> None:
    rows, now = stored(30), timezone.now()
    Row.objects.update(occurred_at=now - timedelta(days=2), received_at=now - timedelta(days=2))
    ahead = {"occurred_at": now + timedelta(days=9), "received_at": now - since_receipt}
    Row.objects.filter(pk=rows[0].pk).update(**ahead)

    assert count(found_by("span=1h").asked).count == found


def test_what_was_only_noted_is_no_temporary_failure() -> None:
    rows = stored(30)
    Row.objects.update(temporary=True)
    Row.objects.filter(pk=rows[0].pk).update(outcome="noted")

    assert count(found_by("temporary=true").asked).count == 29
    assert count(found_by("temporary=false").asked).count == 0
    assert count(found_by("outcome=noted").asked).count == 1


@pytest.mark.parametrize("stored_as", [" v1:blank", "v1:blank ", " "])
def test_what_links_bring_is_looked_for_as_it_is_stored(stored_as: str) -> None:
    rows = stored(30)
    Row.objects.filter(pk=rows[0].pk).update(fingerprint=stored_as, exception_type=stored_as)

    for name in ("fingerprint", "exception_type"):
        found = pages(urlencode({name: stored_as}), size=7)
        assert [[place.key for place in page] for page in found] == [[rows[0].pk]]


def test_no_more_than_asked_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(60)
    monkeypatch.setattr(search, "BUDGET", 60.0)
    asked = found_by("").asked

    assert (count(asked, most=59).count, count(asked, most=59).more) == (59, True)
    assert (count(asked, most=60).count, count(asked, most=60).more) == (60, False)


def test_what_is_newer_than_a_place_is_counted(pace: str) -> None:
    expected = of(stored(90), lambda row: row.setting_key == "orders")
    counted = count(found_by("setting=orders").asked, above=expected[10])

    assert counted.count == 10 or (pace == "without time" and counted.more)


def test_a_walk_that_runs_out_of_time_says_how_far_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = stored(200)
    monkeypatch.setattr(search, "WINDOW", 10)
    monkeypatch.setattr(search, "BUDGET", -1.0)
    asked = found_by("text=nowhere").asked
    part, counted = part_of(asked, size=7), count(asked)

    newest = sorted(row.occurred_at for row in rows)[-10]
    assert part.places == [] and part.stopped_at is not None and part.older == part.stopped_at
    assert part.stopped_at.at == newest == counted.back_to and counted.more


def test_the_way_that_reaches_furthest_back_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rare fingerprint among many failures of a setting is found without looking at each of these."""
    rows = stored(300)
    Row.objects.filter(pk=min(rows, key=lambda row: row.occurred_at).pk).update(
        fingerprint="v1:rare", setting_key="orders", setting=LaunchSetting.objects.get(key="orders")
    )
    monkeypatch.setattr(search, "WINDOW", 4)
    monkeypatch.setattr(search, "BUDGET", -1.0)

    part = part_of(found_by("setting=orders&fingerprint=v1:rare").asked, size=7)

    assert len(part.places) == 1 and part.stopped_at is None


def test_no_question_reads_more_rows_than_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement without a bound: each is limited, or lies between two instants of an index."""
    stored(300)
    monkeypatch.setattr(search, "WINDOW", 10)
    for query in QUERIES:
        with CaptureQueriesContext(connection) as asked:
            part_of(found_by(query).asked, size=7)
        for each in asked.captured_queries:
            sql = each["sql"]
            if "failures_failureprotocol" in sql:
                assert "LIMIT" in sql or '"occurred_at" >=' in sql or '"id" IN' in sql, sql


def test_what_was_deleted_meanwhile_is_left_out() -> None:
    rows = stored(10)
    places = of(rows, lambda row: True)
    Row.objects.filter(pk=places[3].key).delete()

    assert [row.pk for row in protocols_at(places)] == [place.key for place in places if place != places[3]]


@pytest.mark.parametrize("query", ["nonsense=1", "span=9y", "activation=x", "since=yesterday",
    "temporary=perhaps",
                                   "since=2026-03-02&until=2026-03-01", "setting=" + "x" * 300])  # fmt: skip
def test_what_is_not_understood_finds_nothing_and_says_why(query: str) -> None:
    assert ProtocolFilter(QueryDict(query)).problem


def test_what_was_deleted_is_searched_for_and_its_name_said_to_be_gone() -> None:
    reports.setting("orders")

    gone, there = (found_by(f"setting={key}").form["setting"].field.widget for key in ("gone", "orders"))

    assert gone.names == there.names == ["orders"]
    assert gone.note.startswith("No existing object has this name.") and there.note == ""
    assert not found_by("setting=gone").problem


def test_the_later_of_two_begins_holds() -> None:
    asked = found_by("span=1h&since=2099-01-01T00:00:00Z").asked

    assert asked.since == datetime.fromisoformat("2099-01-01T00:00:00+00:00")


@pytest.mark.parametrize(
    "text", ["", "x", "_", f"2026-03-01T12:00:00_{UUID(int=1)}", "2026-03-01T12:00:00+00:00_7"]
)
def test_a_place_that_nobody_wrote_is_none(text: str) -> None:
    assert place_in(text, Row) is None


def test_a_place_is_read_as_it_was_written() -> None:
    place = Place(AT, uuid4())

    assert place_in(str(place), Row) == place
