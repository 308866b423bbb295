"""kill -9 of the whole container at each line of a delivery that waits for its answer (mode CLIENT)."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contract.reasons import CONTAINER_ENDED, CONTAINER_ENDED_IN_DOUBT
from kma.host.recovery import recover_all
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from tests.kma.fakes import FIGURES

pytestmark = pytest.mark.kill

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from contract.acknowledgements import Action
from contract.messages import Answer, Mode
from kma.children.pool import ChildPool
from kma.delivery.outbox import Outbox
from kma.spool.journal import Journal
from kma.spool.records import Spool
from tests.kma.fakes import FakeLink, FakePublisher, Stage, eventually, message

where, what, which, action, step = sys.argv[2:7]
kind = {"append": Spool, "settle_with_sends": FakeLink, "settle": FakeLink, "publish": FakePublisher,
        "commit": Journal, "put_event": Outbox, "reply": ChildPool}[what]
real, calls = getattr(kind, what), []

def killing(self, *args, **more):
    calls.append(1)
    if where == "before" and len(calls) == int(which):
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, *args, **more)
    if where == "after" and len(calls) == int(which):
        os.kill(os.getpid(), signal.SIGKILL)

setattr(kind, what, killing)
waiting = [message(step, identity="ID:1")]
client = {"mode": Mode.CLIENT, "acknowledgement_secret": "5e" * 32, "rolled_back_destination": "demo.events"}
stage = Stage(Path(sys.argv[1]), waiting, **client)
stage.run.start()
eventually(lambda: bool(stage.records("acknowledgement_opened")), "what waits")
stage.run.pass_on(Answer(stage.records("acknowledgement_opened")[0]["acknowledgement"], Action(action)))
time.sleep(20)
"""


def killed_at(folder: Path, where: str, what: str, which: int, action: str, step: str) -> None:
    command = [sys.executable, "-c", PROGRAM, str(folder), where, what, str(which), action, step]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9, done.stderr.decode()


def recovered(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Kinds and contents after two starts: the second finds nothing more to do."""
    for _ in range(2):
        file = SpoolFile(folder / "spool.sqlite3")
        spool, ledger = Spool(file, 10**6), Ledger(file)
        recover_all(folder, spool, ledger)
        found = spool.head(10, 10**6)
        records = [(record.kind, dict(record.content)) for record in found if record.kind != FIGURES]
        assert spool.open_acknowledgements() == []
        (run,) = ledger.unclosed()
        assert run.records == len(found), "the closing record counts each once"
        file.close()
    return records


@pytest.mark.parametrize(
    ("where", "what", "which", "end"),
    [
        ("before", "publish", 1, None),
        ("after", "publish", 1, None),
        ("before", "append", 1, None),
        ("after", "append", 1, ("lost", CONTAINER_ENDED.code)),
        ("before", "append", 2, ("lost", CONTAINER_ENDED.code)),
        ("after", "append", 2, ("lost", CONTAINER_ENDED_IN_DOUBT.code)),
        ("before", "settle_with_sends", 1, ("lost", CONTAINER_ENDED_IN_DOUBT.code)),
        ("after", "settle_with_sends", 1, ("lost", CONTAINER_ENDED_IN_DOUBT.code)),
        ("before", "append", 3, ("lost", CONTAINER_ENDED_IN_DOUBT.code)),
        ("after", "append", 3, ("committed", None)),
    ],
)
def test_a_commit_ends_once_and_nothing_is_said_that_is_not_so(
    tmp_path: Path, where: str, what: str, which: int, end: tuple[str, str | None] | None
) -> None:
    killed_at(tmp_path, where, what, which, "COMMIT", '{"do": "send", "destination": "demo.invoices"}')
    found = recovered(tmp_path)
    if end is None:
        assert found == [], "it comes back as if it had never been here"
        return
    assert [kind for kind, _ in found] == ["acknowledgement_opened", "acknowledgement_ended"]
    reason = found[1][1]["reason"]
    assert (found[1][1]["state"], reason and reason["code"]) == end
    assert found[0][1]["acknowledgement"] == found[1][1]["acknowledgement"]


@pytest.mark.parametrize(
    ("where", "what", "which", "state"),
    [
        ("before", "append", 2, "lost"),
        ("after", "append", 2, "rolled_back"),
        ("before", "settle", 1, "rolled_back"),
        ("after", "settle", 1, "rolled_back"),
    ],
)
def test_a_rollback_has_its_protocol_exactly_when_it_is_told(
    tmp_path: Path, where: str, what: str, which: int, state: str
) -> None:
    killed_at(tmp_path, where, what, which, "ROLLBACK", '{"do": "ok"}')
    found = recovered(tmp_path)
    outcomes = [content["outcome"] for kind, content in found if kind == "protocol"]
    assert outcomes == (["rolled_back"] if state == "rolled_back" else [])
    assert [content["state"] for kind, content in found if kind == "acknowledgement_ended"] == [state]


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(
    ("what", "step"),
    [
        ("put_event", '{"do": "ok"}'),
        ("reply", '[{"do": "acknowledge", "action": "ROLLBACK"}, {"do": "ok"}]'),
    ],
)
def test_a_rollback_is_on_disk_before_anybody_hears_of_it(
    tmp_path: Path, where: str, what: str, step: str
) -> None:
    killed_at(tmp_path, where, what, 1, "ROLLBACK", step)
    outcomes = [content["outcome"] for kind, content in recovered(tmp_path) if kind == "protocol"]
    assert outcomes == ["rolled_back"]


@pytest.mark.parametrize(
    ("where", "what", "outcome", "known"),
    [
        ("before", "settle_with_sends", "kma_died", {"ID:1": 1}),
        ("after", "settle_with_sends", "kma_died", {"ID:1": 1}),
        ("before", "commit", "kma_died", {"ID:1": 1}),
        ("after", "commit", "raised_after_commit", {}),
    ],
)
def test_a_commit_from_within_leaves_one_protocol_of_the_handling(
    tmp_path: Path, where: str, what: str, outcome: str, known: dict[str, int]
) -> None:
    killed_at(tmp_path, where, what, 1, "COMMIT", '[{"do": "acknowledge"}, {"do": "ok"}]')
    (only,) = recovered(tmp_path)
    assert (only[0], only[1]["outcome"], only[1]["exception_type"]) == ("protocol", outcome, "kma died")
    assert not only[1]["counted"]
    file = SpoolFile(tmp_path / "spool.sqlite3")
    assert Spool(file, 10**6).attempts("orders") == known
    file.close()
