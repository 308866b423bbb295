"""The pre-flight in a real browser: the warning that advises a ladder is there only while none is ticked."""

from collections.abc import Callable
from typing import Any

from tests.browser.driver import Browser
from tests.web.factories import World, make_letter

KEY = "mail-send"
TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError")
WARNED = "return document.querySelector('input[value=ladder_advised]').checkVisibility()"
PRESSED = "document.querySelector('input[name=ladder]').click()"


def test_the_warning_follows_the_box_of_the_ladder(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    for number in range(25):
        make_letter(world, KEY, "x", fingerprint="v1:many", orig_message_id=1000 + number)
    browser = opened("chief", width=1400, height=1000)
    browser.open(f"{live_server.url}/dead-letters/{KEY}/give-back/?group=1&fingerprint=v1:many")
    assert not browser.run(WARNED)
    browser.run(PRESSED)
    assert browser.run(WARNED)
    browser.run(PRESSED)
    assert not browser.run(WARNED)
    assert not [each for each in browser.log() if any(word in each["message"] for word in TROUBLE)]
