"""Where the letters of a queue are listed."""

from urllib.parse import urlencode

from console.ui.page import link
from contract.properties import DEAD_LETTER_PREFIX


def list_of(queue: str, **wanted: str) -> str:
    """The list of its setting; of a foreign queue, which has no page of its own, the list of all narrowed to
    it."""
    if queue.startswith(DEAD_LETTER_PREFIX):
        address = link("dead_letters_of", queue.removeprefix(DEAD_LETTER_PREFIX))
    else:
        address, wanted = link("all_dead_letters"), {"queue": queue, **wanted}
    return f"{address}?{urlencode(wanted)}" if wanted else address
