"""Curves on pages: what the figures say and nothing else, bounded, with what happened above them."""

import re
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Server
from metrics.pages.figures import Part, parts_of, same_time, sum_of
from metrics.pages.panels import of_activation
from metrics.queries import Point, scope_of
from tests.web.factories import World
from tests.web.figure_rows import fill
from tests.web.pages import signed_in
from tests.web.rows import NOW

KEY = "orders-export"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def html(client: Client, path: str, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, path
    return answer.content.decode()


def chart(page: str, name: str) -> str:
    found = re.search(rf'<figure class="chart" id="curves-{name}".*?</figure>', page, re.DOTALL)
    assert found, name
    return found.group()


def numbers(drawn: str) -> list[str]:
    """The first column of values of the table behind a chart."""
    return re.findall(r'</th><td class="num">([^<]*)</td>', drawn)


# -- pages ---------------------------------------------------------------------------------------------------


def test_a_setting_shows_how_many_how_fast_and_what_waits(world: World) -> None:
    fill(scope_of(world.settings[KEY].pk), timezone.now(), minutes=90)
    page = html(signed_in(world, "viewer"), f"/settings/{KEY}/?range=1h")

    assert set(numbers(chart(page, "processed"))) <= {"10", "0"} and "10" in numbers(chart(page, "processed"))
    assert chart(page, "failures").count('<path class="bars') == 2
    assert "95 %" in chart(page, "processing") and "ms" in chart(page, "processing")
    assert "5" in numbers(chart(page, "queue")) and "5" not in numbers(chart(page, "dead"))


def _succeeded(count: int, minute: int) -> dict[str, int]:
    return {"succeeded": count}


def test_each_page_has_its_own_figures(world: World) -> None:
    setting, server = world.settings[KEY], Server.objects.get(name="srv-1")
    now = timezone.now()
    for scope, count in ((scope_of(), 7), (scope_of(setting.pk), 3), (scope_of(server=server.pk), 4)):
        fill(scope, now, minutes=30, values=partial(_succeeded, count))
    client = signed_in(world, "viewer")
    pages = {
        "/timeline/?range=1h": "7",
        f"/settings/{KEY}/?range=1h": "3",
        "/servers/srv-1/?range=1h": "4",
        f"/timeline/?range=1h&setting={KEY}": "3",
        "/timeline/?range=1h&server=srv-1": "4",
        f"/destinations/{setting.destination_id}/?range=1h": "3",
    }
    for path, expected in pages.items():
        assert expected in numbers(chart(html(client, path), "processed")), path
    assert 'id="curves-processed"' in html(client, "/")


def test_the_same_time_before_is_beside_it_and_named(world: World) -> None:
    now = timezone.now()
    fill(scope_of(world.settings[KEY].pk), now, minutes=60, values=lambda minute: {"succeeded": 10})
    fill(scope_of(world.settings[KEY].pk), now - DAY, minutes=60, values=lambda minute: {"succeeded": 4})
    drawn = chart(html(signed_in(world, "viewer"), f"/settings/{KEY}/?range=1h&compare=day"), "processed")

    assert ">a day earlier</text>" in drawn and "<b>a day earlier</b>" in drawn
    rows = re.findall(r'</th><td class="num">([^<]*)</td><td class="num">([^<]*)</td>', drawn)
    assert ("10", "4") in rows


def test_a_standalone_agent_has_no_figures_of_messages(world: World) -> None:
    world.settings[KEY].__class__.objects.filter(pk=world.settings[KEY].pk).update(
        kind="standalone", destination=None
    )
    assert 'id="curves' not in html(signed_in(world, "viewer"), f"/settings/{KEY}/")


def test_a_wrong_period_is_said_and_the_page_is_there(world: World) -> None:
    page = html(signed_in(world, "viewer"), f"/settings/{KEY}/?from=1900-01-01T00:00&until=2000-01-01T00:00")
    assert "The period cannot be longer than a year." in page and 'id="curves-processed"' in page


def test_what_another_part_refreshes_draws_no_curve(world: World) -> None:
    client = signed_in(world, "viewer")
    for path in ("/", f"/settings/{KEY}/", "/servers/srv-1/"):
        assert "<figure" not in html(client, path, hx_target="live"), path
        assert "<figure" in html(client, path, hx_target="curves"), path
    assert '<section class="panel" id="curves" hx-preserve="true">' in html(client, "/", hx_target="live")


def test_questions_and_size_are_bounded_whatever_is_kept(world: World) -> None:
    client = signed_in(world, "viewer")
    paths = [
        "/",
        f"/settings/{KEY}/?range=1y&compare=week",
        "/servers/srv-1/?range=30d",
        "/timeline/?range=1y",
    ]
    asked = [_queries(client, path) for path in paths]
    now = timezone.now()
    server = Server.objects.get(name="srv-1")
    for scope in (scope_of(), scope_of(world.settings[KEY].pk), scope_of(server=server.pk)):
        fill(scope, now, minutes=2880, hours=720, days=365)
    for path, (before, _length) in zip(paths, asked, strict=True):
        queries, length = _queries(client, path)
        assert queries <= before + 5, path
        assert length < 700_000, path


def _queries(client: Client, path: str) -> tuple[int, int]:
    html(client, path)
    with CaptureQueriesContext(connection) as queries:
        page = html(client, path)
    return len(queries), len(page)


def test_histograms_are_read_only_where_they_are_drawn(world: World) -> None:
    for scope in (scope_of(), scope_of(world.settings[KEY].pk)):
        fill(scope, timezone.now(), minutes=30)
    client = signed_in(world, "viewer")
    paths = ("/", "/timeline/?range=1h", f"/settings/{KEY}/?range=1h")
    assert [_reads_histograms(client, path) for path in paths] == [False, False, True]


def _reads_histograms(client: Client, path: str) -> bool:
    with CaptureQueriesContext(connection) as queries:
        html(client, path)
    asked = [query["sql"] for query in queries if 'FROM "metrics_scopeminute"' in query["sql"]]
    assert asked, path
    return any('"processing"' in sql for sql in asked)


def test_a_list_of_settings_has_small_curves_in_two_questions(world: World) -> None:
    client = signed_in(world, "viewer")
    before, _length = _queries(client, "/settings/")
    fill(scope_of(world.settings[KEY].pk), timezone.now(), hours=24)
    queries, _length = _queries(client, "/settings/")
    page = html(client, "/settings/")

    assert queries <= before + 1
    assert re.search(r'class="spark ok"[^>]*aria-label="[\d,]+ processed, peak 600 per hour"', page)
    assert re.search(r'class="spark bad"[^>]*aria-label="[\d,]+ failed, peak 120 per hour"', page)
    assert page.count('class="spark ok"') == 1, "nothing is drawn of those that did nothing"


# -- rules ---------------------------------------------------------------------------------------------------


def points(count: int, step: timedelta = MINUTE, **values: Any) -> list[Point]:
    return [Point(NOW + step * index, step.total_seconds(), **values) for index in range(count)]


def test_many_points_are_few_parts_with_the_same_sums_and_the_last_gauge() -> None:
    many = [*points(359, succeeded=2, waiting=1), Point(NOW + 359 * MINUTE, 60, succeeded=2, waiting=9)]
    parts = parts_of(many, MINUTE)
    assert len(parts) <= 181 and sum(len(part.points) for part in parts) == 360
    assert {part.per_minute(lambda point: point.succeeded) for part in parts} == {2.0}
    assert parts[-1].last(lambda point: point.waiting) == 9


def test_parts_begin_at_the_same_instants_whenever_somebody_looks() -> None:
    many = points(400)
    first, later = parts_of(many[:399], MINUTE), parts_of(many[1:], MINUTE)
    assert {part.start for part in later[1:-1]} <= {part.start for part in first}


def test_what_nobody_knows_stays_unknown() -> None:
    [part] = parts_of(points(1), MINUTE)
    assert part.last(lambda point: point.waiting) is None and part.busy is None
    assert part.per_minute(lambda point: point.failed) == 0
    assert sum_of([*points(1), *points(1)]).waiting is None
    assert sum_of([*points(1, waiting=2), *points(1), *points(1, waiting=3)]).waiting == 5


def test_the_same_time_before_is_found_by_time_though_steps_differ() -> None:
    now = parts_of(points(120), MINUTE)
    hour = Part(points(1, HOUR, succeeded=6))
    earlier = [Part([Point(hour.start - DAY, 3600, succeeded=60)])]
    found = same_time(now, earlier, DAY)
    assert [part is not None for part in found] == [True] * 60 + [False] * 60


def test_an_activation_is_shown_from_its_start_to_its_end_at_most_a_year() -> None:
    short = of_activation(NOW - HOUR, NOW - HOUR, NOW)
    assert (short.start, short.end) == (NOW - HOUR - 5 * MINUTE, NOW - HOUR + 5 * MINUTE)
    assert of_activation(NOW - HOUR, None, NOW).end == NOW
    assert of_activation(NOW - 800 * DAY, None, NOW).start == NOW - 365 * DAY
    begun = of_activation(NOW, None, NOW)
    assert begun.start < begun.end == NOW
