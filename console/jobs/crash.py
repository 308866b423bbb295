"""Places where a test ends this process as `kill -9` would: nothing is flushed, no connection says
goodbye."""

import os

ASKED, ALLOWED = "MA_CRASH_AT", "MA_TEST_CRASHES"
EXIT_CODE = 77


def point(name: str) -> None:
    """Ends the process when `MA_CRASH_AT` names this place and `MA_TEST_CRASHES` is 1, as tests set both for
    their own processes only; else it is nothing."""
    if os.environ.get(ASKED) == name and os.environ.get(ALLOWED) == "1":
        os._exit(EXIT_CODE)
