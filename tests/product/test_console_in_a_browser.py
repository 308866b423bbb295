"""What an operator does when something is wrong: find, understand, give back, see what became of it. In a
real browser, with the real product behind it, in both languages. The pictures are kept and their folder is
printed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from tests.browser.driver import Browser, wait_for
from tests.product import scripted
from tests.product.house import House
from tests.services import pictures

pytestmark = pytest.mark.browser

PICTURES = pictures(__name__)
TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError", "Refused to")
SAID = {"en": ("Dead letters", "processed"), "ru": ("Недоставленные сообщения", "обработано")}
POISONED, OTHERS = 3, 2
# What the job page says of the letters that were handled.
HANDLED = "const link = document.querySelector('a[href*=\"show=handled\"]'); "
HANDLED += "return link ? link.closest('span').nextElementSibling.value : 0"


class Operator:
    """A person at a browser, signed in as the administrator."""

    def __init__(self, house: House, browser: Browser, language: str) -> None:
        self.house, self.browser, self.language = house, browser, language
        self.folder = PICTURES / language
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._pictures = 0

    def opens(self, path: str) -> None:
        self.browser.open(self.house.facts["url"].rstrip("/") + path)

    def clicks(self, selector: str) -> None:
        """A link or button that leads to another page."""
        before = self.browser.run("return window.performance.timeOrigin")
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.browser.click(selector)
        ready = "return document.readyState == 'complete' && window.performance.timeOrigin"
        wait_for(lambda: self.browser.run(ready) not in (False, before))

    def goes_back(self) -> None:
        before = self.browser.url()
        self.browser.run("history.back()")
        wait_for(
            lambda: (
                self.browser.url() != before and self.browser.run("return document.readyState") == "complete"
            )
        )

    def sees(self, *texts: str) -> None:
        for text in texts:
            wait_for(lambda text=text: text in self.browser.run("return document.body.innerText"))  # type: ignore[misc]

    def keeps_a_picture(self, name: str) -> None:
        self._pictures += 1
        self.browser.picture(self.folder / f"{self._pictures}-{name}.png")
        said = [entry["message"] for entry in self.browser.log()]
        assert not [each for each in said if any(word in each for word in TROUBLE)], (name, said)


@contextmanager
def at_a_browser(house: House, language: str) -> Iterator[Operator]:
    session = house.browser().cookies[settings.SESSION_COOKIE_NAME]
    with Browser(width=1400, height=1000) as browser:
        browser.open(f"{house.facts['url']}login/")
        browser.cookie(settings.SESSION_COOKIE_NAME, session)
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        yield Operator(house, browser, language)


def dead_ones(house: House, key: str) -> None:
    """Messages that died of a cause that is mended now, and some that died of another one. The setting is
    off."""
    address = house.setting(key, policy={"max_attempts": 2, "delay_ms": 0})
    house.enable(key)
    bodies = [scripted.poisoned(n) for n in range(POISONED)]
    bodies += [{"do": "invalid", "text": f"another cause {n}", "note": 100 + n} for n in range(OTHERS)]
    house.publish(address, bodies)
    house.until("all are dead", lambda: house.count(key, f"DLQ.{key}") == [0, POISONED + OTHERS])
    house.until("all are indexed", lambda: len(house.dead_letters(key)) == POISONED + OTHERS)
    house.until("every failure is reported", lambda: len(house.protocols(key)) == 2 * POISONED + OTHERS)
    house.call("POST", f"settings/{key}/disable/", {"reason": "to be mended"})
    house.call("PATCH", f"settings/{key}/", {"agent": "test.mended"})
    house.until("it may run", lambda: house.call("GET", f"settings/{key}/")["provision_state"] == "ready")


@pytest.mark.parametrize("language", ["en", "ru"])
def test_find_understand_give_back_and_see_the_outcome(house: House, language: str) -> None:
    key = f"seen-{language}"
    dead_ones(house, key)
    walk_through(house, language, key)


def walk_through(house: House, language: str, key: str) -> None:
    with at_a_browser(house, language) as operator:
        _find(operator, key)
        _understand(operator)
        _give_back(operator, key)
        assert house.count(key, f"DLQ.{key}") == [POISONED, OTHERS], "the group, and nothing else"
        operator.keeps_a_picture("job")
        house.enable(key)
        wait_for(lambda: operator.browser.run(HANDLED) == POISONED, 180)
        operator.sees(SAID[language][1])
        operator.keeps_a_picture("outcome")
    assert house.count(key, f"DLQ.{key}") == [0, OTHERS]
    print(f"pictures: {operator.folder}")
    assert len(list(Path(operator.folder).glob("*.png"))) == 7


def _find(operator: Operator, key: str) -> None:
    """From the overview of all settings over the groups of one to the letters of a group."""
    operator.opens("/dead-letters/")
    operator.sees(SAID[operator.language][0], key)
    operator.keeps_a_picture("overview")
    operator.clicks(f"#row-{key}")
    operator.sees("RuntimeError", "InvalidMessage")
    operator.keeps_a_picture("groups")
    operator.clicks("#group-1")
    operator.sees("RuntimeError")
    assert "InvalidMessage" not in operator.browser.run("return document.querySelector('table').innerText")
    operator.keeps_a_picture("found")


def _understand(operator: Operator) -> None:
    operator.clicks('table a[href*="/letters/"]')
    operator.sees("RuntimeError", "poisoned", "srv-")
    operator.keeps_a_picture("letter")
    for _ in range(2):
        operator.goes_back()


def _give_back(operator: Operator, key: str) -> None:
    """Every warning has to be ticked before anything begins."""
    operator.clicks('a[href*="give-back"][href*="group=1"]')
    operator.sees(str(POISONED))
    operator.clicks("button.primary")
    assert not operator.house.call("GET", f"replays/?setting={key}")["results"], "nothing began unticked"
    operator.browser.run("document.querySelectorAll('[name=acknowledge]').forEach(box => box.click())")
    operator.browser.run("document.querySelector('[name=reason]').value = 'mended in version 2'")
    operator.keeps_a_picture("what-will-happen")
    operator.clicks("button.primary")
    wait_for(lambda: "/replays/" in operator.browser.url())
    job = operator.browser.url().rstrip("/").rpartition("/")[2]
    house = operator.house
    house.until("all left", lambda: house.call("GET", f"replays/{job}/")["letters"]["given_back"] == POISONED)
    told = house.call("GET", f"replays/{job}/")
    assert (told["reason"], told["scope"], told["total"]) == ("mended in version 2", "group", POISONED)
