"""Workers that die and workers that go on, each a real process: forked by one host, which has loaded Django
once."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.dlq.holding import GO, Held
from tests.dlq.processes import ROOT, Processes

DIED = 77


class WorkerHost:
    """`processes` has the database and the broker that its children work with."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        command = [sys.executable, "-m", "tests.dlq.worker_children"]
        environ = processes.environ | {"MA_TEST_CRASHES": "1"}
        self._host = subprocess.Popen(
            command, env=environ, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, act: str, *, crash_at: str = "", **arguments: Any) -> Any:
        """What the act answers, in a process of its own; with `crash_at` it has to die there."""
        ((status, answer),) = self._ended([(act, crash_at, {}, arguments)])
        assert status == (DIED if crash_at else 0), (
            f"{act} ended with {status}, and was to die at: {crash_at}"
        )
        return answer

    def at_once(self, act: str, *each: dict[str, Any]) -> list[Any]:
        """The answers of as many processes, which begin together."""
        ended = self._ended([(act, "", {}, arguments) for arguments in each])
        assert [status for status, _ in ended] == [0] * len(each)
        return [answer for _, answer in ended]

    @contextmanager
    def held(self, act: str, at: str, folder: Path, *, times: int = 1, **arguments: Any) -> Iterator[Held]:
        """A worker that stands still the `times`-th time that it comes to a step; see `holding`."""
        where = {"point": at, "times": times, "folder": str(folder)}
        with ThreadPoolExecutor(1) as waiting:
            run = waiting.submit(lambda: self._ended([(act, "", where, arguments)])[0])
            try:
                yield Held(folder, run)
            finally:
                (folder / GO).touch()

    def _ended(
        self, acts: Sequence[tuple[str, str, dict[str, Any], dict[str, Any]]]
    ) -> list[tuple[int, Any]]:
        assert self._host.stdin is not None and self._host.stdout is not None
        self._host.stdin.write(json.dumps(acts) + "\n")
        self._host.stdin.flush()
        return [(status, answer) for status, answer in json.loads(self._host.stdout.readline())]

    def close(self) -> None:
        assert self._host.stdin is not None
        with self._host:
            self._host.stdin.close()
