"""The search box in a real browser: a business id and a phrase are found wherever the message is."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings

from tests.browser.driver import Browser, wait_for
from tests.web.factories import World
from tests.web.searched_rows import BUSINESS_ID, everywhere

TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError")
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
TITLES = "return [...document.querySelectorAll('section.panel h2')].map((each) => each.innerText)"
HITS = "return [...document.querySelectorAll('.hits a')].map((each) => each.getAttribute('href'))"
# As somebody does who types into the box of the page and presses Enter.
TYPED = "const box = document.querySelector('input[name=q]'); box.value = arguments[0]; box.form.submit()"


@pytest.mark.parametrize("text", [BUSINESS_ID, f'"{BUSINESS_ID}"'])
def test_an_id_and_a_phrase_are_found_in_every_state(
    live_server: Any, world: World, opened: Callable[..., Browser], text: str
) -> None:
    rows = everywhere(world)
    browser = opened("chief", width=1400, height=1000)
    browser.open(f"{live_server.url}/protocols/")

    browser.run(TYPED, text)
    wait_for(lambda: browser.run(HITS))

    hits = browser.run(HITS)
    for state in ("dead", "phrase", "replayed"):
        assert f"/letters/{rows[state].pk}/" in hits, state
    for state in ("retried", "recovered"):
        assert f"/protocols/{rows[state].pk}/" in hits, state
    for state in ("longer", "other order"):
        assert f"/letters/{rows[state].pk}/" not in hits, state
    states = ["dead-lettered", "being retried", "replayed", "processed later"]
    assert browser.run(TITLES) == [f"Messages: {state}" for state in states]
    for language, words in (("en", "64 KB"), ("ru", "64 КБ")):
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        browser.open(f"{live_server.url}/search/?{urlencode({'q': text})}")
        for width in (1400, 390):
            browser.narrow(width, 900)
            assert words in browser.run("return document.body.innerText")
            assert browser.run(TOO_WIDE) <= 0, (language, width)
    assert not [each for each in browser.log() if any(word in each["message"] for word in TROUBLE)]
