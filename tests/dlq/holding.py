"""A worker that stands still at a named step, until the test lets it go on or kills it."""

import os
import signal
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REACHED, GO = "reached", "go"
# While the broker moves a slice: the worker says that it asks, and does not wait.
ASKS = "asks"
SECONDS = 60.0


def stand_still(point: str, times: int, folder: str) -> None:
    """In the worker, before it does anything: at the step `point`, the `times`-th time that it comes
    there."""
    from console.jobs import crash
    from dlq.replay.worker import mover

    ask, left = mover._ask, times

    def at(name: str) -> None:
        nonlocal left
        left -= name == point
        if name != point or left:
            return
        note = Path(folder) / f"{REACHED}.tmp"
        note.write_text(str(os.getpid()))
        note.rename(Path(folder) / REACHED)
        while point != ASKS and not (Path(folder) / GO).exists():
            time.sleep(0.01)

    def announced(*arguments: Any) -> int:
        at(ASKS)
        return ask(*arguments)

    crash.point = at
    mover._ask = announced  # type: ignore[assignment]


@dataclass
class Held:
    """`run` is its end: what it did and how it died."""

    folder: Path
    run: "Future[tuple[int, Any]]"

    def stands(self) -> int:
        """Its process, once it is there. Looks all the time: what the test does next is to be in time."""
        deadline = time.monotonic() + SECONDS
        while not (self.folder / REACHED).exists():
            assert not self.run.done(), f"it never came there: {self.run.result()}"
            assert time.monotonic() < deadline
        return int((self.folder / REACHED).read_text())

    def goes_on(self) -> Any:
        """What it answers at its end."""
        (self.folder / GO).touch()
        status, answer = self.run.result(SECONDS)
        assert status == 0
        return answer

    def is_killed(self) -> None:
        os.kill(self.stands(), signal.SIGKILL)
        assert self.run.result(SECONDS)[0] == -signal.SIGKILL
