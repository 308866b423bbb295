"""Curves in a real browser: with nothing, one point and a year of them, read by pointer and by keys, in the
zone of the reader, in both languages, dark and narrow, with and without scripts."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from agents.models import Server
from agents.reasons import AGENT_VERSION
from agents.state_history import note
from metrics.queries import scope_of
from tests.browser.driver import Browser, wait_for
from tests.browser.test_accessibility import findings
from tests.web.factories import World
from tests.web.figure_rows import fill

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "orders-export"
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
READ = "return (document.querySelector('#curves-processed .read') || {}).textContent || ''"
UNFOLD = """
document.querySelector('[data-kept=curves-processed-table]').open = true;
window.old = document.querySelector('#curves-processed');
window.swapped = 0;
document.addEventListener('htmx:afterSettle', () => { window.swapped += 1; });
"""
REFRESH = "htmx.ajax('GET', location.href, {target: arguments[0], select: arguments[0], swap: 'outerHTML'})"
POINT = """
const plot = document.querySelector('#curves-processed .plot'), box = plot.getBoundingClientRect();
const at = {bubbles: true, clientX: box.left + box.width / 2};
plot.dispatchEvent(new PointerEvent('pointermove', at));
"""
SHOWN = "return document.querySelector(arguments[0] + ' td').checkVisibility()"
FOCUS = "document.querySelector('#curves-processed .plot').focus()"


def waves(minute: int) -> dict[str, Any]:
    """Days and nights, weeks, and an hour a day in which much fails."""
    day, week = 1 + math.sin(minute / 229), 1 + math.sin(minute / 1604)
    bad = (minute // 60) % 24 == 13
    queue = round(40 * day + 300 * bad)
    return {
        "succeeded": round(60 * day + 20 * week), "failed": 9 if bad else 0, "temporary": round(2 * week),
        "processing": {30: 50, 38: 9, 46: 1}, "critical": {44: 40, 52: 8, 60: 2},
        "busy_seconds": 20 * day, "capacity_seconds": 60.0,
        "waiting": queue, "delayed": queue // 9, "in_delivery": 4, "dead": 12 + minute // 4000 % 40,
        "oldest_seconds": float(queue),
    }  # fmt: skip


def scopes(world: World) -> list[str]:
    return [
        scope_of(),
        scope_of(world.settings[KEY].pk),
        scope_of(server=Server.objects.get(name="srv-1").pk),
    ]


def a_year(world: World) -> None:
    now = timezone.now()
    for scope in scopes(world):
        fill(scope, now, minutes=2880, hours=720, days=365, values=waves)
    setting, server = world.settings[KEY], Server.objects.get(name="srv-1")
    for hours, version in ((20, "1.4"), (9, "1.5")):
        reason = AGENT_VERSION(agent=setting.agent)
        note(None, "version", "1.3", version, now=now - timedelta(hours=hours), reason=reason, server=server)
    note(setting, "setting", "enabled", "disabled", now=now - timedelta(hours=15))
    note(setting, "setting", "disabled", "enabled", now=now - timedelta(hours=14))


PAGES = {
    "overview": "/",
    "settings": "/settings/",
    "setting": f"/settings/{KEY}/",
    "setting-year": f"/settings/{KEY}/?range=1y&compare=week",
    "server": "/servers/srv-1/?range=7d&compare=day",
    "timeline": f"/timeline/?setting={KEY}",
    "timeline-year": "/timeline/?range=1y",
    "own": "/timeline/?from=never",
}


@pytest.mark.parametrize("filled", ["none", "one", "year"])
@pytest.mark.parametrize(("theme", "width", "language"), [("light", 1400, "en"), ("dark", 390, "ru")])
def test_pages_with_curves_fit_and_axe_finds_nothing(
    live_server: Any,
    world: World,
    opened: Callable[..., Browser],
    filled: str,
    theme: str,
    width: int,
    language: str,
) -> None:
    if filled == "one":
        for scope in scopes(world):
            fill(scope, timezone.now() - timedelta(minutes=3), minutes=1, values=waves)
    elif filled == "year":
        a_year(world)
    browser = opened("chief", width=1400, height=1000)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.run("localStorage.setItem('theme', arguments[0]); localStorage.setItem('ma.paused', '1')", theme)
    browser.narrow(width, 1000)
    found = {}
    for name, path in PAGES.items():
        browser.open(live_server.url + path)
        assert browser.run(TOO_WIDE) <= 0, name
        if trouble := findings(browser):
            found[name] = trouble
    assert not found


def test_a_chart_is_read_by_keys_and_by_the_pointer_in_the_zone_of_the_reader(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    a_year(world)
    browser = opened("chief", width=1400, height=1000)
    browser.zone("Pacific/Kiritimati")
    browser.open(f"{live_server.url}/settings/{KEY}/?range=6h")
    rows = browser.run(
        "return [...document.querySelectorAll('#curves-processed tbody th')].map(e => e.textContent)"
    )
    assert len(rows) > 100 and all(each.endswith("GMT+14") for each in rows)

    browser.run(FOCUS)
    browser.press("ArrowLeft")
    assert browser.run(READ).startswith(f"{rows[-1]} · processed ")
    browser.press("Home")
    assert browser.run(READ).startswith(f"{rows[0]} · processed ")
    browser.run(POINT)
    assert browser.run(READ).split(" · ")[0] in rows[40:-40]
    labels = browser.run(
        "return [...document.querySelectorAll('#curves-processed text.at')].map(e => e.textContent)"
    )
    assert len(labels) > 3 and len(set(labels)) == len(labels)


def test_a_refresh_renews_the_curves_and_keeps_what_is_unfolded(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("chief", width=1400, height=1000)
    fill(scope_of(), timezone.now() - timedelta(minutes=2), minutes=1)
    browser.open(live_server.url + "/")
    browser.run(UNFOLD)
    browser.run(REFRESH, "#live")
    wait_for(lambda: browser.run("return window.swapped === 1"))
    assert browser.run("return document.querySelectorAll('#curves figure').length") == 4
    assert browser.run("return document.querySelector('#curves-processed') === window.old"), "left alone"
    browser.run(REFRESH, "#curves")
    wait_for(lambda: browser.run("return document.querySelector('#curves-processed') !== window.old"))
    assert browser.run("return document.querySelector('[data-kept=curves-processed-table]').open")


def test_without_scripts_the_period_is_chosen_and_the_values_are_a_table(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    a_year(world)
    browser = opened("chief", width=1400, height=1000, scripts=False)
    browser.open(f"{live_server.url}/settings/{KEY}/")
    browser.click(".range a[href*='range=7d']")
    assert "range=7d" in browser.url()
    table = "#curves-processed [data-kept=curves-processed-table]"
    assert not browser.run(SHOWN, table)
    browser.click(f"{table} summary")
    assert browser.run(SHOWN, table)
