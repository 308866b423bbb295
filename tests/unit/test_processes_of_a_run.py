"""Which processes carry the mark of a run, and how they are ended: on a table of processes."""

import os
import signal
from collections.abc import Iterator

import pytest

from console.jobs import detached

OWN, FOREIGN = b"MA_PIPELINE_RUN=7", b"MA_PIPELINE_RUN=77"


class Table:
    """Processes by pid: their environment, and which signals end them."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[list[bytes], set[int]]] = {}
        self.signals: list[tuple[int, int]] = []

    def add(self, pid: int, mark: bytes, *ended_by: int) -> None:
        self.running[pid] = ([b"PATH=/bin", mark], set(ended_by))

    def pids(self) -> list[int]:
        return [*self.running]

    def environment(self, pid: int) -> list[bytes]:
        return self.running[pid][0] if pid in self.running else []

    def kill(self, pid: int, number: int) -> None:
        self.signals.append((pid, number))
        if pid not in self.running:
            raise ProcessLookupError(pid)
        if number in self.running[pid][1]:
            del self.running[pid]


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    table = Table()
    monkeypatch.setattr(detached, "_pids", table.pids)
    monkeypatch.setattr(detached, "_environment", table.environment)
    monkeypatch.setattr(os, "kill", table.kill)
    yield table


def test_only_what_carries_the_whole_mark_belongs_to_a_run(processes: Table) -> None:
    processes.add(os.getpid(), OWN)
    processes.add(11, OWN)
    processes.add(12, FOREIGN)
    assert detached.of_run(7) == [11], "neither this process, nor a run whose number begins alike"


def test_who_ends_at_once_is_not_killed_and_nobody_else_gets_a_signal(processes: Table) -> None:
    processes.add(11, OWN, signal.SIGTERM, signal.SIGKILL)
    processes.add(12, FOREIGN, signal.SIGTERM, signal.SIGKILL)
    assert detached.end(7, grace=0.01) == 1
    assert processes.signals == [(11, signal.SIGTERM)]
    assert processes.pids() == [12]


def test_who_does_not_hear_is_killed_after_its_time(processes: Table) -> None:
    processes.add(11, OWN, signal.SIGKILL)
    processes.add(12, OWN, signal.SIGTERM, signal.SIGKILL)
    assert detached.end(7, grace=0.06) == 2
    assert processes.signals == [(11, signal.SIGTERM), (12, signal.SIGTERM), (11, signal.SIGKILL)]
    assert processes.pids() == []


def test_what_nothing_ends_is_left_after_its_time(processes: Table) -> None:
    processes.add(11, OWN)
    assert detached.end(7, grace=0.05) == 1
    assert (11, signal.SIGKILL) in processes.signals


def test_one_that_has_ended_meanwhile_keeps_no_other_from_its_end(
    processes: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.add(12, OWN, signal.SIGTERM)
    looks = iter([[11, 12], [], []])
    monkeypatch.setattr(detached, "of_run", lambda _: next(looks))
    assert detached.end(7, grace=0.01) == 2
    assert processes.pids() == []
