"""axe finds nothing serious on a site without rows, where every list says what will appear."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from tests.browser.driver import Browser
from tests.browser.test_accessibility import BY_DAY, findings
from tests.web.factories import World, make_people

PAGES = (
    "/", "/settings/", "/groups/", "/destinations/", "/activations/", "/answers/", "/servers/", "/trips/",
    "/alerts/", "/protocols/", "/fingerprints/", "/dead-letters/", "/dead-letters/unknown/",
    "/dead-letters/bin/", "/letters/", "/letters/groups/", "/foreign-queues/", "/saved-filters/", "/replays/",
    "/health/", "/insights/", "/retention/", "/audit/", "/records/", "/search/?q=x",
)  # fmt: skip
FORMS = (
    "admin:agents_launchsetting_add", "admin:agents_scheduledgroup_add", "admin:agents_destination_add",
    "admin:agents_pool_changelist", "admin:alerts_alertrule_changelist",
)  # fmt: skip


@pytest.fixture
def world(transactional_db: None) -> World:
    """People alone."""
    from django.utils import timezone

    return World(timezone.now(), people=make_people())


@pytest.mark.parametrize(("theme", "width", "language"), BY_DAY)
def test_axe_finds_nothing_serious_on_empty_pages(
    live_server: Any, world: World, opened: Callable[..., Browser], theme: str, width: int, language: str
) -> None:
    browser = opened("chief", width=1400, height=900)
    browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
    browser.run("localStorage.setItem('theme', arguments[0]); localStorage.setItem('ma.paused', '1')", theme)
    browser.narrow(width, 900)
    found = {}
    for path in (*PAGES, *map(reverse, FORMS)):
        browser.open(live_server.url + path)
        assert browser.run("return document.querySelectorAll('h1').length") == 1, path
        if trouble := findings(browser):
            found[path] = trouble
    assert not found, "\n".join(f"{name}: {each}" for name, all in found.items() for each in all)
