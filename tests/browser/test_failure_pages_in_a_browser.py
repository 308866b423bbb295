"""Each page of failures in a real browser with none, three and many of them, in both languages, wide and
narrow: whole, within the policy, and what it counts is what there is."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from failures.models import FailureProtocol, Fingerprint
from tests.browser.driver import Browser
from tests.browser.failing import KEY, SERVERS, failed
from tests.web.factories import World

# Every kind of failure and every page of lists occurs; at night four times as many.
MANY = 25_000
TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError", "Failed to load")
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
BEYOND = (
    "return [...document.querySelectorAll('.console-nav, .scroll')]"
    ".filter(box => box.scrollWidth > box.clientWidth).map(box => box.innerText.slice(0, 40))"
)
# Of both languages: a thousand is set off by a comma or by a space that does not break.
DIGITS = (
    r"return document.querySelector('main, "
    r"#content').innerText.replace(/(\d)[,\u00a0\u202f](?=\d{3})/g, '$1')"
)


def pages(world: World) -> dict[str, str]:
    """By name; those of one protocol or fingerprint only where there is one."""
    found = {
        "overview": "/",
        "setting": f"/settings/{KEY}/",
        "activations": f"/activations/?setting={KEY}",
        "activation": f"/activations/{world.activations[KEY].pk}/",
        "server": f"/servers/{SERVERS[0]}/",
        "fingerprints": "/fingerprints/",
        "saved-filters": "/protocols/saved/",
        "alerts": "/alerts/",
        "retention": "/retention/",
        "what-if": f"/settings/{KEY}/what-if/?m=6",
    }
    newest = FailureProtocol.objects.order_by("-occurred_at").first()
    if newest is not None:
        largest = Fingerprint.objects.order_by("-count", "pk").first()
        assert largest is not None
        found["protocol"] = f"/protocols/{newest.pk}/"
        found["fingerprint"] = f"/fingerprint/?of={largest.pk}"
        found["case"] = f"/cases/?key={newest.message_key}&setting={KEY}"
    return found


def check_width(browser: Browser, width: int, where: tuple[str, str, int]) -> None:
    browser.narrow(width, 1000)
    assert browser.run(TOO_WIDE) <= 0, where
    assert browser.run(BEYOND) == [], where


def check_counts(site: str, world: World, browser: Browser, number: int) -> None:
    def text(path: str) -> str:
        browser.open(site + path)
        return str(browser.run(DIGITS))

    running = world.activations[KEY]
    for name in SERVERS:
        here = FailureProtocol.objects.filter(activation=running, server_name=name).count()
        shown = text(f"/activations/{running.pk}/")
        assert (f"{here} failure" in shown) == (here > 0), name
    for row in Fingerprint.objects.order_by("-count")[:3]:
        there = FailureProtocol.objects.filter(fingerprint=row.pk).count()
        assert row.count == there > 0
        assert f"{there} failure" in text(f"/fingerprint/?of={row.pk}")
    assert Fingerprint.objects.exists() == (number > 0)
    alone = "occurs on this server only" in text(f"/servers/{SERVERS[0]}/")
    assert alone == (number >= MANY)


@pytest.mark.parametrize("number", [0, 3, MANY, pytest.param(100_000, marks=pytest.mark.night)])
def test_every_page_at_every_size(
    live_server: Any, world: World, opened: Callable[..., Browser], number: int
) -> None:
    """And what they count is what there is."""
    failed(world, number)
    check_counts(live_server.url, world, opened("viewer", width=1400, height=1000), number)
    browser = opened("chief", width=1400, height=1000)
    for language in ("en", "ru"):
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        for name, path in pages(world).items():
            browser.open(live_server.url + path)
            assert browser.run("return document.querySelectorAll('h1').length") == 1, (name, language)
            for width in (1400, 800):
                check_width(browser, width, (name, language, width))
            trouble = [each["message"] for each in browser.log()]
            assert not [each for each in trouble if any(word in each for word in TROUBLE)], (
                name,
                language,
                trouble,
            )


def test_nothing_is_cut_off_at_any_width(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    """Around each width at which columns go."""
    failed(world, 3)
    browser = opened("chief", width=1400, height=1000)
    for language in ("en", "ru"):
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        for name, path in pages(world).items():
            browser.open(live_server.url + path)
            for width in (1366, 1350, 1349, 1300, 1299, 1051, 1050, 1001, 1000):
                check_width(browser, width, (name, language, width))
