"""Workers that die and workers that go on, each a real process: forked by one host, which has loaded Django once."""

import json
import subprocess
import sys
from typing import Any

from tests.dlq.processes import ROOT, Processes

DIED = 77


class WorkerHost:
    """`processes` has the database and the broker that its children work with."""

    def __init__(self, processes: Processes) -> None:
        command = [sys.executable, "-m", "tests.dlq.worker_children"]
        environ = processes.environ | {"MA_TEST_CRASHES": "1"}
        self._host = subprocess.Popen(
            command, env=environ, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, act: str, *, crash_at: str = "", **arguments: Any) -> Any:
        """What the act answers, in a process of its own; with `crash_at` it has to die there."""
        assert self._host.stdin is not None and self._host.stdout is not None
        self._host.stdin.write(json.dumps([act, crash_at, arguments]) + "\n")
        self._host.stdin.flush()
        status, answer = json.loads(self._host.stdout.readline())
        assert status == (DIED if crash_at else 0), f"{act} ended with {status}, and was to die at: {crash_at}"
        return answer

    def close(self) -> None:
        assert self._host.stdin is not None
        with self._host:
            self._host.stdin.close()
        assert self._host.returncode == 0
