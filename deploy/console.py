"""What `ma` tells the person in front of it."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

Say = Callable[[str], None]


def say(text: str) -> None:
    print(text, flush=True)


def say_if_heard(text: str) -> None:
    """For what has to go on where nobody listens any more: a closed terminal, a pipe whose reader has
    ended."""
    try:
        say(text)
    except OSError:
        discard_output()


def discard_output() -> None:
    """What the failed write left in the buffer must not fail once more at exit."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
    return "\n".join(lines)


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class DeployError(Exception):
    """What a person must mend before `ma` can go on. Its text is all they see: one line, what and what to
    do."""
