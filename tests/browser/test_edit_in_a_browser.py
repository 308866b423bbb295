"""What an edit changed, in a browser: from the form over the review to the job, and later on the case file,
the message, the audit log and over REST."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone

from console.models import ApiToken
from dlq.models import ItemState, ReplayJob
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World, make_letter

KEY, MESSAGE = "orders-export", "ID:to-be-edited"
OLD, NEW = '-  "sum": 1.10', '+  "sum": 2.50'
SHOWN = "return document.querySelector('main, #content').innerText"
# The field with the value of a property.
VALUE = """
    const name = document.querySelector(`form input[type=hidden][value="${arguments[0]}"]`).name;
    return `[name="${name.replace('-name', '-value')}"]`;
"""
LINES = """
    const lines = [...document.querySelectorAll('table.diff .lines span')];
    return lines.map((each) => [each.className, each.innerText]);
"""
ITEMS = """
    const [path, token, done] = arguments;
    fetch(path, {headers: {Authorization: `Bearer ${token}`}}).then(
        async (answer) => done([answer.status, await answer.json()]), (error) => done([0, String(error)]));
"""


def edited(browser: Browser, site: str, number: int) -> ReplayJob:
    """As a person does it, and what is shown before it is confirmed."""
    browser.open(f"{site}/letters/{number}/")
    browser.click(f"a[href='/letters/{number}/edit/']")
    wait_for(
        lambda: browser.url().endswith("/edit/") and browser.run("return Boolean(document.forms.length)")
    )
    browser.write("#text", '{"sum": 2.50}')
    browser.write(browser.run(VALUE, "region"), "south")
    browser.click("form .actions button.primary")
    wait_for(lambda: browser.run("return Boolean(document.querySelector('button[value=confirm]'))"))
    check_diff(browser)
    assert not ReplayJob.objects.filter(action="edit").exists(), "only shown so far"

    browser.run("document.querySelectorAll('[name=acknowledge]').forEach((each) => { each.checked = true; })")
    browser.write("#reason", "wrong sum")
    browser.click("button[value=confirm]")
    wait_for(
        lambda: "/replays/" in browser.url() and browser.run("return document.readyState === 'complete'")
    )
    return ReplayJob.objects.get(action="edit")


def check_diff(browser: Browser) -> None:
    lines = browser.run(LINES)
    assert ["cut", OLD] in lines and ["add", NEW] in lines, (browser.url(), lines)
    text = browser.run(SHOWN)
    assert "north (string)" in text and "south (string)" in text, browser.url()


def token_of(world: World, name: str) -> str:
    return ApiToken.issue(world.people[name], "browser", now=timezone.now())


def test_the_diff_of_an_edit_is_seen_on_every_page_about_it_and_over_rest(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    site = live_server.url
    letter = make_letter(world, KEY, '{"sum": 1.10}', message_key=MESSAGE)
    browser = opened("chief")
    browser.run("localStorage.setItem('ma.paused', '1')")
    job = edited(browser, site, letter.pk)
    assert browser.url() == f"{site}/replays/{job.pk}/"
    check_diff(browser)

    # As its worker does: a case file has what happened, not what is planned.
    job.items.update(state=ItemState.GIVEN_BACK)
    reader = opened("viewer")
    reader.run("localStorage.setItem('ma.paused', '1')")
    case = f"/cases/?{urlencode({'key': MESSAGE, 'setting': KEY})}"
    for path in (case, f"/letters/{letter.pk}/", f"/replays/{job.pk}/"):
        reader.open(site + path)
        check_diff(reader)

    reader.open(f"{site}/audit/?{urlencode({'setting': KEY})}")
    assert OLD not in reader.run(SHOWN), "folded"
    reader.click("#content table details summary")
    check_diff(reader)
    assert "wrong sum" in reader.run(SHOWN)

    rest = f"/api/v1/replays/{job.pk}/letters/"
    status, answer = reader.run_until_done(ITEMS, rest, token_of(world, "viewer"))
    assert status == 200, answer
    body, region = answer["results"][0]["changes"]
    assert OLD in body["lines"] and NEW in body["lines"]
    assert (region["what"], region["before"], region["after"]) == (
        "region",
        "north (string)",
        "south (string)",
    )
    refused, told = reader.run_until_done(ITEMS, rest, token_of(world, "outsider"))
    assert refused in (403, 404) and OLD not in str(told)
