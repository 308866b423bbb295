"""Pages in a real browser: nothing breaks the policy, nothing is too wide, refreshing can be paused, and all
of it works without scripts."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler

from agents.models import OfferedAgent, Pool, Run, Server
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World
from tests.web.pages import every_page

# Words of the browser's console that mean a violation or an error of a script.
TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError")


def test_no_page_breaks_the_policy_or_is_too_wide(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("chief", width=1280, height=900)
    too_wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for name, path in every_page(world).items():
        browser.open(live_server.url + path)
        assert browser.run(too_wide) <= 0, name
        trouble = [
            entry["message"] for entry in browser.log() if any(word in entry["message"] for word in TROUBLE)
        ]
        assert not trouble, (name, trouble)


@pytest.mark.parametrize("language", ["en", "ru"])
def test_what_matters_is_in_sight_on_a_narrow_screen(
    live_server: Any, world: World, opened: Callable[..., Browser], language: str
) -> None:
    """Neither a tab of the navigation nor a table's last column lies beyond the edge."""
    browser = opened("chief", width=800, height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    hidden = (
        "return [...document.querySelectorAll('.console-nav, .scroll')]"
        ".filter(box => box.scrollWidth > box.clientWidth).map(box => box.className)"
    )
    for path in ("/", "/settings/", "/dead-letters/", "/protocols/", "/servers/", "/settings/orders-export/"):
        browser.open(live_server.url + path)
        assert browser.run(hidden) == [], (path, language)


def test_the_tour_of_the_demo_stays_away_once_this_browser_dismissed_it(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    pool, server = Pool.objects.create(name="demo"), Server.objects.get(name="srv-1")
    pool.servers.add(server)
    OfferedAgent.objects.update_or_create(server=server, name="demo.orders", defaults={"kind": "message"})
    browser = opened("viewer")
    shown = "return document.getElementById('tour').checkVisibility()"
    browser.open(live_server.url)
    assert browser.run(shown)

    browser.click("[data-dismiss]")
    assert not browser.run(shown)
    assert browser.run("return document.activeElement.id") == "content-start"
    browser.open(live_server.url)
    assert not browser.run(shown)


def test_the_api_description_has_the_colours_of_the_theme_under_the_strict_policy(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("viewer")
    ground = "return getComputedStyle(document.querySelector('#swagger-ui .swagger-ui')).backgroundColor"
    body = "return getComputedStyle(document.body).backgroundColor"
    for theme in ("light", "dark"):
        browser.run("localStorage.setItem('theme', arguments[0])", theme)
        browser.open(f"{live_server.url}/api/v1/docs/")
        wait_for(lambda: browser.run("return document.querySelectorAll('.opblock').length") > 5)
        assert browser.run("return document.documentElement.classList.contains('dark-mode')") == (
            theme == "dark"
        )
        assert browser.run(ground) in (browser.run(body), "rgba(0, 0, 0, 0)"), theme
        assert [each for each in browser.log() if any(word in each["message"] for word in TROUBLE)] == []


def test_figures_refresh_by_themselves_until_paused(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("viewer")
    browser.open(f"{live_server.url}/settings/orders-export/")
    run = world.runs["orders-export", "srv-1"]
    Run.objects.filter(pk=run.pk).update(handled=7_654_321)
    wait_for(lambda: "7,654,321" in browser.run("return document.getElementById('runs').innerText"))

    browser.click("[data-pause]")
    assert browser.run("return document.querySelector('[data-pause]').getAttribute('aria-pressed')") == "true"
    assert browser.run("return document.querySelector('[data-pause] use').getAttribute('href')") == "#i-play"
    Run.objects.filter(pk=run.pk).update(handled=1_111_111)
    time.sleep(7)
    assert "1,111,111" not in browser.run("return document.getElementById('runs').innerText")

    browser.click("[data-pause]")
    wait_for(lambda: "1,111,111" in browser.run("return document.getElementById('runs').innerText"))


def test_a_form_shows_what_it_means_while_it_is_filled_in(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("operator")
    destination = world.settings["orders-export"].destination_id
    browser.open(f"{live_server.url}/agents/destination/{destination}/change/")
    wait_for(
        lambda: (
            "4.25 s"
            in browser.run("return document.querySelector('.preview').innerText").replace("\xa0", " ")
        )
    )

    browser.run(
        "const field = document.getElementById('id_delay_ms'); field.value = '60000';"
        "field.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    wait_for(
        lambda: (
            "1 min" in browser.run("return document.querySelector('.preview').innerText").replace("\xa0", " ")
        )
    )


def test_letters_are_given_back_without_scripts(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("operator", scripts=False)
    browser.open(f"{live_server.url}/dead-letters/orders-export/")
    browser.click("input[name=letter]")
    browser.click(".selection button")
    wait_for(
        lambda: "/give-back/" in browser.url() and browser.run("return document.readyState") == "complete"
    )
    browser.click("button.primary")

    wait_for(lambda: "/replays/" in browser.url())
    assert world.job and str(world.job.pk) not in browser.url()


@pytest.mark.process
def test_static_files_are_served_to_the_browser(live_server: Any) -> None:
    """Else the tests above would look at bare pages."""
    assert isinstance(live_server.thread.static_handler, type) and issubclass(
        live_server.thread.static_handler, StaticFilesHandler
    )


ENTRIES = "return [...document.querySelectorAll('.console-nav > ul > li')].map(entry => entry.offsetTop)"


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_navigation_is_one_row_down_to_a_tablet(
    live_server: Any, world: World, opened: Callable[..., Browser], language: str
) -> None:
    browser = opened("chief", width=1400, height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.open(f"{live_server.url}/")
    for width, rows in ((1400, 1), (1280, 1), (1000, 1), (390, 3)):
        browser.narrow(width, 900)
        tops = browser.run(ENTRIES)
        assert len(tops) == 8
        assert len(set(tops)) <= rows, (width, tops)
        assert browser.run("return document.documentElement.scrollWidth - window.innerWidth") <= 0


@pytest.mark.parametrize("width", [1400, 390])
def test_a_menu_shows_its_entries_and_closes_by_escape(
    live_server: Any, world: World, opened: Callable[..., Browser], width: int
) -> None:
    inside = (
        "return [...document.querySelectorAll(arguments[0] + ' a, ' + arguments[0] + ' button')]"
        ".filter(each => each.checkVisibility()).map(each => each.getBoundingClientRect())"
        ".map(box => [box.left, box.right])"
    )
    escape = (
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))"
    )
    browser = opened("chief", width=1400, height=900)
    browser.open(f"{live_server.url}/")
    browser.narrow(width, 900)
    for menu in (".console-nav li:last-of-type > details", "#user-tools"):
        browser.run("document.querySelector(arguments[0] + ' > summary').focus()", menu)
        browser.run("document.activeElement.click()")
        boxes = browser.run(inside, menu)
        assert len(boxes) > 2
        assert all(left >= 0 and right <= width for left, right in boxes), boxes
        browser.run(escape)
        assert not browser.run("return document.querySelector(arguments[0]).open", menu)
        assert browser.run("return document.activeElement.tagName") == "SUMMARY"


def test_keys_lead_to_the_search_the_filter_and_the_glossary(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))"
    browser = opened("chief", width=1400, height=900)
    browser.open(f"{live_server.url}/protocols/")
    browser.run(press, "/")
    assert browser.run("return document.activeElement.name") == "q"
    browser.run("document.activeElement.blur()")
    browser.run(press, "f")
    assert browser.run("return Boolean(document.activeElement.closest('#content-start form[role=search]'))")
    browser.run("document.activeElement.blur()")
    browser.run(press, "?")
    browser.click("#tab-glossary")
    wait_for(lambda: "quorum" in browser.run("return document.querySelector('#panel-glossary').innerText"))


def test_on_a_narrow_screen_an_alert_keeps_the_link_to_what_it_is_about(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("chief", width=800, height=900)
    browser.open(f"{live_server.url}/alerts/")
    links = (
        "return [...document.querySelectorAll('table.grid td:last-child a')].map(a => "
        "[a.innerText, a.offsetWidth > 0])"
    )
    assert ["Open", True] in browser.run(links)
    beyond = (
        "return [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth "
        "> box.clientWidth).length"
    )
    assert browser.run(beyond) == 0
