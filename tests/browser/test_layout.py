"""On every page nothing is too wide, cut, covered or empty, tables are cards on a phone, and the cells of a
row are in line elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.browser.driver import Browser
from tests.browser.test_accessibility import FRAGMENTS
from tests.web.factories import World
from tests.web.other_pages import other_pages
from tests.web.pages import broker_answers, broker_figures, every_page
from tests.web.trouble_rows import make_trouble

CHECK = (Path(__file__).parent / "layout.js").read_text()


@pytest.mark.parametrize(
    ("width", "language"),
    [
        # Russian words are longer.
        (1400, "ru"),
        (390, "ru"),
        pytest.param(1400, "en", marks=pytest.mark.night),
        pytest.param(390, "en", marks=pytest.mark.night),
    ],
)
def test_every_page_lies_well_on_the_screen(
    live_server: Any,
    world: World,
    opened: Callable[..., Browser],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    language: str,
) -> None:
    broker_answers(monkeypatch, broker_figures())
    pages = every_page(world) | make_trouble(world) | other_pages(world)
    browser = opened("chief", width=1400, height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.run("localStorage.setItem('ma.paused', '1')")
    browser.narrow(width, 900)
    found = {}
    for name, path in pages.items():
        if name in FRAGMENTS:
            continue
        browser.open(live_server.url + path)
        if trouble := browser.run(CHECK, width > 600):
            found[name] = trouble
    assert not found, "\n".join(f"{name}: {each}" for name, all in found.items() for each in all)


def test_a_message_of_the_site_begins_beside_its_picture(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("chief")
    browser.open(f"{live_server.url}/settings/orders-export/waiting/ask/?part=waiting&kind=hold")
    style = (
        "const style = getComputedStyle(document.querySelector('ul.messagelist li'));"
        "return [style.paddingLeft, style.backgroundPositionX, style.backgroundSize].map(parseFloat)"
    )
    words, picture, size = browser.run(style)

    assert words >= picture + size + 6
