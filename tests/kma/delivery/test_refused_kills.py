"""kill -9 of the whole container after a handling returned well and the broker has not taken what it sent, or
has not committed its message: the attempt has failed all the same."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contract.messages import Mode
from kma.host.recovery import recover_all
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from tests.kma.fakes import FIGURES, contents

pytestmark = pytest.mark.kill

# The broker answers a transaction when the handling is over and the run knows it.
PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from broker.port import AddressUnknown
from contract.messages import Mode
from contract.records import Protocol
from kma.children.pool import ChildPool
from kma.spool.journal import Journal
from kma.spool.minute import OpenMinute
from kma.spool.records import Spool
from tests.kma.fakes import FakeLink, Stage, eventually, message

mode, answer, step, where, what = sys.argv[2:7]
kind = {"fail": Journal, "count": OpenMinute, "append": Spool, "settle": FakeLink,
        "release": ChildPool}[what]
real = getattr(kind, what)

def killing(self, *args, **more):
    if what == "append" and not any(isinstance(new.content, Protocol) for new in args[0]):
        return real(self, *args, **more)
    if what == "count" and answer in ("refuse", "accept") and not answered.is_set():
        return real(self, *args, **more)
    if where == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, *args, **more)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(kind, what, killing)
taken, answered = FakeLink.settle_with_sends, threading.Event()

def later(self, tag, sends, *, may_share=False):
    def work():
        eventually(lambda: not stage.run.report().in_progress, "an end")
        answered.set()
        taken(self, tag, sends)
    threading.Thread(target=work, daemon=True).start()

if answer in ("refuse", "accept"):
    FakeLink.settle_with_sends = later
stage = Stage(Path(sys.argv[1]), [], mode=Mode(mode), acknowledgement_secret="5e" * 32,
              modules=("impatient_agent",), agent="test.impatient")
if answer == "unpublished":
    stage.refuse_published = AddressUnknown("the address takes nothing")
stage.run.start()
stage.link.refuse_sends = "the address takes nothing" if answer == "refuse" else ""
stage.link.put(message(step, identity="ID:1"))
time.sleep(20)
"""
# It goes on where no answer has come, and dies where it is to say what it has sent.
AGENT = """
import os, signal
from contextlib import suppress
from kma.agent import Agent, TemporaryUnavailable, agent
from kma.samples.scripted import act, steps_of
from kma.spool.journal import Journal

finish = Journal.finish

def finish_and_die(self, slot, *args, **more):
    finish(self, slot, *args, **more)
    os.kill(os.getpid(), signal.SIGKILL)

@agent("test.impatient")
class Impatient(Agent):
    def run_agent(self, message, context):
        for step in steps_of(message.json()):
            if step["do"] == "die":
                Journal.finish = finish_and_die
            else:
                with suppress(TemporaryUnavailable):
                    act(step)(step, context)
"""
SEND = '{"do": "send", "destination": "demo.invoices"}'
DIE = f'[{SEND}, {{"do": "die"}}]'
COMMIT, WAITS = '{"do": "acknowledge", "timeout": 0.05}', '{"do": "acknowledge"}'
RAISE = '{"do": "raise"}'


def killed_at(folder: Path, mode: Mode, answer: str, step: str, where: str, what: str) -> None:
    (folder / "impatient_agent.py").write_text(AGENT)
    command = [sys.executable, "-c", PROGRAM, str(folder), mode.value, answer, step, where, what]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -9, done.stderr.decode()


def recovered(folder: Path) -> tuple[list[str], dict[str, int], dict[str, int]]:
    """Outcomes of the protocols, sums of the figures, known attempts, after two starts: the second finds
    nothing more to do."""
    for _ in range(2):
        file = SpoolFile(folder / "spool.sqlite3")
        spool, ledger = Spool(file, 10**6), Ledger(file)
        recover_all(folder, spool, ledger)
        (run,) = ledger.unclosed()
        assert run.records == len(spool.head(10, 10**6)), "the closing record counts each once"
        outcomes = [protocol["outcome"] for protocol in contents(spool, "protocol")]
        assert run.totals.failed == len(outcomes)
        figures, known = _sums(contents(spool, FIGURES)), spool.attempts("orders")
        file.close()
    return outcomes, figures, known


def _sums(figures: list[dict[str, Any]]) -> dict[str, int]:
    names = ("succeeded", "failed", "temporary")
    return {name: total for name in names if (total := sum(each[name] for each in figures))}


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.TRANSACTED])
@pytest.mark.parametrize(
    ("where", "what", "outcome"),
    [
        ("after", "fail", "kma_died"),
        ("before", "count", "kma_died"),
        ("after", "count", "kma_died"),
        ("before", "append", "kma_died"),
        ("after", "append", "raised"),
        ("before", "settle", "raised"),
        ("after", "settle", "raised"),
        ("before", "release", "raised"),
        ("after", "release", "raised"),
    ],
)
def test_what_the_broker_did_not_commit_has_exactly_one_protocol(
    tmp_path: Path, mode: Mode, where: str, what: str, outcome: str
) -> None:
    killed_at(tmp_path, mode, "refuse", SEND, where, what)
    assert recovered(tmp_path) == ([outcome], {"failed": 1}, {"ID:1": 1})


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.TRANSACTED])
@pytest.mark.parametrize(
    ("answer", "where", "what"),
    [("refuse", "before", "fail"), ("accept", "before", "count"), ("accept", "after", "count")],
)
def test_before_the_word_of_the_broker_is_heeded_what_returned_has_not_failed(
    tmp_path: Path, mode: Mode, answer: str, where: str, what: str
) -> None:
    killed_at(tmp_path, mode, answer, SEND, where, what)
    assert recovered(tmp_path) == ([], {"succeeded": 1}, {})


@pytest.mark.parametrize(
    ("where", "what", "outcome"),
    [
        ("after", "fail", "kma_died"),
        ("after", "count", "kma_died"),
        ("before", "append", "kma_died"),
        ("after", "append", "child_died"),
    ],
)
def test_so_has_what_died_before_it_said_what_it_had_sent(
    tmp_path: Path, where: str, what: str, outcome: str
) -> None:
    killed_at(tmp_path, Mode.AUTO, "", DIE, where, what)
    assert recovered(tmp_path) == ([outcome], {"failed": 1}, {"ID:1": 1})


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(
    ("answer", "step", "before", "after"),
    [
        ("refuse", COMMIT, "kma_died", "raised"),
        ("refuse", f"[{COMMIT}, {SEND}]", "kma_died", "raised"),
        ("refuse", f"[{COMMIT}, {RAISE}]", "kma_died", "raised"),
        ("accept", f"[{COMMIT}, {RAISE}]", "raised_after_commit", "raised_after_commit"),
        ("unpublished", SEND, "kma_died", "raised"),
        ("unpublished", f"[{WAITS}, {SEND}]", "raised_after_commit", "raised_after_commit"),
        ("", DIE, "kma_died", "child_died"),
    ],
)
def test_a_delivery_whose_end_the_broker_decides_has_exactly_one_protocol(
    tmp_path: Path, answer: str, step: str, where: str, before: str, after: str
) -> None:
    """Figures count its handling, which may have gone well. Of what is committed no attempt is known."""
    killed_at(tmp_path, Mode.CLIENT, answer, step, where, "append")
    outcomes, figures, attempts = recovered(tmp_path)
    outcome = before if where == "before" else after
    known = {} if outcome == "raised_after_commit" else {"ID:1": 1}
    assert (outcomes, sum(figures.values()), attempts) == ([outcome], 1, known)
