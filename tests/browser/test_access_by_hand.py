"""What axe does not see: all is reached with the keyboard, a dialog keeps the focus, nothing is too wide at
400 %, and nothing moves for who wants that."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from tests.browser.driver import Browser, wait_for
from tests.web.factories import World
from tests.web.pages import every_page

# A preview that is asked for when a page is there takes the place of its elements.
STILL = "return !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling, .htmx-added')"
# What Tab should reach: of one group of radio buttons the chosen one alone, of a closed menu its label.
REACHABLE = """
    const all = [...document.querySelectorAll(
        'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')];
    window.expected = all.filter(each => !each.disabled && each.tabIndex >= 0 && !each.closest('[inert]')
        && !(each.type === 'radio' && !each.checked) && each.checkVisibility({visibilityProperty: true}));
    return expected.length;
"""
# The focus is seen by an outline, of the element or of the box that it fills.
STEP = """
    const at = document.activeElement;
    if (at === document.body) return null;
    (window.reached = window.reached || new Set()).add(at);
    const seen = [at, at.parentElement].some(each => {
        const style = getComputedStyle(each);
        return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
    });
    return seen || at.id === 'content-start' ? '' : at.outerHTML.slice(0, 150);
"""
MISSED = """
    return expected.filter(each => !reached.has(each)).map(each => each.outerHTML.slice(0, 150));
"""
MOVING = """
    return [...document.querySelectorAll('*')].flatMap(each => [null, '::before', '::after'].map(part => {
        const style = getComputedStyle(each, part);
        const lasts = text => text.split(',').some(one => parseFloat(one) > 0);
        const moves = style.animationName !== 'none' && lasts(style.animationDuration)
            || style.transitionProperty !== 'none' && lasts(style.transitionDuration);
        return moves ? each.outerHTML.slice(0, 100) : '';
    })).filter(Boolean);
"""
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def walked(browser: Browser) -> tuple[list[str], list[str]]:
    """What Tab did not reach, and where the focus could not be seen."""
    wait_for(lambda: browser.run(STILL))
    expected = browser.run(REACHABLE)
    assert expected > 5
    unseen = []
    for _ in range(2 * expected + 10):
        browser.press("Tab")
        said = browser.run(STEP)
        if said is None:  # behind the last one
            break
        if said:
            unseen.append(said)
    return browser.run(MISSED), unseen


@pytest.mark.parametrize("width", [1400, 390])
def test_tab_reaches_all_and_the_focus_is_seen(
    live_server: Any, world: World, opened: Callable[..., Browser], width: int
) -> None:
    browser = opened("chief", width=1400, height=900)
    browser.run("localStorage.setItem('ma.paused', '1')")
    browser.narrow(width, 900)
    setting = world.settings["orders-export"]
    for path in (
        "/",
        "/destinations/",
        f"/destinations/{setting.destination_id}/",
        "/settings/orders-export/disable/",
        "/dead-letters/orders-export/",
        reverse("admin:agents_destination_change", args=[setting.destination_id]),
    ):
        browser.open(live_server.url + path)
        assert walked(browser) == ([], []), path


def test_a_dialog_keeps_the_focus_and_gives_it_back(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("viewer")
    browser.open(f"{live_server.url}/settings/")
    browser.run("document.querySelector('[data-keys]').focus()")
    browser.press("Enter")
    wait_for(lambda: browser.run("return document.getElementById('keys').open"))
    inside = set()
    for _ in range(12):
        where = browser.run(
            "const at = document.activeElement;"
            "if (at === document.body) return 'body';"
            "return at.closest('#keys') ? at.outerHTML.slice(0, 60) : 'outside'"
        )
        inside.add(where)
        browser.press("Tab")
    assert "outside" not in inside and len(inside) >= 3, inside

    browser.press("Escape")
    assert not browser.run("return document.getElementById('keys').open")
    assert browser.run("return document.activeElement.hasAttribute('data-keys')"), "the focus is back"


def test_g_and_a_letter_open_a_page_and_the_help_lists_them(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("viewer")
    browser.open(f"{live_server.url}/")
    browser.press("g")
    browser.press("s")
    wait_for(lambda: browser.run("return location.pathname") == "/settings/")
    browser.press("s")
    browser.press("?")
    wait_for(lambda: browser.run("return document.getElementById('keys').open"))
    listed = browser.run("return document.querySelector('[data-places]').innerText.split(/\\s*\\n\\s*/)")
    assert listed[:4] == ["o", "Overview", "a", "Alerts"] and listed[listed.index("Error groups") - 1] == "e"
    assert browser.run("return location.pathname") == "/settings/", "a letter alone opens nothing"


def test_the_same_keys_work_with_a_russian_layout(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("viewer")
    browser.open(f"{live_server.url}/")
    browser.press("п", "KeyG")
    browser.press("ы", "KeyS")
    wait_for(lambda: browser.run("return location.pathname") == "/settings/")


@pytest.mark.parametrize("language", ["en", "ru"])
def test_no_page_is_too_wide_at_400_percent(
    live_server: Any, world: World, opened: Callable[..., Browser], language: str
) -> None:
    """1,280 px at 400 % are 320."""
    browser = opened("chief", width=1280, height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.narrow(320, 640)
    wide = {}
    for name, path in every_page(world).items():
        browser.open(live_server.url + path)
        if (more := browser.run(TOO_WIDE)) > 0:
            wide[name] = more
    assert wide == {}


def test_nothing_moves_for_who_wants_that(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("chief")
    form = reverse("admin:agents_destination_add")
    browser.open(live_server.url + form)
    assert browser.run(MOVING), "something does, for all others"
    browser.prefer("prefers-reduced-motion", "reduce")
    try:
        for path in ("/", "/replays/", "/insights/", "/api/v1/docs/", form):
            browser.open(live_server.url + path)
            assert browser.run(MOVING) == [], path
    finally:
        browser.prefer("prefers-reduced-motion", "")
