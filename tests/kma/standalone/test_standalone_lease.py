"""The lease of a standalone agent: it goes on only as long as the MA answers, whoever is stopped or hangs."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.port import Account
from contract.records import RunState
from kma.delivery.outbox import StandaloneOutbox
from kma.standalone.lease import boottime_ns
from kma.standalone.run import StandaloneRun
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually, said
from tests.kma.standalone.standalone_stage import MODULE, StandaloneStage, is_alive, standalone
from tests.kma.worker import Worker

pytestmark = pytest.mark.process

Make = Callable[..., StandaloneStage]
LEASE = 1.5
TICK: dict[str, Any] = {"do": "tick", "seconds": 60}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Make]:
    stages: list[StandaloneStage] = []

    def make(script: Any = TICK, **fields: Any) -> StandaloneStage:
        stages.append(StandaloneStage(tmp_path, script, **{"lease_seconds": LEASE, **fields}))
        return stages[-1]

    yield make
    for one in stages:
        one.end()


@pytest.fixture
def worker(tmp_path: Path, ma: FakeMa) -> Iterator[Worker]:
    """A container without a broker: standalone agents need none."""
    one = Worker(tmp_path, ma, Account("amqp://127.0.0.1:1", "kma", "secret"))
    one.environment["KMA_AGENTS"] = MODULE
    yield one
    if one.process is not None:
        one.process.send_signal(signal.SIGCONT)
    one.stop()


def ticks(one: StandaloneStage) -> list[float]:
    return [line["boottime"] for line in one.lines("tick")]


def test_nothing_begins_before_the_ma_has_answered(stage: Make) -> None:
    one = stage().start()
    eventually(lambda: "Waiting for a reply from the MA" in said(one.run.report().problems), "the problem")
    assert one.lines() == [] and one.run.report().state is RunState.STARTING
    answered_until_begun(one)
    eventually(
        lambda: one.run.report().state is RunState.RUNNING and not said(one.run.report().problems), "running"
    )


def answered_until_begun(one: StandaloneStage, starts: int = 1) -> float:
    """When the last of these leases ends: on a busy machine one may pass before the agent has begun."""
    until = 0.0

    def begun() -> bool:
        nonlocal until
        one.answered()
        until = boottime_ns() / 1e9 + LEASE
        return len(one.lines()) >= starts

    eventually(begun, f"{starts} starts")
    return until


def test_it_ends_when_the_ma_does_not_answer_and_begins_again_when_it_does(stage: Make) -> None:
    one = stage().start()
    until = answered_until_begun(one)
    eventually(lambda: "Waiting for a reply" in said(one.run.report().problems), "the end of the lease")
    assert not is_alive(one.lines()[0]["pid"])
    assert max(ticks(one)) < until + 0.3
    assert (
        one.records() == [] and one.run.report().failed == 0 and one.run.report().state is RunState.STARTING
    )
    time.sleep(0.5)
    assert len(one.lines()) == 1, "nothing begins by itself"
    answered_until_begun(one, 2)
    assert one.records() == []


def test_it_goes_on_as_long_as_the_ma_answers(stage: Make) -> None:
    one = stage({"do": "tick", "seconds": 2.5 * LEASE}).start()
    while one.run.alive:
        one.answered()
        one.run.join(0.2)
    assert len(one.lines()) == 1 and one.kinds() == ["closing"]


def test_a_lease_may_come_and_go_while_it_runs(stage: Make) -> None:
    one = stage(lease_seconds=0.0).start()
    one.began()
    one.run.change(replace(one.desired, lease_seconds=LEASE))
    eventually(lambda: "Waiting for a reply" in said(one.run.report().problems), "the end of the lease")
    one.run.change(one.desired)
    one.began(2)


def test_a_process_that_was_stopped_does_not_wake_up_after_its_lease(stage: Make) -> None:
    one = stage().start()
    answered_until_begun(one)
    pid = one.began()["pid"]
    os.kill(pid, signal.SIGSTOP)
    before = len(ticks(one))
    eventually(
        lambda: "Waiting for a reply" in said(one.run.report().problems), "the end of the lease", LEASE + 5
    )
    assert not is_alive(pid) and len(ticks(one)) - before <= 1 and one.records() == []


def test_code_that_keeps_the_interpreter_ends_by_the_kernels_timer(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greedy_agent.py").write_text(
        "import re\nfrom kma.agent import agent\n@agent('test.greedy')\ndef run(context):\n"
        "    open(context.parameters['truth_file'], 'w').write('{\"note\": null}\\n')\n"
        "    re.match('(a+)+$', 'a' * 60 + 'b')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.greedy", modules=("greedy_agent",)).start()
    answered_until_begun(one)
    eventually(
        lambda: "Waiting for a reply" in said(one.run.report().problems), "the end of the lease", LEASE + 5
    )
    assert one.records() == []


def test_code_that_keeps_the_interpreter_beyond_its_lease_fails_though_the_ma_answers(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greedy_agent.py").write_text(
        "import re\nfrom kma.agent import agent\n@agent('test.greedy')\ndef run(context):\n"
        "    re.match('(a+)+$', 'a' * 60 + 'b')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.greedy", modules=("greedy_agent",)).start()
    deadline = time.monotonic() + 90
    while one.run.alive and time.monotonic() < deadline:
        one.answered()
        one.run.join(0.1)
    (protocol,) = one.records("protocol")
    assert (
        protocol["exception_type"] == "signal:SIGKILL" and "blocked the renewal" in protocol["exception_text"]
    )


@pytest.mark.parametrize("answered_again", [False, True])
def test_a_run_that_was_held_up_publishes_nothing_of_a_lease_that_is_over(
    stage: Make, monkeypatch: pytest.MonkeyPatch, answered_again: bool
) -> None:
    """Another server may have begun by then; the agent was not told that it was sent. Nor does an answer that
    the MA gave meanwhile bring the old lease back."""
    published: list[int] = []
    monkeypatch.setattr(StandaloneOutbox, "put", lambda self, number, content: published.append(number))
    script = [
        {"do": "sleep", "seconds": 0.5, "first": 1},
        {"do": "send", "destination": "demo.a", "first": 1},
    ]
    one = stage([*script, TICK])
    real, go_on = StandaloneRun._wait, threading.Event()

    def wait(self: StandaloneRun) -> None:
        if len(one.lines()) == 1:
            go_on.wait(20)
        real(self)

    monkeypatch.setattr(StandaloneRun, "_wait", wait)
    one.start()
    answered_until_begun(one)
    pid = one.began()["pid"]
    eventually(lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z", "its end")
    if answered_again:
        one.answered()
    go_on.set()
    if answered_again:
        one.began(2)
    else:
        eventually(lambda: "Waiting for a reply" in said(one.run.report().problems), "the end of the lease")
    assert published == []


# -- a whole container ---------------------------------------------------------------------------------------


def wants(ma: FakeMa, folder: Path, script: Any = TICK, **fields: Any) -> StandaloneStage:
    folder = folder / "stage"
    folder.mkdir()
    one = StandaloneStage(folder, script, **{"lease_seconds": LEASE, **fields})
    ma.want(one.desired)
    return one


def test_a_container_that_is_stopped_as_a_process_keeps_no_agent_running(
    worker: Worker, ma: FakeMa, tmp_path: Path
) -> None:
    one = wants(ma, tmp_path)
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    assert worker.process is not None
    worker.process.send_signal(signal.SIGSTOP)
    last_answer = time.clock_gettime(time.CLOCK_BOOTTIME)
    pid = one.lines()[0]["pid"]
    eventually(
        lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z", "its end", LEASE + 5
    )
    assert max(ticks(one)) < last_answer + LEASE + 0.3
    worker.process.send_signal(signal.SIGCONT)
    one.began(2)
    assert ma.kinds() == [], "neither a failure nor an end"
    one.end()


def test_an_agent_that_is_stopped_with_its_container_ends_in_its_sleep(
    worker: Worker, ma: FakeMa, tmp_path: Path
) -> None:
    one = wants(ma, tmp_path)
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    assert worker.process is not None
    worker.process.send_signal(signal.SIGSTOP)
    pid = one.lines()[0]["pid"]
    os.kill(pid, signal.SIGSTOP)
    eventually(
        lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z", "its end", LEASE + 5
    )
    worker.process.send_signal(signal.SIGCONT)
    one.began(2)
    assert ma.kinds() == []
    one.end()


def test_without_the_ma_a_leased_run_stops_and_a_new_container_begins_none(
    worker: Worker, ma: FakeMa, tmp_path: Path
) -> None:
    one = wants(ma, tmp_path)
    other = standalone(
        tmp_path / "other", TICK, setting="other", activation=one.desired.activation.__class__(int=7)
    )
    ma.want(one.desired, other)
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    ma.down = True
    eventually(lambda: not is_alive(one.lines()[0]["pid"]), "its end", LEASE + 5)
    worker.stop()
    worker.start()
    eventually(
        lambda: (tmp_path / "other").read_text().count('"note": null') == 2, "the one without a lease", 40
    )
    time.sleep(0.5)
    assert len(one.lines()) == 1
    ma.down = False
    one.began(2)
    one.end()


def test_a_run_that_is_not_wanted_any_more_does_not_begin_with_the_answer_that_says_so(
    worker: Worker, ma: FakeMa, tmp_path: Path
) -> None:
    one = wants(ma, tmp_path)
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    ma.down = True
    eventually(lambda: not is_alive(one.lines()[0]["pid"]), "its end", LEASE + 5)
    ma.want()
    ma.down = False
    eventually(lambda: ma.kinds() == ["closing"], "the closing record")
    assert len(one.lines()) == 1 and ma.contents("closing")[0]["state"] == "finished"
    one.end()
