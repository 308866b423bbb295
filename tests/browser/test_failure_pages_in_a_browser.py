"""Each page of failures in a real browser with none, three and a hundred thousand of them, in both languages, wide and
narrow: whole, within the policy, and what it counts is what there is. Its pictures stay in var/test/pictures."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from failures.models import FailureProtocol, Fingerprint
from tests.browser.driver import Browser
from tests.browser.failing import KEY, SERVERS, failed
from tests.services import pictures
from tests.web.factories import World

PICTURES = pictures(__name__)
TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError", "Failed to load")
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
BEYOND = (
    "return [...document.querySelectorAll('.console-nav, .scroll')]"
    ".filter(box => box.scrollWidth > box.clientWidth).map(box => box.innerText.slice(0, 40))"
)
# Of both languages: a thousand is set off by a comma or by a space that does not break.
DIGITS = r"return document.querySelector('main, #content').innerText.replace(/(\d)[,\u00a0\u202f](?=\d{3})/g, '$1')"


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
    assert alone == (number == 100_000)


@pytest.mark.parametrize("number", [0, 3, 100_000])
def test_every_page_at_every_size(live_server: Any, world: World, opened: Callable[..., Browser], number: int) -> None:
    """And what they count is what there is."""
    failed(world, number)
    check_counts(live_server.url, world, opened("viewer", width=1400, height=1000), number)
    browser = opened("chief", width=1400, height=1000)
    for language in ("en", "ru"):
        folder = PICTURES / language
        folder.mkdir(parents=True, exist_ok=True)
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        for width in (1400, 800):
            for name, path in pages(world).items():
                browser.resize(width, 1000)
                browser.open(live_server.url + path)
                said = (name, language, width)
                assert browser.run("return document.querySelectorAll('h1').length") == 1, said
                assert browser.run(TOO_WIDE) <= 0, said
                assert browser.run(BEYOND) == [], said
                trouble = [each["message"] for each in browser.log()]
                assert not [each for each in trouble if any(word in each for word in TROUBLE)], (said, trouble)
                browser.picture(folder / f"failures-{number}-{name}-{width}.png", whole=True)


def test_nothing_is_cut_off_at_any_width(live_server: Any, world: World, opened: Callable[..., Browser]) -> None:
    """Around each width at which columns go."""
    failed(world, 3)
    browser = opened("chief", width=1400, height=1000)
    for language in ("en", "ru"):
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        for name, path in pages(world).items():
            for width in (1366, 1350, 1349, 1300, 1299, 1051, 1050, 1001, 1000):
                browser.resize(width, 1000)
                browser.open(live_server.url + path)
                said = (name, language, width)
                assert browser.run(TOO_WIDE) <= 0, said
                assert browser.run(BEYOND) == [], said
