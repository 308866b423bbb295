"""The list of settings and the table of the overview: worst first, searched, sorted, in pages."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from django.db import connection
from django.http import HttpRequest, QueryDict
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from console.lists.columns import Column, in_order, listing, matching
from tests.web.crowd import make_crowd
from tests.web.factories import World
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in

PATHS = ("/settings/", "/")


@dataclass(frozen=True)
class Row:
    name: str
    size: int | None = None


COLUMNS: tuple[Column[Row], ...] = (
    Column("name", "Name", lambda row: row.name),
    Column("size", "Size", lambda row: row.size, largest_first=True, classes="num"),
    Column("more", "More"),
)


def asked(address: str) -> HttpRequest:
    return RequestFactory().get(address)


def rows(*sizes: int | None) -> list[Row]:
    return [Row(f"r{number}", size) for number, size in enumerate(sizes)]


def names(found: Sequence[Row]) -> str:
    return " ".join(row.name for row in found)


def test_what_is_not_known_comes_last_in_both_directions_and_equals_keep_their_order() -> None:
    every = rows(1, None, 3, 1)

    assert names(in_order(every, COLUMNS[1], descending=False)) == "r0 r3 r2 r1"
    assert names(in_order(every, COLUMNS[1], descending=True)) == "r2 r0 r3 r1"


@pytest.mark.parametrize("sort", ("", "more", "nothing", "-", "--size", "SIZE"))
def test_an_order_that_nobody_knows_is_the_order_of_the_list(sort: str) -> None:
    made = listing(asked(f"/?sort={sort}"), rows(1, 3, 2), COLUMNS)

    assert names(made.rows) == "r0 r1 r2"
    assert not any(head.sorted for head in made.heads)


def test_a_head_leads_to_its_order_and_then_to_the_other_way_and_keeps_the_rest() -> None:
    heads = listing(asked("/?state=off&q=x&page=3"), rows(1), COLUMNS).heads
    assert [head.query for head in heads] == ["state=off&q=x&sort=name", "state=off&q=x&sort=-size", ""]

    down = listing(asked("/?sort=-size"), rows(1, 3), COLUMNS)
    assert (down.heads[1].sorted, down.heads[1].query) == ("descending", "sort=size")
    assert names(down.rows) == "r1 r0"
    up = listing(asked("/?sort=size"), rows(3, 1), COLUMNS)
    assert (up.heads[1].sorted, up.heads[1].query) == ("ascending", "sort=-size")
    assert names(up.rows) == "r1 r0"


def test_pages_and_the_search_form_keep_what_else_was_asked_for() -> None:
    made = listing(asked("/?state=off&sort=-size&q=r&page=2&empty="), rows(*range(60)), COLUMNS)

    assert len(made.found) == 60 and names(made.rows) == "r9 r8 r7 r6 r5 r4 r3 r2 r1 r0"
    assert QueryDict(made.kept).dict() == {"state": "off", "sort": "-size", "q": "r", "empty": ""}
    assert list(made.hidden) == [("state", "off"), ("sort", "-size")]


def test_a_search_finds_a_part_of_any_text_in_any_case() -> None:
    every = [Row("Orders"), Row("straße"), Row("invoices")]

    def found(text: str) -> str:
        return names(matching(every, text, lambda row: [row.name, "x"]))

    assert [found(text) for text in ("ORD", "STRASSE", "o", "x", "")] == [
        "Orders",
        "straße",
        "Orders invoices",
        names(every),
        names(every),
    ]


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    answer = broker_figures(dead=0, waiting=3, consumers=0)
    broker_answers(monkeypatch, answer)
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 0)
    return signed_in(world, "operator")


def keys(client: Client, address: str) -> list[str]:
    return [row.setting.key for row in client.get(address).context["listing"].rows]


@pytest.mark.parametrize("path", PATHS)
def test_the_worst_settings_come_first_and_those_never_enabled_last(
    path: str, client: Client, world: World
) -> None:
    make_crowd(world, 10, 0)
    found = keys(client, path)

    places = {key: place for place, key in enumerate(found)}
    tripped, failed = places["returns"], places["prices-import"]
    dead, manual, well = places["invoices"], places["stock-sync"], places["orders-archive"]
    assert max(tripped, failed) < places["orders-export"] < dead < manual < well, found
    assert set(found[-3:]) == {"crowd-002-sync", "crowd-006-import", "crowd-009-notify"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STOCK-s", {"stock-sync"}),
        ("demo.ord", {"orders-archive"}),
        ("mail.outgoing", {"mail-send"}),
        ("nothing like it", set()),
    ],
)
def test_a_setting_is_found_by_a_part_of_its_key_its_agent_or_its_destination(
    path: str, text: str, expected: set[str], client: Client
) -> None:
    assert set(keys(client, f"{path}?q={text}")) == expected


def test_a_pool_finds_its_settings(client: Client, world: World) -> None:
    north = {setting.key for setting in world.settings.values() if setting.pool.name == "north"}

    assert north and set(keys(client, "/settings/?q=nor")) == north


@pytest.mark.parametrize("path", PATHS)
def test_a_search_without_results_says_so_and_can_be_left(path: str, client: Client) -> None:
    page = looked_at(client, f"{path}?q=nothing+like+it&sort=key")

    assert "No results." in page.text and "No settings yet." not in page.text
    assert f"{path}?sort=key" in page.links()


def test_columns_sort_and_say_so(client: Client) -> None:
    html = client.get("/settings/?sort=-processed").content.decode()
    handled = [
        row.handled for row in client.get("/settings/?sort=-processed").context["listing"].rows if row.runs
    ]

    assert handled == sorted(handled, reverse=True) and handled[0] > handled[-1]
    assert html.count("aria-sort=") == 1 and 'class="num" aria-sort="descending"' in html
    assert keys(client, "/settings/?sort=key") == sorted(keys(client, "/settings/?sort=key"))


def test_tabs_pages_and_heads_keep_search_and_order(client: Client, world: World) -> None:
    make_crowd(world, 60, 0)
    page = looked_at(client, "/settings/?q=crowd&sort=-key")

    links = page.links()
    assert "?state=off&q=crowd&sort=-key" in links
    assert "?q=crowd&sort=-key&page=2" in links
    assert keys(client, "/settings/?q=crowd&sort=-key&page=2")[-1] == "crowd-000-export"
    assert "/settings/?q=crowd&sort=-key&page=2" in looked_at(client, "/?q=crowd&sort=-key").links()


@pytest.mark.parametrize("path", ["/settings/", "/", "/settings/?q=crowd&sort=-dead"])
def test_a_large_house_asks_no_more_than_a_small_one(path: str, client: Client, world: World) -> None:
    def questions() -> int:
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            client.get(path)
        return len(queries)

    make_crowd(world, 20, 40)
    few = questions()
    make_crowd(world, 187, 500, prefix="hall")
    assert questions() <= few


def test_hostile_words_are_only_words(client: Client) -> None:
    answer = client.get("/settings/", {"q": '"><script>alert(1)</script>', "sort": '"><b>', "state": "x"})

    assert answer.status_code == 200 and b"<script>alert" not in answer.content
    assert b'"><b>' not in answer.content
