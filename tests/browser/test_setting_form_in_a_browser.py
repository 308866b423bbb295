"""The form of a setting in a browser: the panel of its effect follows every choice, also one that is made in
a window of its own."""

from collections.abc import Callable
from typing import Any

from agents.models import Destination
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World

ATTEMPTS = "return document.querySelector('.preview dd')?.firstChild.textContent"
CHOSEN = "return document.getElementById('id_destination').selectedOptions[0].text"
CHOOSE = (
    "const field = document.getElementById('id_destination'); field.value = arguments[0];"
    "field.dispatchEvent(new Event('change', {bubbles: true}))"
)


def in_other_window(browser: Browser, link: str, fill_in: Callable[[], None]) -> None:
    """Follows a link to a form that opens beside, and saves what was filled in there; then it closes."""
    form = browser.windows()[0]
    browser.click(link)
    wait_for(lambda: len(browser.windows()) == 2)
    browser.go_to(next(each for each in browser.windows() if each != form))
    wait_for(lambda: browser.run("return Boolean(document.querySelector('[name=_save]'))"))
    fill_in()
    browser.run("document.querySelector('[name=_save]').click()")
    wait_for(lambda: len(browser.windows()) == 1)
    browser.go_to(form)


def test_the_effect_is_that_of_a_destination_made_or_changed_beside(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    browser = opened("chief")
    browser.open(f"{live_server.url}/agents/launchsetting/add/")
    browser.run(CHOOSE, str(Destination.objects.get(name="shop.orders").pk))
    wait_for(lambda: browser.run(ATTEMPTS) == "4")

    def make() -> None:
        browser.write("#id_name", "made.beside")
        browser.write("#id_max_attempts", "7")

    in_other_window(browser, "#add_id_destination", make)
    assert browser.run(CHOSEN) == "made.beside"
    wait_for(lambda: browser.run(ATTEMPTS) == "7")

    in_other_window(browser, "#change_id_destination", lambda: browser.write("#id_max_attempts", "5"))
    wait_for(lambda: browser.run(ATTEMPTS) == "5")
