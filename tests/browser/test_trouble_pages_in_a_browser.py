"""Pages that tell of trouble, on a desk and on a phone, in both languages: nothing is cut, covered or out of
sight."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from tests.browser.driver import Browser
from tests.web.factories import World
from tests.web.pages import broker_answers, broker_figures
from tests.web.trouble_rows import make_trouble

TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Numbers, buttons and tools of the header that lie beyond the edge, or under something else.
HIDDEN = """
const CHECKED = '.bars .n, .actions .btn, .form-row textarea, #user-tools summary, .find input';
const edge = document.documentElement.clientWidth;
const found = [];
for (const each of document.querySelectorAll(CHECKED)) {
    if (!each.checkVisibility()) continue;
    each.scrollIntoView({block: 'center'});
    const box = each.getBoundingClientRect();
    const top = document.elementFromPoint(Math.min(box.right - 3, edge + 99), box.top + box.height / 2);
    const seen = top && (each.contains(top) || top.contains(each));
    if (box.right > edge || !seen) found.push(each.innerText || each.className);
}
return found;
"""
# Tables that are to be whole on a phone.
SCROLLED = (
    "return [...document.querySelectorAll('table.stacks')].filter(table => "
    "table.parentElement.scrollWidth > table.parentElement.clientWidth).map(table => "
    "table.innerText.slice(0, 60))"
)


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("width", [1350, 390])
def test_what_is_read_at_night_is_in_sight(
    live_server: Any,
    world: World,
    opened: Callable[..., Browser],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    language: str,
) -> None:
    broker_answers(monkeypatch, broker_figures(consumers=2))
    pages = make_trouble(world)
    browser = opened("chief", height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.narrow(width, 844)
    for name, path in pages.items():
        browser.open(live_server.url + path)
        assert browser.run(TOO_WIDE) <= 0, name
        assert browser.run(HIDDEN) == [], name
        assert browser.run(SCROLLED) == [], name
