"""A run of `demo.scripted-standalone` with real processes, in a folder of its own."""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.port import Outgoing
from contract.messages import AgentKind, DesiredRun
from kma.run.minutes import Durations
from kma.run.thread import ContainerServices
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from kma.standalone.lease import boottime_ns
from kma.standalone.run import StandaloneRun
from tests.kma.fakes import FIGURES, contents, eventually, wanted

MODULE = "kma.samples.standalone"


class FakePublisher:
    """Takes what is sent; `problem` is raised instead, `gate` is waited for first."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.problem: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self.gate.wait(20)
        if self.problem is not None:
            raise self.problem
        self.sent.extend(messages)

    def close(self) -> None:
        pass


class StandaloneStage:
    """`script`: the parameter of the agent; the truth is in `starts`."""

    def __init__(self, folder: Path, script: Any = None, **desired: Any) -> None:
        self.folder = folder
        self.truth = folder / "truth"
        self.file = SpoolFile(folder / "spool.sqlite3")
        self.spool = Spool(self.file, desired.pop("spool_bytes", 10_000_000))
        self.ledger = Ledger(self.file)
        self.publisher = FakePublisher()
        modules = desired.pop("modules", (MODULE,))
        self.durations: list[Durations] = []
        self.around = ContainerServices(
            "srv-1",
            self.spool,
            self.ledger,
            folder,
            modules,
            no_link,
            publisher=lambda: self.publisher,
            durations=self.durations.append,
        )
        self.desired = standalone(self.truth, script, **desired)
        self.run = StandaloneRun(self.desired, "1", self.around)

    def start(self) -> "StandaloneStage":
        self.run.start()
        return self

    def answered(self) -> None:
        self.run.heard_from_ma(boottime_ns())

    def lines(self, note: str | None = None) -> list[dict[str, Any]]:
        found = (
            [json.loads(line) for line in self.truth.read_text().splitlines()] if self.truth.exists() else []
        )
        return [line for line in found if line["note"] == note]

    def began(self, times: int = 1) -> dict[str, Any]:
        """The truth of this start, once there is one."""
        eventually(lambda: len(self.lines()) >= times, f"{times} starts; {self.run.report()}")
        return self.lines()[times - 1]

    def over(self, seconds: float = 90) -> None:
        self.run.join(seconds)
        assert not self.run.alive, self.run.report()

    def records(self, kind: str = "") -> list[dict[str, Any]]:
        return contents(self.spool, kind)

    def kinds(self) -> list[str]:
        return [one.kind for one in self.spool.head(1000, 1 << 30) if one.kind != FIGURES]

    def spooled(self, closing: Mapping[str, Any]) -> int:
        """Records before the closing one, by its word, without figures."""
        return int(closing["records"]) - len(self.records(FIGURES))

    def end(self) -> None:
        if self.run.alive:
            self.run.stop(close=True, reason="test")
            self.over(40)
        self.file.close()


def no_link(*_: Any) -> Any:
    raise AssertionError("a standalone agent needs no link")


def standalone(truth: Path, script: Any = None, **fields: Any) -> DesiredRun:
    values = {
        "agent": "demo.scripted-standalone",
        "kind": AgentKind.STANDALONE,
        "setting": "nightly",
        "destination": "",
        "queue": "",
        "parameters": {"truth_file": str(truth), "script": script or {"do": "ok"}},
    }
    return wanted(**{**values, **fields})


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
