"""axe finds nothing critical and nothing serious on any page, and the console of the browser stays empty.

`tests/browser/axe/` is axe-core as its makers publish it (MPL 2.0).
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.browser.driver import Browser
from tests.web.factories import World
from tests.web.other_pages import other_pages
from tests.web.pages import every_page

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CHECK = """
const [tags, done] = arguments;
axe.run({exclude: [['#swagger-ui']]}, {runOnly: tags, resultTypes: ['violations']}).then(result => done(
    result.violations.filter(each => ['critical', 'serious'].includes(each.impact)).flatMap(each =>
        each.nodes.map(node => each.id + ': ' + node.target + ' ' + node.html.slice(0, 150)))
), error => done(['axe: ' + error]));
"""
# Parts of a page, which never stand alone.
FRAGMENTS = ("preview",)
# How the console names a page that was refused on purpose.
REFUSALS = ("status of 403 (Forbidden)", "status of 404 (Not Found)")
OPEN_MENU = "document.querySelector('[data-menu]').open = true"
OPEN_HELP = "document.getElementById('keys').showModal()"


def findings(browser: Browser) -> list[str]:
    found = [
        entry["message"]
        for entry in browser.log()
        if entry["level"] == "SEVERE" and not entry["message"].endswith(REFUSALS)
    ]
    browser.run(AXE + "; window.axe = axe;")
    found += browser.run_until_done(CHECK, TAGS)
    browser.log()  # axe measures forms with inline styles, which the policy refuses
    return found


CASES = list(product(("light", "dark"), (1400, 390), ("en", "ru")))
BY_DAY = (("light", 1400, "en"), ("dark", 390, "ru"))


@pytest.mark.parametrize(
    ("theme", "width", "language"),
    [pytest.param(*case, marks=() if case in BY_DAY else pytest.mark.night) for case in CASES],
)
def test_axe_finds_nothing_serious_on_any_page(
    live_server: Any,
    world: World,
    opened: Callable[..., Browser],
    theme: str,
    width: int,
    language: str,
) -> None:
    browser = opened("chief", width=1400, height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.run("localStorage.setItem('theme', arguments[0]); localStorage.setItem('ma.paused', '1')", theme)
    browser.narrow(width, 900)
    found = {}
    for name, path in every_page(world).items():
        if name in FRAGMENTS:
            continue
        browser.open(live_server.url + path)
        if name == "overview":
            browser.run(OPEN_MENU)
            if menu := findings(browser):
                found["an open menu"] = menu
            browser.run(OPEN_HELP)
        if trouble := findings(browser):
            found[name] = trouble
    assert not found, "\n".join(f"{name}: {each}" for name, all in found.items() for each in all)


@pytest.mark.parametrize(
    ("theme", "width", "language"),
    [pytest.param(*case, marks=() if case == BY_DAY[0] else pytest.mark.night) for case in CASES],
)
def test_axe_finds_nothing_serious_on_any_form(
    live_server: Any,
    world: World,
    opened: Callable[..., Browser],
    theme: str,
    width: int,
    language: str,
) -> None:
    """And on what else needs rows of its own."""
    browser = opened("chief", width=1400, height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.run("localStorage.setItem('theme', arguments[0]); localStorage.setItem('ma.paused', '1')", theme)
    browser.narrow(width, 900)
    found = {}
    for name, path in other_pages(world).items():
        browser.open(live_server.url + path)
        if trouble := findings(browser):
            found[name] = trouble
    assert not found, "\n".join(f"{name}: {each}" for name, all in found.items() for each in all)


@pytest.mark.parametrize(
    ("theme", "width", "language"),
    [pytest.param(*case, marks=() if case in BY_DAY else pytest.mark.night) for case in CASES],
)
def test_axe_finds_nothing_serious_on_pages_that_are_refused(
    live_server: Any,
    world: World,
    opened: Callable[..., Browser],
    theme: str,
    width: int,
    language: str,
) -> None:
    """403 for who may only look, 403 and an empty overview for who may do nothing, and 404."""
    refused = {
        "viewer": ("/settings/orders-export/disable/", "/servers/srv-1/cordon/", "/agents/server/add/"),
        "outsider": ("/", "/servers/", "/dead-letters/", "/search/?q=x", "/nothing/", "/letters/999999/"),
    }
    found = {}
    for who, paths in refused.items():
        browser = opened(who, width=1400, height=900)
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        browser.run("localStorage.setItem('theme', arguments[0])", theme)
        browser.narrow(width, 900)
        for path in paths:
            browser.open(live_server.url + path)
            if trouble := findings(browser):
                found[f"{who} {path}"] = trouble
    assert not found, "\n".join(f"{name}: {each}" for name, all in found.items() for each in all)
