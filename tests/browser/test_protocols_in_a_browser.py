"""The list of protocols in a real browser, with none, three and many; what comes in moves nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.utils import timezone

from failures.models import FailureProtocol
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World

TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError")
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def fill(world: World, number: int) -> None:
    """So many, in the last days; alike in kind to those of the world."""
    some = list(FailureProtocol.objects.order_by("pk"))
    FailureProtocol.objects.all().delete()
    rows = []
    for each in range(number):
        row = FailureProtocol(
            **{f.attname: getattr(some[each % len(some)], f.attname) for f in some[0]._meta.fields}
        )
        row.pk, row.number = uuid4(), each + 1
        row.occurred_at = row.received_at = timezone.now() - timedelta(seconds=7 * each + 5)
        rows.append(row)
    FailureProtocol.objects.bulk_create(rows, batch_size=500)


@pytest.mark.parametrize("number", [0, 3, 10_000, pytest.param(100_000, marks=pytest.mark.night)])
def test_the_list_at_every_size(
    live_server: Any, world: World, opened: Callable[..., Browser], number: int
) -> None:
    fill(world, number)
    browser = opened("chief", width=1400, height=1000)
    for language, words in (("en", "Failures"), ("ru", "Сбои")):
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        for query in ("", "?text=total&counted=true", "?server=srv-1"):
            browser.open(f"{live_server.url}/protocols/{query}")
            for width in (1400, 800):
                browser.narrow(width, 1000)
                assert words in browser.run("return document.querySelector('h1').innerText")
                assert browser.run(TOO_WIDE) <= 0, (query, language, width)
            rows = browser.run("return document.querySelectorAll('[data-rows] tbody tr').length")
            assert rows == min(number, 50) or query
            assert not [each for each in browser.log() if any(word in each["message"] for word in TROUBLE)]


def test_what_comes_in_is_told_and_moves_nothing(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("viewer", width=1400, height=500)
    browser.open(f"{live_server.url}/protocols/?setting=orders-export")
    place = "return [window.scrollY, document.querySelector('[data-rows] a').getBoundingClientRect().top]"
    rows = "return document.querySelector('[data-rows]').innerText"
    news = "return document.querySelector('[data-news]').innerText"
    browser.run("window.scrollTo(0, 300)")
    before, listed = browser.run(place), browser.run(rows)

    came = FailureProtocol.objects.filter(setting_key="orders-export").first()
    assert came is not None
    came.pk, came.number, came.occurred_at = uuid4(), 10**6, timezone.now()
    came.received_at = came.occurred_at
    came.save(force_insert=True)
    wait_for(lambda: browser.run(news) == "1 new · show")

    assert (browser.run(place), browser.run(rows)) == (before, listed)
    browser.click("[data-news]")
    wait_for(lambda: str(came.pk) in browser.run("return document.querySelector('[data-rows] a').href"))
    assert browser.url().endswith("/protocols/?setting=orders-export")


def test_nothing_is_asked_while_paused(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("viewer")
    browser.open(f"{live_server.url}/protocols/")
    browser.run(
        "window.asked = 0; const real = window.fetch;"
        "window.fetch = function (...a) { window.asked += 1; return real.apply(this, a); };"
    )
    wait_for(lambda: browser.run("return window.asked") > 0)
    browser.click("[data-pause]")
    asked = browser.run("return window.asked")
    browser.run("return new Promise(function (done) { setTimeout(done, 6000); })")

    assert browser.run("return window.asked") == asked
