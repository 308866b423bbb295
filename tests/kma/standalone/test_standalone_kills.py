"""kill -9 of the container while a standalone agent runs, and at each line after its end."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.port import Account
from contract.messages import AgentKind
from kma.host.recovery import recover_all
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import FIGURES, eventually, said
from tests.kma.standalone.standalone_stage import MODULE, StandaloneStage, is_alive
from tests.kma.worker import Worker

pytestmark = pytest.mark.kill

PROGRAM = """
import json, os, signal, sys, time
from pathlib import Path
from kma.spool.records import Spool
from tests.kma.standalone.standalone_stage import StandaloneStage

def kill(where, kind, name):
    real = getattr(kind, name)
    def killed(self, *args, **more):
        if where == "after":
            real(self, *args, **more)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(kind, name, killed)

where, what, script, again = sys.argv[2:6]
kill(where, Spool, what)
StandaloneStage(Path(sys.argv[1]), json.loads(script), restart_seconds=float(again)).start()
time.sleep(20)
"""
RETURN, RAISE = '{"do": "ok"}', '{"do": "raise"}'


def killed_at(folder: Path, where: str, what: str, script: str, again: float) -> None:
    command = [sys.executable, "-c", PROGRAM, str(folder), where, what, script, str(again)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9, done.stderr.decode()


def recovered(folder: Path) -> tuple[list[dict[str, Any]], bool]:
    """The records after the next start, and whether the run is over. Twice, as after a kill in between."""
    file = SpoolFile(folder / "spool.sqlite3")
    spool, ledger = Spool(file, 10**6), Ledger(file)
    recover_all(folder, spool, ledger)
    assert recover_all(folder, spool, ledger).total() == 0
    found = spool.head(100, 10**6)
    records = [{"kind": one.kind, **one.content} for one in found if one.kind != FIGURES]
    over = not ledger.unclosed()
    file.close()
    return records, over


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("what", ["append", "close_run"])
@pytest.mark.parametrize("again", [0.0, 30.0])
def test_a_run_that_returned_is_over_wherever_the_container_dies(
    tmp_path: Path, where: str, what: str, again: float
) -> None:
    killed_at(tmp_path, where, what, RETURN, again)
    (closing,), over = recovered(tmp_path)
    assert over and (closing["kind"], closing["state"]) == ("closing", "finished")
    assert (closing["handled"], closing["failed"]) == (1, 0)


@pytest.mark.parametrize(
    ("where", "what", "outcome"),
    [
        ("before", "append", "kma_died"),
        ("after", "append", "raised"),
        ("before", "close_run", "raised"),
        ("after", "close_run", "raised"),
    ],
)
def test_a_run_that_failed_is_over_with_one_protocol_wherever_the_container_dies(
    tmp_path: Path, where: str, what: str, outcome: str
) -> None:
    killed_at(tmp_path, where, what, RAISE, 0.0)
    (protocol, closing), over = recovered(tmp_path)
    assert over and (protocol["kind"], protocol["outcome"]) == ("protocol", outcome)
    assert (closing["kind"], closing["state"], closing["failed"]) == ("closing", "failed", 1)


@pytest.mark.parametrize(("where", "outcome"), [("before", "kma_died"), ("after", "raised")])
def test_a_run_that_is_started_again_goes_on_with_one_protocol(
    tmp_path: Path, where: str, outcome: str
) -> None:
    killed_at(tmp_path, where, "append", RAISE, 0.1)
    (protocol,), over = recovered(tmp_path)
    assert protocol["outcome"] == outcome and not over


@pytest.fixture
def worker(tmp_path: Path, ma: FakeMa) -> Iterator[Worker]:
    one = Worker(tmp_path, ma, Account("amqp://127.0.0.1:1", "kma", "secret"))
    one.environment["KMA_AGENTS"] = MODULE
    yield one
    one.stop()


@pytest.fixture
def make(tmp_path: Path, ma: FakeMa) -> Iterator[Any]:
    made: list[StandaloneStage] = []

    def want(script: Any, **fields: Any) -> StandaloneStage:
        folder = tmp_path / "stage"
        folder.mkdir()
        made.append(StandaloneStage(folder, script, **fields))
        ma.want(made[-1].desired)
        return made[-1]

    yield want
    for one in made:
        one.end()


def test_a_container_that_is_killed_in_a_delayed_run_has_failed_it(
    worker: Worker, ma: FakeMa, make: Any
) -> None:
    one = make({"do": "sleep", "seconds": 60})
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    worker.kill()
    eventually(lambda: not is_alive(one.lines()[0]["pid"]), "the end of its child")
    worker.start()
    eventually(lambda: ma.kinds() == ["protocol", "closing"], "its records", 40)
    (protocol,), (closing,) = ma.contents("protocol"), ma.contents("closing")
    assert (protocol["exception_type"], protocol["counted"]) == ("kma died", False)
    assert protocol["exception_text"] == "The KMA ended while the agent ran."
    assert (closing["state"], ma.spooled(closing), closing["failed"]) == ("failed", 1, 1)
    eventually(lambda: any(run["state"] == "finished" for run in ma.last["runs"]), "the report")
    assert len(one.lines()) == 1, "nobody began it again"


def test_a_container_that_is_killed_in_an_asap_run_starts_it_again(
    worker: Worker, ma: FakeMa, make: Any
) -> None:
    one = make([{"do": "sleep", "seconds": 60, "first": 1}], restart_seconds=5)
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    worker.kill()
    worker.start()
    eventually(lambda: ma.kinds() == ["protocol", "closing"], "its records", 40)
    assert ma.contents("protocol")[0]["exception_type"] == "kma died"
    assert ma.contents("closing")[0]["state"] == "finished" and len(one.lines()) == 2


def test_a_container_stops_its_agents_and_begins_them_again_at_its_next_start(
    worker: Worker, ma: FakeMa, make: Any
) -> None:
    one = make([{"do": "sleep", "seconds": 60, "first": 1}])
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    assert worker.stop() == 0
    assert ma.kinds() == []
    worker.start()
    eventually(lambda: ma.kinds() == ["closing"], "the closing record", 40)
    assert len(one.lines()) == 2


def test_a_setting_that_changes_lets_a_run_end_as_it_was_begun(worker: Worker, ma: FakeMa, make: Any) -> None:
    one = make([{"do": "sleep", "seconds": 1.5}])
    worker.start()
    eventually(lambda: len(one.lines()) == 1, "a start", 40)
    ma.want(
        replace(one.desired, parameters={**one.desired.parameters, "more": 1}, handling_timeout_seconds=60.0)
    )
    eventually(lambda: ma.kinds() == ["closing"], "the closing record", 40)
    assert len(one.lines()) == 1


def test_an_agent_of_the_other_kind_is_a_problem_to_show(worker: Worker, ma: FakeMa, make: Any) -> None:
    one = make({"do": "ok"})
    ma.want(replace(one.desired, kind=AgentKind.MESSAGE))
    worker.start()
    eventually(
        lambda: any("the kind of agent" in said(run["problems"]) for run in ma.last["runs"]),
        "the problem",
        40,
    )
    assert one.lines() == []
