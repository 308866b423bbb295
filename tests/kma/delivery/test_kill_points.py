"""kill -9 of the whole container at each line between the end of a handling and its settlement."""

import subprocess
import sys
from pathlib import Path

import pytest

from kma.host.recovery import recover_all
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from tests.kma.fakes import FIGURES, contents

pytestmark = pytest.mark.kill

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from kma.children.pool import ChildPool
from kma.spool.records import Spool
from tests.kma.fakes import FakeLink, Stage, message

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def kill(where, kind, name):
    real = getattr(kind, name)
    def before(self, *args, **more):
        killed()
    def after(self, *args, **more):
        real(self, *args, **more)
        killed()
    setattr(kind, name, {"before": before, "after": after}[where])

where, what, step = sys.argv[2:5]
kill(where, {"append": Spool, "settle": FakeLink, "release": ChildPool}[what], what)
stage = Stage(Path(sys.argv[1]), [message(step, identity="ID:1")])
stage.run.start()
time.sleep(20)
"""


def killed_at(folder: Path, where: str, what: str, step: str) -> None:
    command = [sys.executable, "-c", PROGRAM, str(folder), where, what, step]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9, done.stderr.decode()


@pytest.mark.parametrize(
    ("where", "what", "outcome"),
    [
        ("before", "append", "kma_died"),
        ("after", "append", "raised"),
        ("before", "settle", "raised"),
        ("after", "settle", "raised"),
        ("before", "release", "raised"),
        ("after", "release", "raised"),
    ],
)
def test_a_failed_attempt_has_exactly_one_protocol_wherever_the_container_dies(
    tmp_path: Path, where: str, what: str, outcome: str
) -> None:
    killed_at(tmp_path, where, what, '{"do": "raise"}')
    file = SpoolFile(tmp_path / "spool.sqlite3")
    spool, ledger = Spool(file, 10**6), Ledger(file)
    recover_all(tmp_path, spool, ledger)
    records = [record for record in spool.head(10, 10**6) if record.kind != FIGURES]
    assert [record.content["outcome"] for record in records] == [outcome]
    assert records[0].content["message"]["attempt"] == 1
    (run,) = ledger.unclosed()
    assert run.records == len(spool.head(10, 10**6)), "the closing record counts it once"
    assert spool.attempts("orders") == {"ID:1": 1}, "and so does the next attempt"
    file.close()


@pytest.mark.parametrize(
    ("where", "what"), [("before", "settle"), ("after", "settle"), ("before", "release")]
)
def test_a_handling_that_went_well_never_becomes_a_protocol(tmp_path: Path, where: str, what: str) -> None:
    killed_at(tmp_path, where, what, '{"do": "ok"}')
    file = SpoolFile(tmp_path / "spool.sqlite3")
    spool = Spool(file, 10**6)
    assert recover_all(tmp_path, spool, Ledger(file)).total() == 0
    assert contents(spool) == []
    file.close()
