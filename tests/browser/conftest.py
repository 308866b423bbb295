"""A site with rows in it, and browsers in which somebody is signed in.

What needs Django is imported by the fixtures: pytest reads this file before Django is set up.
"""

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.browser.driver import Browser
from tests.services import pictures

if TYPE_CHECKING:
    from tests.web.factories import World

OPEN = pytest.StashKey[list[Browser]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keeps a picture of what a test saw that failed, before its browsers go."""
    report = yield
    if report.failed and report.when == "call":
        folder = pictures(item.path.stem)
        folder.mkdir(parents=True, exist_ok=True)
        browsers = item.stash.get(OPEN, [])
        for number, browser in enumerate(browsers):
            with contextlib.suppress(RuntimeError, requests.RequestException):  # a browser that died has none
                browser.picture(folder / f"{item.name}-{number}.png", whole=True)
    return report


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
def world(transactional_db: None, settings: Any) -> "World":
    """Its servers stay heard for as long as a browser may take to start; one has been silent for longer."""
    from agents.provisioning import queue_counts as figures
    from tests.web.factories import make_world

    settings.MA_LOST_AFTER_SECONDS = 100
    figures.forget()
    return make_world(letters=25)


@pytest.fixture(scope="session")
def idle_browsers() -> Iterator[list[Browser]]:
    """Kept for the next test: to start one takes longer than most pages."""
    browsers: list[Browser] = []
    yield browsers
    for browser in browsers:
        browser.close()


@pytest.fixture
def opened(
    live_server: Any, world: "World", idle_browsers: list[Browser], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Browser]]:
    """Opens a browser in which somebody is signed in, and which knows nothing of the tests before."""
    from django.conf import settings
    from django.test import Client

    shared: list[Browser] = []
    own: list[Browser] = []

    def start(*, width: int = 1400, height: int = 1000) -> Browser:
        browser = idle_browsers.pop() if idle_browsers else Browser()
        shared.append(browser)
        browser.resize(width, height)
        browser.open(f"{live_server.url}/login/")
        browser.forget()
        return browser

    def start_without_scripts() -> Browser:
        browser = Browser(scripts=False)
        own.append(browser)
        browser.open(f"{live_server.url}/login/")
        return browser

    def open_as(name: str, *, scripts: bool = True, **size: int) -> Browser:
        client = Client()
        client.force_login(world.people[name])
        browser = start(**size) if scripts else start_without_scripts()
        request.node.stash[OPEN] = shared + own
        browser.cookie(settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
        return browser

    yield open_as
    for browser in own:
        browser.close()
    for browser in shared:
        try:
            browser.open("about:blank")  # else its page asks the site on
            idle_browsers.append(browser)
        except (RuntimeError, requests.RequestException):
            browser.close()
