"""The search box in a real browser: a business id, a phrase and an exact id lead to the message wherever it
is."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings

from dlq.models import ReplayJob
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World
from tests.web.searched_rows import BUSINESS_ID, KEY, STATES, everywhere, one_in_each_state

TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError")
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
TITLES = "return [...document.querySelectorAll('section.panel h2')].map((each) => each.innerText)"
HITS = "return [...document.querySelectorAll('.hits a')].map((each) => each.getAttribute('href'))"
# As somebody does who types into the box of the page and presses Enter.
TYPED = "const box = document.querySelector('input[name=q]'); box.value = arguments[0]; box.form.submit()"
# The hits of the section with this title.
UNDER = """
    const section = [...document.querySelectorAll('section.panel')].find(
        (each) => each.querySelector('.hits') && each.querySelector('h2').innerText === arguments[0]);
    return section ? [...section.querySelectorAll('.hits a')].map((each) => each.getAttribute('href')) : [];
"""


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


def look_for(browser: Browser, text: str) -> None:
    """With the keyboard alone, from whichever page is open."""
    browser.press("/")
    assert browser.run("return document.activeElement.name") == "q"
    browser.write("#header [role=search] input", text)
    browser.run("window.before = true")
    browser.press("Enter")
    wait_for(lambda: not browser.run("return window.before || document.readyState !== 'complete'"))


@pytest.mark.parametrize("by", ["phrase", "number", "key"])
def test_a_phrase_and_an_id_lead_to_the_message_in_every_state(
    live_server: Any, world: World, opened: Callable[..., Browser], by: str
) -> None:
    """A number is one of dead letters."""
    rows = one_in_each_state(world)
    browser = opened("viewer")
    browser.run("localStorage.setItem('ma.paused', '1')")
    browser.open(f"{live_server.url}/settings/")
    for state, word in STATES.items():
        row, kind = rows[state], "letters" if state not in ("retried", "recovered") else "protocols"
        if by == "number" and kind == "protocols":
            continue
        texts = {"phrase": f'"late {state} order"', "number": str(row.pk), "key": row.message_key}
        look_for(browser, texts[by])
        address = f"/{kind}/{row.pk}/"
        hits = browser.run(UNDER, f"Messages: {word}")
        assert address in hits, (state, hits, browser.url())
        if by == "phrase":
            assert [hit for hit in browser.run(HITS) if "/cases/" not in hit] == [address], (
                "and nothing that has only the words"
            )

        browser.click(f".hits a[href='{address}']")
        wait_for(lambda: browser.url() == live_server.url + address)  # noqa: B023 - it is called at once
        assert row.message_key in browser.run("return document.querySelector('main, #content').innerText")


@pytest.mark.parametrize("digits", [8, 36])
def test_the_id_of_an_activation_and_of_a_job_lead_straight_to_it(
    live_server: Any, world: World, opened: Callable[..., Browser], digits: int
) -> None:
    job = ReplayJob.objects.create(setting=world.settings[KEY], setting_key=KEY, scope="all", state="done")
    browser = opened("viewer")
    browser.open(f"{live_server.url}/protocols/")
    for address in (f"/activations/{world.activations[KEY].pk}/", f"/replays/{job.pk}/"):
        look_for(browser, address.split("/")[2][:digits])
        assert browser.url() == live_server.url + address
