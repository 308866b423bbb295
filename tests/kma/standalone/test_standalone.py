"""A run of a standalone agent: how it ends, and what is known of it then. Real processes."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.port import AddressUnknown, BrokerUnavailable
from contract.records import RunState
from kma.run.thread import RunThread
from kma.standalone.run import StandaloneRun
from tests.kma.fakes import eventually, said
from tests.kma.standalone.standalone_stage import StandaloneStage, is_alive

pytestmark = pytest.mark.process

Make = Callable[..., StandaloneStage]
RAISE = {"do": "raise", "type": "KeyError", "text": "sku"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Make]:
    stages: list[StandaloneStage] = []

    def make(script: Any = None, **fields: Any) -> StandaloneStage:
        folder = tmp_path / str(len(stages))
        folder.mkdir()
        stages.append(StandaloneStage(folder, script, **fields))
        return stages[-1].start()

    yield make
    for one in stages:
        one.end()


def test_returning_ends_the_run_well(stage: Make) -> None:
    one = stage({"do": "sleep", "seconds": 0.5})
    one.began()
    eventually(lambda: one.run.report().state is RunState.RUNNING, "running")
    report = one.run.report()
    assert report.in_progress == 1 and report.connected
    one.over()
    assert one.kinds() == ["closing"] and len(one.lines()) == 1
    (closing,) = one.records("closing")
    assert (closing["state"], closing["handled"], one.spooled(closing)) == ("finished", 1, 0)
    assert not list(one.folder.glob("*.journal")) and one.run.report().state is RunState.FINISHED


@pytest.mark.parametrize(
    ("script", "kind", "outcome", "temporary"),
    [
        (RAISE, "KeyError", "raised", False),
        ({"do": "temporary"}, "kma.agent.TemporaryUnavailable", "temporary", True),
        ({"do": "invalid"}, "kma.agent.InvalidMessage", "raised", False),
        ({"do": "exit", "code": 3}, "exit:3", "child_died", False),
        ({"do": "exit", "code": 0}, "exit:0", "child_died", False),
        ({"do": "kill", "signal": "SIGKILL"}, "signal:SIGKILL", "child_died", False),
        ({"do": "kill", "signal": "SIGSEGV"}, "signal:SIGSEGV", "child_died", False),
    ],
)
def test_what_fails_without_a_restart_fails_the_run_with_one_protocol(
    stage: Make, script: Any, kind: str, outcome: str, temporary: bool
) -> None:
    one = stage(script)
    one.over()
    assert one.kinds() == ["protocol", "closing"] and len(one.lines()) == 1
    (protocol,), (closing,) = one.records("protocol"), one.records("closing")
    assert (protocol["exception_type"], protocol["outcome"], protocol["temporary"]) == (
        kind,
        outcome,
        temporary,
    )
    assert protocol["process_id"] == one.lines()[0]["pid"] and protocol["message"]["key"] == ""
    assert (closing["state"], one.spooled(closing)) == ("failed", 1)
    assert closing["failed"] + closing["temporary"] == 1


def test_the_protocol_shows_the_agents_own_lines(stage: Make) -> None:
    one = stage(RAISE)
    one.over()
    (protocol,) = one.records("protocol")
    assert protocol["place"] == "scripted.py:_raise" and "standalone_child" not in protocol["traceback"]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError", "no_such_module"),
        ("x = 1", "kma.registry.UnknownAgent", "unknown agent 'test.broken'"),
        (
            "from kma.agent import agent\n@agent('test.broken')\nclass B:\n"
            "    def __init__(self): raise RuntimeError('no database')\n"
            "    def run_agent(self, context): pass\n",
            "RuntimeError",
            "no database",
        ),
        (
            "from kma.agent import agent\n@agent('test.broken')\ndef run(message, context): pass\n",
            "TypeError",
            "message agent",
        ),
    ],
)
def test_an_agent_that_cannot_be_made_is_a_failure_too(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, kind: str, text: str
) -> None:
    (tmp_path / "broken_agent.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.broken", modules=("broken_agent",))
    one.over()
    (protocol,) = one.records("protocol")
    assert protocol["exception_type"] == kind and text in protocol["exception_text"]
    assert one.records("closing")[0]["state"] == "failed"


def test_over_its_time_it_is_killed_with_all_that_it_started(stage: Make, tmp_path: Path) -> None:
    one = stage({"do": "hang", "seconds": 60}, handling_timeout_seconds=0.5)
    pid = one.began()["pid"]
    one.over()
    (protocol,) = one.records("protocol")
    assert protocol["exception_type"] == protocol["outcome"].replace("timed_out", "timeout") == "timeout"
    assert protocol["duration_seconds"] >= 0.5 and not is_alive(pid)


def test_what_it_started_in_its_group_ends_with_it(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "starting_agent.py").write_text(
        "import subprocess\nfrom kma.agent import agent\n@agent('test.starting')\n"
        "def run(context):\n"
        "    left = subprocess.Popen(['sleep', '60'])\n"
        "    open(context.parameters['truth_file'], 'w').write(str(left.pid))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.starting", modules=("starting_agent",))
    one.over()
    # Adopted by whoever is the reaper here, which may leave it a zombie.
    stat = Path(f"/proc/{int(one.truth.read_text())}/stat")
    eventually(lambda: not stat.exists() or stat.read_text().rsplit(") ", 1)[1][0] == "Z", "its death")


# -- again and again -----------------------------------------------------------------------------------------


def test_it_is_started_again_in_the_same_run_until_it_returns(stage: Make) -> None:
    one = stage([{**RAISE, "first": 2}], restart_seconds=0.2)
    one.over()
    assert [line["start"] for line in one.lines()] == [1, 2, 3]
    assert len({line["pid"] for line in one.lines()}) == 3, "a process each"
    assert one.kinds() == ["protocol", "protocol", "closing"]
    (closing,) = one.records("closing")
    assert (closing["state"], closing["handled"], closing["failed"], closing["restarts"]) == (
        "finished",
        1,
        2,
        2,
    )
    assert one.run.report().counts.any == 0, "a success resets"


def test_it_says_when_it_is_started_again(stage: Make) -> None:
    one = stage(RAISE, restart_seconds=60)
    eventually(lambda: "KeyError; it restarts in 60 s" in said(one.run.report().problems), "the problem")
    assert one.run.report().state is RunState.STARTING and one.run.report().counts.same == 1
    one.run.stop(close=True, reason="enough")
    one.over(5)
    assert one.records("closing")[0]["state"] == "finished", (
        "what was stopped between two starts did not fail"
    )


def test_it_trips_after_n_failures_of_one_type_and_begins_no_more(stage: Make) -> None:
    one = stage(RAISE, restart_seconds=0.05, max_failures=6)
    one.over()
    assert len(one.lines()) == 2 and one.kinds() == ["protocol", "protocol", "interruption", "closing"]
    (interruption,), (closing,) = one.records("interruption"), one.records("closing")
    assert interruption["reason"] == "same_type" and len(interruption["evidence"]) == 2
    assert closing["state"] == "interrupted" and one.run.report().state is RunState.INTERRUPTED
    stored = one.ledger.run(one.run.key)
    assert stored is not None and stored.interrupted and stored.closed


def test_temporary_failures_trip_nothing(stage: Make) -> None:
    one = stage([{"do": "temporary", "first": 6}], restart_seconds=0.05, max_failures=3)
    one.over()
    assert one.kinds() == ["protocol"] * 6 + ["closing"]
    assert one.records("closing")[0]["temporary"] == 6


# -- stopping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("do", ["sleep", "wait"])
@pytest.mark.parametrize("again", [0.0, 30.0])
def test_a_stop_reaches_it_where_it_is_and_is_no_failure(stage: Make, do: str, again: float) -> None:
    one = stage({"do": do, "seconds": 60}, restart_seconds=again, grace_seconds=30)
    one.began()
    one.run.stop(close=True, reason="disabled")
    one.over(5)
    assert one.kinds() == ["closing"]
    (closing,) = one.records("closing")
    assert (closing["state"], closing["handled"], closing["failed"]) == ("finished", 0, 0)


BLOCKED = {
    "a lock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a pipe": "import os; os.read(os.pipe()[0], 1)",
    "a socket": "import socket; a, b = socket.socketpair(); a.recv(1)",
    "a child": "import subprocess; subprocess.run(['sleep', '60'])",
    "a queue": "import queue; queue.SimpleQueue().get()",
    "a loop": "while True: pass",
    "a thread": (
        "import threading, time; t = threading.Thread(target=time.sleep, args=(60,)); t.start(); t.join()"
    ),
}


@pytest.mark.parametrize("where", BLOCKED)
def test_a_stop_reaches_it_also_in_a_system_call(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    (tmp_path / "blocked_agent.py").write_text(
        "from kma.agent import agent\n@agent('test.blocked')\ndef run(context):\n"
        "    open(context.parameters['truth_file'], 'w').write('{\"note\": null}\\n')\n"
        f"    try:\n        {BLOCKED[where]}\n"
        "    except Exception: pass\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.blocked", modules=("blocked_agent",), grace_seconds=60)
    one.began()
    one.run.stop(close=True)
    one.over(10)
    assert one.kinds() == ["closing"] and one.records("closing")[0]["state"] == "finished"


def test_a_stop_whose_signal_woke_nobody_is_asked_for_again(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it came just before a system call that blocks: here the agent takes the first one away."""
    (tmp_path / "deaf_agent.py").write_text(
        "import signal, time\nfrom kma.agent import agent\n@agent('test.deaf')\ndef run(context):\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n"
        "    open(context.parameters['truth_file'], 'w').write('{\"note\": null}\\n')\n"
        "    signal.sigwait({signal.SIGTERM})\n"
        "    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})\n"
        "    time.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.deaf", modules=("deaf_agent",), grace_seconds=60)
    one.began()
    one.run.stop(close=True)
    one.over(20)
    assert one.kinds() == ["closing"] and one.records("closing")[0]["state"] == "finished"


def test_a_stop_that_python_dropped_is_raised_again(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the callbacks of an import: what is raised in a destructor goes nowhere."""
    (tmp_path / "dropping_agent.py").write_text(
        "import time\nfrom kma.agent import agent\n"
        "class Dropping:\n"
        "    def __init__(self, context): self.context = context\n"
        "    def __del__(self):\n"
        "        open(self.context.parameters['truth_file'], 'w').write('{\"note\": null}\\n')\n"
        "        time.sleep(60)\n"
        "@agent('test.dropping')\ndef run(context):\n"
        "    Dropping(context)\n"
        "    time.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.dropping", modules=("dropping_agent",), grace_seconds=60)
    one.began()
    one.run.stop(close=True)
    one.over(20)
    assert one.kinds() == ["closing"] and one.records("closing")[0]["state"] == "finished"


def test_after_the_grace_period_it_is_killed_and_that_is_no_failure_either(stage: Make) -> None:
    one = stage({"do": "hang", "seconds": 60}, grace_seconds=0.5)
    pid = one.began()["pid"]
    one.run.stop(close=True)
    one.over(10)
    assert one.kinds() == ["closing"] and one.records("closing")[0]["state"] == "finished"
    assert not is_alive(pid)


def test_agent_stopped_that_nobody_asked_for_is_a_failure(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaving_agent.py").write_text(
        "from kma.agent import AgentStopped, agent\n@agent('test.leaving')\n"
        "def run(context): raise AgentStopped('on my own')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.leaving", modules=("leaving_agent",))
    one.over()
    assert one.records("protocol")[0]["exception_type"] == "kma.agent.AgentStopped"
    assert one.records("closing")[0]["state"] == "failed"


def test_a_signal_that_nobody_asked_for_stops_nothing(stage: Make) -> None:
    one = stage({"do": "sleep", "seconds": 1})
    pid = one.began()["pid"]
    os.kill(pid, signal.SIGTERM)
    one.over()


def test_another_exception_while_it_is_stopped_is_a_failure(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clumsy_agent.py").write_text(
        "import time\nfrom kma.agent import agent\n@agent('test.clumsy')\ndef run(context):\n"
        "    try:\n"
        "        open(context.parameters['truth_file'], 'w').write('{\"note\": null}\\n')\n"
        "        time.sleep(60)\n"
        "    finally: raise ValueError('while cleaning up')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.clumsy", modules=("clumsy_agent",))
    one.began()
    one.run.stop(close=True)
    one.over()
    assert one.records("protocol")[0]["exception_type"] == "ValueError"
    assert one.records("closing")[0]["state"] == "failed"


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.2])
def test_a_stop_right_after_the_start_is_no_failure_whenever_it_comes(stage: Make, delay: float) -> None:
    one = stage({"do": "sleep", "seconds": 60})
    one.run.join(delay)
    one.run.stop(close=True)
    one.over(5)
    assert one.kinds() == ["closing"] and one.records("closing")[0]["state"] == "finished"


def test_a_stop_of_the_container_leaves_it_wanted_and_it_begins_again(stage: Make) -> None:
    one = stage([{"do": "wait", "seconds": 60, "first": 1}], restart_seconds=5)
    one.began()
    one.run.stop(close=False, reason="KMA shutdown")
    one.over()
    assert one.kinds() == [] and one.run.report().state is RunState.STARTING
    one.run = StandaloneRun(one.desired, "1", one.around)
    one.run.start()
    one.over()
    assert [line["start"] for line in one.lines()] == [1, 2] and one.kinds() == ["closing"]


def test_what_ended_while_the_container_stops_is_over(stage: Make, tmp_path: Path) -> None:
    one = stage([{"do": "sleep", "seconds": 0.2}, RAISE])
    one.began()
    eventually(lambda: one.run.report().state is RunState.RUNNING, "running")
    one.over()
    assert one.kinds() == ["protocol", "closing"]


# -- sending -------------------------------------------------------------------------------------------------


def test_what_it_sends_is_at_the_broker_when_send_returns(stage: Make) -> None:
    one = stage([{"do": "send", "destination": "demo.a", "count": 3, "body": "x" * 100_000}, RAISE])
    one.over()
    assert [one.destination for one in one.publisher.sent] == ["demo.a"] * 3, "though it raised later"
    assert [one.message.properties["index"].value for one in one.publisher.sent] == [0, 1, 2]


@pytest.mark.parametrize(
    ("problem", "kind", "temporary"),
    [
        (AddressUnknown("no such address"), "kma.agent.SendRefused", False),
        (BrokerUnavailable("away"), "kma.agent.TemporaryUnavailable", True),
    ],
)
def test_what_the_broker_does_not_take_is_raised_where_it_is_sent(
    tmp_path: Path, problem: Exception, kind: str, temporary: bool
) -> None:
    one = StandaloneStage(tmp_path, {"do": "send", "destination": "demo.a"})
    one.publisher.problem = problem
    one.start().over()
    (protocol,) = one.records("protocol")
    assert (protocol["exception_type"], protocol["temporary"]) == (kind, temporary)
    assert str(problem) in protocol["exception_text"]
    one.end()


def test_a_stop_reaches_it_while_it_waits_for_the_broker(tmp_path: Path) -> None:
    one = StandaloneStage(
        tmp_path, [{"do": "send", "destination": "demo.a"}, {"do": "send", "destination": "demo.b"}]
    )
    one.publisher.gate.clear()
    one.start().began()
    eventually(lambda: one.run.report().in_progress == 1, "a run")
    one.run.stop(close=True)
    one.run.join(0.5)
    one.publisher.gate.set()
    one.over()
    assert one.kinds() == ["closing"]
    assert [sent.destination for sent in one.publisher.sent] in ([], ["demo.a"])
    one.end()


def test_threads_of_the_agent_may_send_too(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threaded_agent.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\nfrom kma.agent import "
        "agent\n@agent('test.threaded')\n"
        "def run(context):\n"
        "    with ThreadPoolExecutor(8) as pool:\n"
        "        list(pool.map(lambda n: context.send('x', str(n)), range(200)))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage(agent="test.threaded", modules=("threaded_agent",))
    one.over()
    assert sorted(int(sent.message.body.value) for sent in one.publisher.sent) == list(range(200))
    assert one.records("closing")[0]["state"] == "finished"


def test_a_full_spool_lets_nothing_begin(stage: Make) -> None:
    one = stage({**RAISE, "text": "x" * 5000}, restart_seconds=0.05, max_failures=1000, spool_bytes=50_000)
    eventually(lambda: "spool is full" in said(one.run.report().problems), "the problem")
    begun = len(one.lines())
    one.run.join(0.5)
    assert len(one.lines()) == begun == len(one.records("protocol"))


def test_it_is_a_run_to_who_looks_at_it(tmp_path: Path) -> None:
    assert issubclass(StandaloneRun, RunThread)
    one = StandaloneStage(tmp_path)
    assert one.run.key == one.ledger.unclosed()[0].run
    changed = replace(one.desired, grace_seconds=1.0)
    one.run.change(changed)
    assert one.run.desired == changed
    one.start().over()
    one.end()
