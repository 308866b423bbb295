"""kill -9 of the whole container around a trip: the counts are as of the last ending that is on disk, a run
whose interruption is on disk is closed and never taken up again."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.breaker import Counts
from contract.messages import DesiredState, OfferedAgent
from contract.records import RunState
from kma.agent_discovery import OfferedAgents
from kma.host.recovery import recover_all
from kma.host.supervisor import RunSupervisor
from kma.spool.ledger import run_key
from tests.kma.fakes import Stage, eventually, message

pytestmark = pytest.mark.kill

OK, BAD = {"do": "ok"}, {"do": "raise"}
OFFER = OfferedAgents((OfferedAgent("demo.scripted", "message"),))

PROGRAM = """
import json, os, signal, sys, time
from pathlib import Path
from kma.spool.ledger import Ledger
from kma.children.pool import ChildPool
from kma.spool.records import Spool
from tests.kma.fakes import FakeLink, Stage, message

KINDS = {"append": Spool, "close_run": Spool, "settle": FakeLink, "release": ChildPool, "note": Ledger}
where, what, times, steps, m = sys.argv[2:7]
real, seen = getattr(KINDS[what], what), []

def counted(self, *args, **more):
    seen.append(what)
    last = len(seen) == int(times)
    if last and where == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, *args, **more)
    if last:
        os.kill(os.getpid(), signal.SIGKILL)

setattr(KINDS[what], what, counted)
messages = [message(step, identity=f"ID:{number}") for number, step in enumerate(json.loads(steps))]
stage = Stage(Path(sys.argv[1]), messages, max_failures=int(m), max_attempts=1)
stage.run.start()
time.sleep(20)
"""


def killed_at(folder: Path, where: str, what: str, times: int, steps: list[Any], m: int = 6) -> None:
    arguments = [str(folder), where, what, str(times), json.dumps(steps), str(m)]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9, done.stderr.decode()


@pytest.fixture
def after(tmp_path: Path) -> Iterator[Stage]:
    """The container's next start in the folder of the killed one."""
    stage = Stage(tmp_path, [], max_failures=6, max_attempts=1)
    yield stage
    stage.end()


def started_again(stage: Stage) -> RunSupervisor:
    """What the host does at its start, with a run that the MA still wants."""
    recover_all(stage.folder, stage.spool, stage.ledger)
    keeper = RunSupervisor(stage.around, lambda: OFFER)
    keeper.want(DesiredState("srv-1", "v", (stage.desired,)))
    for _ in range(3):
        keeper.step()
    return keeper


TRIP = [BAD, BAD, BAD]
ON_DISK = [
    ("after", "append", 2),
    ("before", "settle", 2),
    ("after", "settle", 2),
    ("before", "release", 2),
    ("after", "release", 2),
    ("before", "note", 2),
    ("after", "note", 2),
    ("before", "close_run", 1),
    ("after", "close_run", 1),
]


@pytest.mark.parametrize(("where", "what", "times"), ON_DISK)
def test_an_interruption_on_disk_is_never_parted_from_its_cause_and_ends_the_run(
    tmp_path: Path, after: Stage, where: str, what: str, times: int
) -> None:
    killed_at(tmp_path, where, what, times, TRIP)
    keeper = started_again(after)
    assert after.kinds() == ["protocol", "protocol", "interruption", "closing"]
    protocols = [str(record.id) for record in after.spool.head(2, 10**7)]
    (interruption,), (closing,) = after.records("interruption"), after.records("closing")
    assert interruption["evidence"] == protocols and interruption["counts"]["same"] == 2
    assert closing["state"] == "interrupted"
    assert (after.spooled(closing), closing["failed"], closing["handled"]) == (3, 2, 0)
    assert not keeper.alive and not after.links, "not taken up again, though it is still wanted"
    (report,) = keeper.reports()
    assert (report.state, report.counts.same, report.counts.any) == (RunState.INTERRUPTED, 2, 2)
    assert not list(tmp_path.glob("*.journal"))


def test_killed_before_the_tripping_protocol_is_on_disk_the_next_failure_trips(
    tmp_path: Path, after: Stage
) -> None:
    killed_at(tmp_path, "before", "append", 2, TRIP)
    keeper = started_again(after)
    assert [record["outcome"] for record in after.records("protocol")] == ["raised", "kma_died"]
    (report,) = keeper.reports()
    assert report.counts.same == 1 and report.state is not RunState.INTERRUPTED, (
        "the container's death counts for none"
    )
    after.link.put(message(BAD))
    eventually(lambda: not keeper.alive, "the run's own end")
    (interruption,) = after.records("interruption")
    ids = [
        str(record.id) for record in after.spool.head(10, 10**7) if record.content.get("outcome") == "raised"
    ]
    assert interruption["evidence"] == ids and len(ids) == 2, "that of before the kill is part of it"


@pytest.mark.parametrize(
    ("where", "what", "times", "steps", "counts", "successes"),
    [
        ("after", "release", 2, [BAD, BAD], 2, 0),
        ("after", "append", 2, [BAD, BAD], 2, 0),
        ("after", "release", 2, [BAD, OK], 0, 1),
        ("before", "settle", 2, [BAD, OK], 1, 0),  # it comes back: nobody can say that it went well
        ("after", "append", 2, [BAD, OK, OK, BAD], 1, 0),  # the journal still speaks of the failure before
        ("after", "release", 4, [BAD, OK, OK, BAD], 1, 0),
        ("after", "release", 5, [BAD, BAD, OK, OK, {"do": "temporary"}], 0, 2),
    ],
)
def test_counts_evidence_and_successes_survive_a_kill(
    tmp_path: Path,
    after: Stage,
    where: str,
    what: str,
    times: int,
    steps: list[Any],
    counts: int,
    successes: int,
) -> None:
    killed_at(tmp_path, where, what, times, steps, m=30)
    recover_all(tmp_path, after.spool, after.ledger)
    protocols = [
        record.id for record in after.spool.head(10, 10**7) if record.content.get("outcome") == "raised"
    ]
    carried = after.ledger.carried("orders")
    assert carried.counts == (Counts("RuntimeError", counts, counts) if counts else Counts())
    assert list(carried.evidence) == (protocols[-counts:] if counts else [])
    assert carried.successes == successes


def test_failures_are_counted_once_in_the_totals_wherever_it_is_killed(tmp_path: Path, after: Stage) -> None:
    killed_at(tmp_path, "after", "append", 2, [BAD, BAD], m=30)
    for _ in range(2):  # the second time there is no journal any more
        recover_all(tmp_path, after.spool, after.ledger)
        stored = after.ledger.run(run_key(after.desired.activation, after.desired.epoch))
        assert stored is not None and stored.totals.failed == 2 and not stored.interrupted
