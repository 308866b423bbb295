"""The framed description of the REST interface, in a browser: the routes of explanations, retention, alert
rules and health are listed there. Asking one answers who may and refuses who may not."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from agents.models import Activation
from console.models import ApiToken
from retention.models import RetentionRun
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World

KEY = "orders-export"
ABOUT = re.compile(r"/api/v1/(retention|alert-rules|health)/|/(what-if|breaker|difference)/$")
EXPECTED = {
    "/api/v1/activations/{id}/difference/",
    "/api/v1/alert-rules/",
    "/api/v1/health/",
    "/api/v1/retention/",
    "/api/v1/retention/runs/",
    "/api/v1/retention/runs/{id}/",
    "/api/v1/retention/settings/",
    "/api/v1/settings/{key}/breaker/",
    "/api/v1/settings/{key}/what-if/",
}
DESCRIBED = """
    const done = arguments[0];
    fetch('/api/v1/schema/', {headers: {Accept: 'application/vnd.oai.openapi+json'}}).then(
        async (answer) => done((await answer.json()).paths), (error) => done(String(error)));
"""
# Swagger UI makes only what is in sight: the page is scrolled to its end, or to what is looked for.
SCROLLED = """
    const [until, done] = arguments;
    const found = new Set();
    (async () => {
        window.scrollTo(0, 0);
        for (;;) {
            await new Promise((go) => setTimeout(go, 50));
            const there = document.querySelectorAll('.opblock-get .opblock-summary-path');
            there.forEach((each) => found.add(each.dataset.path));
            const wanted = until && document.querySelector(until);
            if (wanted) wanted.scrollIntoView({block: 'center'});
            if (wanted || innerHeight + scrollY >= document.documentElement.scrollHeight - 2) break;
            window.scrollBy(0, innerHeight / 2);
        }
        done([...found]);
    })();
"""
# Status and body of each path, asked one after the other.
ASK = """
    const [paths, token, done] = arguments;
    const headers = token ? {Authorization: `Bearer ${token}`} : {};
    (async () => {
        const found = {};
        for (const path of paths) {
            const answer = await fetch(path, {headers});
            found[path] = [answer.status, await answer.json()];
        }
        return found;
    })().then(done, (error) => done({error: [0, String(error)]}));
"""
# Gives the field and the buttons of the way of a person's token names to find them by.
MARK = """
    const box = [...document.querySelectorAll('.auth-container')].find(
        (each) => each.querySelector('h4').innerText.startsWith('personToken'));
    box.querySelector('input').id = 'the-token';
    box.querySelector('button.authorize').id = 'the-button';
"""
WHAT_IF, WHAT_IF_PATH = "[id$='-settings_what_if']", "/api/v1/settings/{key}/what-if/"
STATUS = (
    f'return document.querySelector("{WHAT_IF} .live-responses-table tbody .response-col_status")?.innerText'
)
BODY = f'return document.querySelector("{WHAT_IF} .live-responses-table .microlight").innerText'
# Status, and a word of the answer.
SEEN = {"viewer": ("200", "breaker_m"), "outsider": ("403", "Ask an administrator")}


def opened_docs(browser: Browser, site: str) -> None:
    browser.open(f"{site}/api/v1/docs/")
    wait_for(lambda: browser.run_until_done(SCROLLED, ".opblock-get"))


def token_of(world: World, name: str) -> str:
    return ApiToken.issue(world.people[name], "browser", now=timezone.now())


def test_the_routes_are_listed_and_each_answers_who_may_and_refuses_who_may_not(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    places: dict[str, dict[str, object]] = {
        "/api/v1/settings/{key}/": {"key": KEY},
        "/api/v1/activations/{id}/": {"id": world.activations[KEY].pk},
        "/api/v1/retention/runs/{id}/": {"id": RetentionRun.objects.create(state="done").pk},
    }
    Activation.objects.filter(pk=world.activations[KEY].pk).update(number=2)  # there is one before it
    browser = opened("viewer")
    opened_docs(browser, live_server.url)
    assert browser.run("return Boolean(document.querySelector('nav.console-nav'))"), (
        "in the frame of the site"
    )
    described = browser.run_until_done(DESCRIBED)
    new = {path for path, methods in described.items() if ABOUT.search(path) and "get" in methods}
    assert new == EXPECTED
    wait_for(lambda: new <= set(browser.run_until_done(SCROLLED, "")))

    addresses = []
    for path in sorted(new):
        assert described[path]["get"]["description"], f"{path}: it says what it is"
        of = next((named for begin, named in places.items() if path.startswith(begin)), None)
        addresses.append(path.format(**(of or {})))
    for who, status, word in (("viewer", 200, None), ("outsider", 403, "permission_denied")):
        found = browser.run_until_done(ASK, addresses, token_of(world, who))
        assert found.keys() == set(addresses), found
        assert {address: each[0] for address, each in found.items()} == dict.fromkeys(addresses, status)
        if word:
            assert {each[1]["error"] for each in found.values()} == {word}
    without = browser.run_until_done(ASK, addresses, "")
    assert {each[0] for each in without.values()} == {401}


@pytest.mark.parametrize("who", SEEN)
def test_a_route_is_tried_out_with_a_token(
    live_server: Any, world: World, opened: Callable[..., Browser], who: str
) -> None:
    status, says = SEEN[who]
    browser = opened(who)
    opened_docs(browser, live_server.url)
    browser.click(".auth-wrapper .authorize")
    wait_for(lambda: browser.run("return document.querySelector('.auth-container input')"))
    browser.run(MARK)
    browser.write("#the-token", token_of(world, who))
    browser.click("#the-button")
    browser.click(".modal-ux .btn-done")

    wait_for(lambda: WHAT_IF_PATH in browser.run_until_done(SCROLLED, WHAT_IF))
    browser.click(f"{WHAT_IF} .opblock-summary-control")
    wait_for(lambda: browser.run(f'return document.querySelector("{WHAT_IF} .try-out__btn")'))
    browser.click(f"{WHAT_IF} .try-out__btn")
    wait_for(
        lambda: browser.run(f"return document.querySelector(\"{WHAT_IF} tr[data-param-name='key'] input\")")
    )
    browser.write(f"{WHAT_IF} tr[data-param-name='key'] input", KEY)
    browser.write(f"{WHAT_IF} tr[data-param-name='m'] input", "4")
    browser.click(f"{WHAT_IF} .execute")
    wait_for(lambda: browser.run(STATUS))

    assert browser.run(STATUS).split()[0] == status
    assert says in browser.run(BODY)
    trouble = [each["message"] for each in browser.log() if "Content Security Policy" in each["message"]]
    assert trouble == []
