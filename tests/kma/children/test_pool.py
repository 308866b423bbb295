"""Children and their journal, seen by the parent."""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.outcomes import Outcome
from kma.children.pool import ChildPool
from kma.children.worker_slot import HandlingEnd
from kma.delivery.credit import PrefetchWindow
from kma.delivery.in_flight import InFlight
from kma.handling.frames import JOB, json_frame
from kma.run.inbox import RunInbox
from kma.spool.journal import FINISHED, SENT, STARTED, Journal
from tests.kma.fakes import SAMPLES, message

pytestmark = pytest.mark.process


class Bench:
    """A pool without a run around it."""

    def __init__(self, folder: Path, size: int) -> None:
        self.journal = Journal.create(folder / "a.journal", {}, 4 * size)
        self.inbox = RunInbox()
        job = json_frame(JOB, {"agent": "demo.scripted", "modules": SAMPLES, "parameters": {}})
        self.pool = ChildPool(size, self.journal, job, 0, self.inbox.descriptor)
        self.waiting: deque[InFlight] = deque()
        self.ended: list[HandlingEnd] = []
        self.settles = True

    def add(self, step: Any) -> InFlight:
        work = InFlight(len(self.waiting), message(step), 0, 1, os.urandom(16), 0, ())
        self.waiting.append(work)
        return work

    def until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 90
        while not true():
            assert time.monotonic() < deadline
            for one in self.pool.collect(0.01):
                self.ended.append(one)
                if self.settles:
                    self.pool.release(one.work.slot)
            self.waiting.extendleft(self.pool.back)
            self.pool.back.clear()
            self.pool.offer(self.waiting)

    def close(self) -> None:
        self.pool.close()
        self.journal.close()
        self.inbox.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path, 1)
    yield one
    one.close()


def test_a_handling_that_returned_is_finished_before_anybody_is_told(bench: Bench) -> None:
    work = bench.add({"do": "ok"})
    bench.until(lambda: work.slot >= 0)
    deadline = time.monotonic() + 90
    while bench.journal.state(work.slot) != FINISHED:
        assert time.monotonic() < deadline
    assert bench.ended == [] and list(bench.journal.unfinished()) == []


def test_a_handling_that_raised_stays_started_until_its_slot_is_released(bench: Bench) -> None:
    bench.settles = False
    work = bench.add({"do": "raise"})
    bench.until(lambda: len(bench.ended) == 1)
    assert bench.ended[0].handled.outcome is Outcome.RAISED
    assert bench.journal.state(work.slot) == STARTED and len(list(bench.journal.unfinished())) == 1
    bench.pool.release(work.slot)
    assert list(bench.journal.unfinished()) == []


def test_after_a_failure_a_child_begins_nothing_before_the_parent_lets_it_go_on(bench: Bench) -> None:
    """The parent may find that the breaker trips: what waits in the child is then taken back, no attempt
    spent."""
    bench.settles, bench.pool.depth = False, 8
    failing, *behind = (bench.add({"do": what}) for what in ("raise", "ok", "ok"))
    bench.until(lambda: all(work.slot >= 0 for work in behind))
    bench.until(lambda: len(bench.ended) == 1)
    moment = time.monotonic() + 0.3
    bench.until(lambda: time.monotonic() > moment)
    assert [bench.journal.state(work.slot) for work in behind] == [SENT, SENT]
    bench.pool.release(failing.slot)
    bench.until(lambda: len(bench.ended) == 3)
    assert [one.handled.outcome for one in bench.ended[1:]] == [Outcome.RETURNED] * 2


def test_what_succeeded_before_a_failure_ends_before_it(bench: Bench) -> None:
    """Successes are told by the journal, a failure by a frame: the breaker counts them in the order they
    happened."""
    bench.settles, bench.pool.depth = False, 8
    works = [bench.add({"do": what}) for what in ("ok", "ok", "raise")]
    bench.until(lambda: works[-1].slot >= 0)
    deadline = time.monotonic() + 90
    while bench.journal.state(works[-1].slot) != STARTED:
        assert time.monotonic() < deadline
    time.sleep(0.2)  # for its answer to be there, unread
    bench.until(lambda: len(bench.ended) == 3)
    assert [one.work for one in bench.ended] == works


def test_two_small_messages_wait_in_a_child_and_only_one_large(bench: Bench) -> None:
    bench.until(lambda: bench.pool.ready)
    for _ in range(4):
        bench.add({"do": "sleep", "seconds": 0.5})
    bench.pool.offer(bench.waiting)
    assert bench.pool.holding == 2
    bench.until(lambda: len(bench.ended) == 4)
    bench.add({"do": "ok", "note": "x" * 100_000})
    bench.add({"do": "ok"})
    bench.pool.offer(bench.waiting)
    assert bench.pool.holding == 1


def test_slots_are_never_lost(bench: Bench) -> None:
    for turn in range(200):
        bench.add([{"do": "ok"}, {"do": "exit", "code": 1} if turn % 50 == 0 else {"do": "ok"}])
    bench.until(lambda: len(bench.ended) == 200)
    assert bench.pool.restarts == 4


def test_a_message_that_a_child_would_block_on_never_blocks_the_parent(bench: Bench) -> None:
    """Blocked it would wait for ever: the child reads nothing until the parent lets it."""
    bench.add({"do": "ok"})
    bench.until(lambda: len(bench.ended) == 1)
    # Services that other tests of this process have started are its children, too.
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (child,) = [
        int(pid) for pid in pids if b"kma.handling.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(child, signal.SIGSTOP)
    large = bench.add({"do": "ok", "note": "x" * 20_000_000})
    bench.pool.offer(bench.waiting)
    bench.pool.collect(0)
    os.kill(child, signal.SIGCONT)
    bench.until(lambda: len(bench.ended) == 2)
    assert bench.ended[1].work is large and bench.ended[1].handled.outcome is Outcome.RETURNED


def test_the_window_follows_the_rate_and_shrinks_at_once_for_large_messages() -> None:
    window = PrefetchWindow(4, bound_bytes=1_000_000)
    assert window.size == 4
    window.saw(500)
    assert not window.handled(5, now=100.0), "slow handlings: what waits here is kept from other servers"
    assert window.handled(500, now=101.0) and window.size == 400
    assert not window.handled(1000, now=101.1), "not looked at for every message"
    assert window.saw(100_000) and window.size == 10
    assert window.saw(20_000_000) and window.size == 4, "each child has one"
    for _ in range(2000):
        window.saw(500)
    assert window.size == 400
    assert window.handled(1, now=2000.0) and window.size == 4
