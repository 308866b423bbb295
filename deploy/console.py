"""What `ma` tells the person in front of it, and the programs that it runs for them: their output goes to a
log, a failure is one problem."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

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


SHOWN_LINES = 5


def run_logged(
    command: Sequence[str | Path],
    *,
    what: str,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"$ {' '.join(str(part) for part in command)}\n".encode())
        output.flush()
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env) if env is not None else None,
                cwd=cwd,
                check=False,
            )
        except OSError as error:
            raise DeployError(f"{what} failed: {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise DeployError(
            f"{what} failed with exit code {done.returncode}; all of it is in {log}\n{_tail(log)}"
        )


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"  | {line}" for line in lines[-SHOWN_LINES:])
