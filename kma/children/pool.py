"""The child processes of one run: who holds which message, who died of what, who comes back when.

Belongs to the run's thread alone. A child holds one frame, and some more if they are small and handlings are
quick, so that it need not wait for the parent between messages; what waits behind a long handling is taken
back as soon as another child is idle.
"""

import selectors
import time
from collections import deque
from collections.abc import Iterator

from contract import reasons
from contract.outcomes import Outcome
from contract.reasons import Reason
from kma.children.process import ChildProcess, death_text
from kma.children.worker_slot import LONGEST_PAUSE, HandlingEnd, WorkerSlot
from kma.delivery.credit import LEAST_DEPTH, MOST_DEPTH
from kma.delivery.in_flight import InFlight
from kma.handling import frames
from kma.handling.failure import failure
from kma.handling.frames import read_question, reply_frame
from kma.handling.handler import HandlingResult
from kma.sdk.job import AgentQuestion, Reply
from kma.spool.journal import ANSWERING, STARTED, Journal

START_SECONDS = 60.0
_STEAL_AFTER = 0.02
SLOTS_PER_CHILD = 2 * MOST_DEPTH
_QUICK = 0.2  # seconds since the last ending, within which quick successes may be untold

_READ, _DIED, _WAKE = range(3)


class ChildPool:
    """`limit_seconds` 0 = a handling may take for ever."""

    def __init__(self, size: int, journal: Journal, job: bytes, limit_seconds: float, wake: int) -> None:
        self._journal = journal
        self._job = job
        self.limit_seconds = limit_seconds
        self._workers = [WorkerSlot(journal) for _ in range(size)]
        self._slots = list(range(journal.slots))
        self._selector = selectors.DefaultSelector()
        self._selector.register(wake, selectors.EVENT_READ, (_WAKE, None))
        self._closing = False
        self._ended_at = 0.0
        self.depth = LEAST_DEPTH
        self.back: deque[InFlight] = deque()  # messages that no child began: the run hands them out again
        self.asked: deque[AgentQuestion] = deque()  # the run replies, sooner or later
        self.restarts = 0
        self.problem: Reason | None = None

    # -- what the run asks -----------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return any(worker.ready for worker in self._workers)

    @property
    def ready_processes(self) -> int:
        return sum(worker.ready for worker in self._workers)

    @property
    def holding(self) -> int:
        return sum(len(worker.held) for worker in self._workers)

    def processes(self) -> list[int]:
        """Their pids."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    def under_way(self) -> Iterator[tuple[InFlight, float]]:
        """What has begun, with its seconds."""
        for worker in self._workers:
            if worker.held and (seconds := worker.seconds):
                yield worker.held[0], seconds

    @property
    def idle(self) -> bool:
        return any(worker.ready and not worker.held and not worker.leaving for worker in self._workers)

    def offer(self, waiting: deque[InFlight]) -> None:
        """Hands messages to the children that have room, the least loaded first. One that still has half its
        frames is left alone, so that the next write to it carries several."""
        depth = self.depth
        workers = [
            worker
            for worker in self._workers
            if len(worker.held) < LEAST_DEPTH or 2 * len(worker.held) <= depth
        ]
        for load in range(depth):
            for worker in workers:
                if not waiting or not self._slots:
                    break
                if len(worker.held) == load and worker.room(len(waiting[0].encoded), depth):
                    self._hand(worker, waiting.popleft())
        for worker in self._workers:
            if worker.unsent:
                self._send(worker)

    def collect(self, timeout: float) -> list[HandlingEnd]:
        """Waits for news at most so long: answers, deaths, or the run's wake descriptor."""
        ended: list[HandlingEnd] = []
        for key, mask in self._selector.select(max(0.0, min(timeout, self._seconds_until_due()))):
            kind, worker = key.data
            if kind == _WAKE or worker.process is None:
                continue
            if kind == _DIED:
                ended += self._died(worker)
                continue
            if mask & selectors.EVENT_WRITE:
                self._flush(worker)
            if mask & selectors.EVENT_READ:
                ended += self._read(worker)
        for worker in self._workers:
            ended += worker.finished()
        now = time.monotonic()
        if ended:
            self._ended_at = now
        self._look_after(now)
        return ended

    def recall(self) -> None:
        """Takes back what waits in children and has not begun."""
        for worker in self._workers:
            self._recall(worker, worker.held[1:] if worker.began else list(worker.held))

    def kill_all(self) -> None:
        """By force: what they were at is given back as if it had not begun."""
        for worker in self._workers:
            if worker.process is not None:
                worker.killed_as = HandlingResult(Outcome.RELEASED)
                worker.process.kill()

    def close(self) -> list[HandlingEnd]:
        """Ends every process, the hard way after a moment. The journal can be closed afterwards."""
        self._closing = True
        for worker in self._workers:
            if worker.process is not None:
                worker.process.finish()
        deadline = time.monotonic() + 2.0
        ended: list[HandlingEnd] = []
        while any(worker.process is not None for worker in self._workers):
            if time.monotonic() > deadline:
                self.kill_all()
            ended += self.collect(0.1)
        self._selector.close()
        return ended

    # -- handing out -----------------------------------------------------------------------------------------

    def _hand(self, worker: WorkerSlot, work: InFlight) -> None:
        slot = work.slot = self._slots.pop()
        data, content = work.journalled()
        self._journal.claim(slot, work.record, work.attempt, work.count, work.tag, data, content)
        worker.held.append(work)
        worker.unsent.append(frames.message_frame(slot, work.attempt, work.encoded, work.acknowledgement))

    def _send(self, worker: WorkerSlot) -> None:
        assert worker.process is not None
        data = worker.unsent[0] if len(worker.unsent) == 1 else b"".join(worker.unsent)
        worker.unsent.clear()
        worker.process.send(data)
        self._watch_writing(worker)

    def _flush(self, worker: WorkerSlot) -> None:
        assert worker.process is not None
        worker.process.flush()
        self._watch_writing(worker)

    def _watch_writing(self, worker: WorkerSlot) -> None:
        assert worker.process is not None
        if worker.writing != worker.process.busy_writing:
            worker.writing = worker.process.busy_writing
            mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.writing else 0)
            self._selector.modify(worker.process.socket, mask, (_READ, worker))

    # -- answers ---------------------------------------------------------------------------------------------

    def _read(self, worker: WorkerSlot) -> list[HandlingEnd]:
        assert worker.process is not None
        found, closed = worker.process.read()
        ended = list(self._answers(worker, found))
        if closed and not worker.leaving:
            # It closed the socket and may live on: nothing more can be asked of it.
            worker.leaving = True
            self._selector.unregister(worker.process.socket)
            worker.process.kill()
        return ended

    def _answers(self, worker: WorkerSlot, found: list[frames.Frame]) -> Iterator[HandlingEnd]:
        for kind, slot, number, content in found:
            yield from worker.finished()  # what succeeded before it ends before it
            if kind == frames.DONE:
                continue
            if kind == frames.READY:
                worker.ready = True
                self.problem = None
            elif kind == frames.PROBLEM:
                details = frames.read_problem(content)
                self.problem = reasons.AGENT_RAISED_AT_START(type=details.exception_type, text=details.text)
                worker.leaving = True
            elif kind == frames.RETIRING:
                self._retire(worker)
            elif kind == frames.RECALLED:
                self._skipped(worker, slot)
            elif kind == frames.ACKNOWLEDGE:
                if worker.process is not None:
                    question = read_question(content)
                    self.asked.append(AgentQuestion(worker.process.pid, slot, number, question))
            elif (work := worker.take(slot)) is not None:
                yield self._end_of(work, worker, kind, slot, content)

    def _end_of(
        self, work: InFlight, worker: WorkerSlot, kind: int, slot: int, content: bytes
    ) -> HandlingEnd:
        worker.useful = True
        failed = kind == frames.FAILED
        seconds = worker.seconds_of(slot) if failed else 0.0
        if failed:
            worker.halted_by = slot
        pid = worker.process.pid if worker.process is not None else 0
        return HandlingEnd(work, frames.read_handled(kind, content), pid, seconds)

    def reply(self, asked: AgentQuestion, reply: Reply) -> None:
        """To the process that asked, if it is still there."""
        for worker in self._workers:
            if worker.process is not None and worker.process.pid == asked.pid and not worker.leaving:
                worker.unsent.append(reply_frame(asked.number, reply))
                self._send(worker)

    def _skipped(self, worker: WorkerSlot, slot: int) -> None:
        work = worker.take(slot)
        if work is not None:
            self.back.append(work)
        worker.recalled.discard(slot)
        self.release(slot)

    def release(self, slot: int) -> None:
        """The slot's message is settled, or nobody began it. The child whose failure it was goes on: what it
        must not begin any more has to be recalled before."""
        self._journal.free(slot)
        self._slots.append(slot)
        for worker in self._workers:
            if worker.halted_by == slot:
                worker.halted_by = -1
                if worker.process is not None and not worker.leaving:
                    worker.unsent.append(frames.frame(frames.RESUME))
                    self._send(worker)

    # -- taking back -----------------------------------------------------------------------------------------

    def _recall(self, worker: WorkerSlot, works: list[InFlight]) -> None:
        self.back += worker.recall(works)

    def _retire(self, worker: WorkerSlot) -> None:
        """The child asked for it: what waits in it goes to others, and so does its seat."""
        if worker.process is not None and not worker.leaving:
            worker.leaving = True
            worker.process.finish()

    # -- deaths and births -----------------------------------------------------------------------------------

    def _died(self, worker: WorkerSlot) -> list[HandlingEnd]:
        """Every answer that it wrote still counts; of what it held only the one that had begun is its
        failure."""
        process = worker.process
        assert process is not None
        found: list[frames.Frame] = []
        while True:
            more, closed = process.read()
            found += more
            if closed or not more:
                break
        ended = [*self._answers(worker, found), *worker.finished()]
        for descriptor in (process.socket, process.death):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        worker.process = None
        name = process.reap()
        for work in worker.held:
            # ANSWERING without an answer: nobody knows what it wanted to send, so it counts as not done.
            if self._journal.state(work.slot) in (STARTED, ANSWERING):
                handled = worker.killed_as or HandlingResult(
                    Outcome.CHILD_DIED, failure(name, death_text(name))
                )
                if handled.outcome is not Outcome.RELEASED:
                    self._journal.fail(work.slot)
                measured = handled.measured(process.memory_peak)
                ended.append(HandlingEnd(work, measured, process.pid, worker.seconds_of(work.slot)))
                worker.useful = True
            else:
                self.release(work.slot)
                self.back.append(work)
        for slot in worker.recalled:
            self.release(slot)
        if not worker.ready and not self.problem and not self._closing:
            self.problem = reasons.PROCESS_ENDED_EARLY(how=name)
        worker.vacate(time.monotonic())
        self.restarts += not self._closing
        return ended

    def _look_after(self, now: float) -> None:
        """Empty seats, starts that hang, handlings over their time, messages stuck behind a long one."""
        for worker in self._workers:
            if worker.process is None:
                if not self._closing and now >= worker.start_at:
                    self._start(worker)
            elif not worker.ready and not worker.leaving and now - worker.process.started_at > START_SECONDS:
                self.problem = reasons.IMPORT_TOO_SLOW(seconds=START_SECONDS)
                worker.process.kill()
            elif self.limit_seconds and worker.held:
                self._check_time(worker)
        if self.idle:
            for worker in self._workers:
                if len(worker.held) > 1 and worker.seconds > _STEAL_AFTER:
                    self._recall(worker, worker.held[1:])

    def _check_time(self, worker: WorkerSlot) -> None:
        assert worker.process is not None
        if worker.killed_as is None and worker.seconds > self.limit_seconds:
            text = f"Processing took longer than {self.limit_seconds:g} s; the process was killed."
            worker.killed_as = HandlingResult(Outcome.TIMED_OUT, failure("timeout", text))
            worker.process.kill()

    def _start(self, worker: WorkerSlot) -> None:
        try:
            process = ChildProcess(self._journal, self._job)
        except OSError as error:  # no memory, too many processes or open files
            self.problem = reasons.NO_PROCESS(detail=str(error))
            worker.start_at = time.monotonic() + LONGEST_PAUSE / 6
            return
        worker.process = process
        self._selector.register(process.socket, selectors.EVENT_READ, (_READ, worker))
        self._selector.register(process.death, selectors.EVENT_READ, (_DIED, worker))
        self._watch_writing(worker)

    def _seconds_until_due(self) -> float:
        """Seconds until somebody must be looked after, at most."""
        waits = any(len(worker.held) > 1 for worker in self._workers)
        if waits and (self.idle or time.monotonic() - self._ended_at < _QUICK):
            return _STEAL_AFTER
        if self.limit_seconds:
            return max(0.02, min(0.5, self.limit_seconds / 10))
        return 0.5
