"""A site with rows in it, and browsers in which somebody is signed in.

What needs Django is imported by the fixtures: pytest reads this file before Django is set up.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.driver import Browser

if TYPE_CHECKING:
    from tests.web.factories import World


@pytest.fixture(scope="session", autouse=True)
def folder_of_static_files() -> None:
    """Before the server of this session starts, which warns where it is missing."""
    from django.conf import settings

    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)


@pytest.fixture(autouse=True)
def plain_static_files(settings: Any) -> None:
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}


@pytest.fixture
def world(transactional_db: None) -> "World":
    from agents.pages import figures
    from tests.web.factories import make_world

    figures.forget()
    return make_world(letters=25)


@pytest.fixture
def opened(live_server: Any, world: "World") -> Iterator[Callable[..., Browser]]:
    """Opens a browser in which somebody is signed in."""
    from django.conf import settings
    from django.test import Client

    browsers = []

    def open_as(name: str, **options: Any) -> Browser:
        client = Client()
        client.force_login(world.people[name])
        browser = Browser(**options)
        browsers.append(browser)
        browser.open(f"{live_server.url}/login/")
        browser.cookie(settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
        return browser

    yield open_as
    for browser in browsers:
        browser.close()
