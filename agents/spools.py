"""How much of a KMA's spool this site has: the app that stores records registers who knows it."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from agents.models import Server
from contract.messages import SpoolReport

# (server, spool, the highest number that its KMA was told is stored, now): what is stored where that is less.
Behind = Callable[[Server, UUID, int, datetime], int | None]

_behind: list[Behind] = []


def register(behind: Behind) -> None:
    if behind not in _behind:
        _behind.append(behind)


def stored_less(server: Server, spool: SpoolReport, now: datetime) -> int | None:
    """The number up to which records are stored, where the KMA was told a higher one and can send them
    again."""
    if spool.id is None or spool.after is None:
        return None
    answers = [behind(server, spool.id, spool.after, now) for behind in _behind]
    return next((answer for answer in answers if answer is not None), None)
