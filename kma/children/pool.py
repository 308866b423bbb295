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
from kma.children.worker_slot import LONGEST_PAUSE, Ended, Seat
from kma.delivery.credit import LEAST_DEPTH, MOST_DEPTH
from kma.delivery.in_flight import Work
from kma.handling import frames
from kma.handling.failure import failure
from kma.handling.frames import read_question, reply_frame
from kma.handling.handler import Handled
from kma.sdk.job import AgentQuestion, Reply
from kma.spool.journal import ANSWERING, STARTED, Journal

START_SECONDS = 60.0
_STEAL_AFTER = 0.02
SLOTS_PER_CHILD = 2 * MOST_DEPTH
_QUICK = 0.2  # seconds since the last ending, within which quick successes may be untold

_READ, _DIED, _WAKE = range(3)


class Pool:
    """`limit_seconds` 0 = a handling may take for ever."""

    def __init__(self, size: int, journal: Journal, job: bytes, limit_seconds: float, wake: int) -> None:
        self._journal = journal
        self._job = job
        self.limit_seconds = limit_seconds
        self._seats = [Seat(journal) for _ in range(size)]
        self._slots = list(range(journal.slots))
        self._selector = selectors.DefaultSelector()
        self._selector.register(wake, selectors.EVENT_READ, (_WAKE, None))
        self._closing = False
        self._ended_at = 0.0
        self.depth = LEAST_DEPTH
        self.back: deque[Work] = deque()  # messages that no child began: the run hands them out again
        self.asked: deque[AgentQuestion] = deque()  # the run replies, sooner or later
        self.restarts = 0
        self.problem: Reason | None = None

    # -- what the run asks -----------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return any(seat.ready for seat in self._seats)

    @property
    def holding(self) -> int:
        return sum(len(seat.held) for seat in self._seats)

    def under_way(self) -> Iterator[tuple[Work, float]]:
        """What has begun, with its seconds."""
        for seat in self._seats:
            if seat.held and (seconds := seat.seconds):
                yield seat.held[0], seconds

    @property
    def idle(self) -> bool:
        return any(seat.ready and not seat.held and not seat.leaving for seat in self._seats)

    def offer(self, waiting: deque[Work]) -> None:
        """Hands messages to the children that have room, the least loaded first. One that still has half its
        frames is left alone, so that the next write to it carries several."""
        depth = self.depth
        seats = [seat for seat in self._seats if len(seat.held) < LEAST_DEPTH or 2 * len(seat.held) <= depth]
        for load in range(depth):
            for seat in seats:
                if not waiting or not self._slots:
                    break
                if len(seat.held) == load and seat.room(len(waiting[0].encoded), depth):
                    self._hand(seat, waiting.popleft())
        for seat in self._seats:
            if seat.unsent:
                self._send(seat)

    def collect(self, timeout: float) -> list[Ended]:
        """Waits for news at most so long: answers, deaths, or the run's wake descriptor."""
        ended: list[Ended] = []
        for key, mask in self._selector.select(max(0.0, min(timeout, self._patience()))):
            kind, seat = key.data
            if kind == _WAKE or seat.process is None:
                continue
            if kind == _DIED:
                ended += self._died(seat)
                continue
            if mask & selectors.EVENT_WRITE:
                self._flush(seat)
            if mask & selectors.EVENT_READ:
                ended += self._read(seat)
        for seat in self._seats:
            ended += seat.finished()
        now = time.monotonic()
        if ended:
            self._ended_at = now
        self._look_after(now)
        return ended

    def recall(self) -> None:
        """Takes back what waits in children and has not begun."""
        for seat in self._seats:
            self._recall(seat, seat.held[1:] if seat.began else list(seat.held))

    def kill_all(self) -> None:
        """By force: what they were at is given back as if it had not begun."""
        for seat in self._seats:
            if seat.process is not None:
                seat.killed_as = Handled(Outcome.RELEASED)
                seat.process.kill()

    def close(self) -> list[Ended]:
        """Ends every process, the hard way after a moment. The journal can be closed afterwards."""
        self._closing = True
        for seat in self._seats:
            if seat.process is not None:
                seat.process.finish()
        deadline = time.monotonic() + 2.0
        ended: list[Ended] = []
        while any(seat.process is not None for seat in self._seats):
            if time.monotonic() > deadline:
                self.kill_all()
            ended += self.collect(0.1)
        self._selector.close()
        return ended

    # -- handing out -----------------------------------------------------------------------------------------

    def _hand(self, seat: Seat, work: Work) -> None:
        slot = work.slot = self._slots.pop()
        data, content = work.journalled()
        self._journal.claim(slot, work.record, work.attempt, work.count, work.tag, data, content)
        seat.held.append(work)
        seat.unsent.append(frames.message_frame(slot, work.attempt, work.encoded, work.acknowledgement))

    def _send(self, seat: Seat) -> None:
        assert seat.process is not None
        data = seat.unsent[0] if len(seat.unsent) == 1 else b"".join(seat.unsent)
        seat.unsent.clear()
        seat.process.send(data)
        self._watch_writing(seat)

    def _flush(self, seat: Seat) -> None:
        assert seat.process is not None
        seat.process.flush()
        self._watch_writing(seat)

    def _watch_writing(self, seat: Seat) -> None:
        assert seat.process is not None
        if seat.writing != seat.process.busy_writing:
            seat.writing = seat.process.busy_writing
            mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if seat.writing else 0)
            self._selector.modify(seat.process.socket, mask, (_READ, seat))

    # -- answers ---------------------------------------------------------------------------------------------

    def _read(self, seat: Seat) -> list[Ended]:
        assert seat.process is not None
        found, closed = seat.process.read()
        ended = list(self._answers(seat, found))
        if closed and not seat.leaving:
            # It closed the socket and may live on: nothing more can be asked of it.
            seat.leaving = True
            self._selector.unregister(seat.process.socket)
            seat.process.kill()
        return ended

    def _answers(self, seat: Seat, found: list[frames.Frame]) -> Iterator[Ended]:
        for kind, slot, number, content in found:
            yield from seat.finished()  # what succeeded before it ends before it
            if kind == frames.DONE:
                continue
            if kind == frames.READY:
                seat.ready = True
                self.problem = None
            elif kind == frames.PROBLEM:
                details = frames.read_problem(content)
                self.problem = reasons.AGENT_RAISED_AT_START(type=details.exception_type, text=details.text)
                seat.leaving = True
            elif kind == frames.RETIRING:
                self._retire(seat)
            elif kind == frames.SKIPPED:
                self._skipped(seat, slot)
            elif kind == frames.ACKNOWLEDGE:
                if seat.process is not None:
                    question = read_question(content)
                    self.asked.append(AgentQuestion(seat.process.pid, slot, number, question))
            else:
                work = seat.take(slot)
                if work is not None:
                    seat.useful = True
                    failed = kind == frames.FAILED
                    seconds = seat.seconds_of(slot) if failed else 0.0
                    if failed:
                        seat.halted_by = slot
                    pid = seat.process.pid if seat.process is not None else 0
                    yield Ended(work, frames.read_handled(kind, content), pid, seconds)

    def reply(self, asked: AgentQuestion, reply: Reply) -> None:
        """To the process that asked, if it is still there."""
        for seat in self._seats:
            if seat.process is not None and seat.process.pid == asked.pid and not seat.leaving:
                seat.unsent.append(reply_frame(asked.number, reply))
                self._send(seat)

    def _skipped(self, seat: Seat, slot: int) -> None:
        work = seat.take(slot)
        if work is not None:
            self.back.append(work)
        seat.recalled.discard(slot)
        self.release(slot)

    def release(self, slot: int) -> None:
        """The slot's message is settled, or nobody began it. The child whose failure it was goes on: what it
        must not begin any more has to be recalled before."""
        self._journal.free(slot)
        self._slots.append(slot)
        for seat in self._seats:
            if seat.halted_by == slot:
                seat.halted_by = -1
                if seat.process is not None and not seat.leaving:
                    seat.unsent.append(frames.frame(frames.GO_ON))
                    self._send(seat)

    # -- taking back -----------------------------------------------------------------------------------------

    def _recall(self, seat: Seat, works: list[Work]) -> None:
        self.back += seat.recall(works)

    def _retire(self, seat: Seat) -> None:
        """The child asked for it: what waits in it goes to others, and so does its seat."""
        if seat.process is not None and not seat.leaving:
            seat.leaving = True
            seat.process.finish()

    # -- deaths and births -----------------------------------------------------------------------------------

    def _died(self, seat: Seat) -> list[Ended]:
        """Every answer that it wrote still counts; of what it held only the one that had begun is its
        failure."""
        process = seat.process
        assert process is not None
        found: list[frames.Frame] = []
        while True:
            more, closed = process.read()
            found += more
            if closed or not more:
                break
        ended = [*self._answers(seat, found), *seat.finished()]
        for descriptor in (process.socket, process.death):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        seat.process = None
        name = process.reap()
        for work in seat.held:
            # ANSWERING without an answer: nobody knows what it wanted to send, so it counts as not done.
            if self._journal.state(work.slot) in (STARTED, ANSWERING):
                handled = seat.killed_as or Handled(Outcome.CHILD_DIED, failure(name, death_text(name)))
                measured = handled.measured(process.memory_peak)
                ended.append(Ended(work, measured, process.pid, seat.seconds_of(work.slot)))
                seat.useful = True
            else:
                self.release(work.slot)
                self.back.append(work)
        for slot in seat.recalled:
            self.release(slot)
        if not seat.ready and not self.problem and not self._closing:
            self.problem = reasons.PROCESS_ENDED_EARLY(how=name)
        seat.vacate(time.monotonic())
        self.restarts += not self._closing
        return ended

    def _look_after(self, now: float) -> None:
        """Empty seats, starts that hang, handlings over their time, messages stuck behind a long one."""
        for seat in self._seats:
            if seat.process is None:
                if not self._closing and now >= seat.start_at:
                    self._start(seat)
            elif not seat.ready and not seat.leaving and now - seat.process.started_at > START_SECONDS:
                self.problem = reasons.IMPORT_TOO_SLOW(seconds=START_SECONDS)
                seat.process.kill()
            elif self.limit_seconds and seat.held:
                self._check_time(seat)
        if self.idle:
            for seat in self._seats:
                if len(seat.held) > 1 and seat.seconds > _STEAL_AFTER:
                    self._recall(seat, seat.held[1:])

    def _check_time(self, seat: Seat) -> None:
        assert seat.process is not None
        if seat.killed_as is None and seat.seconds > self.limit_seconds:
            text = f"The handling took longer than {self.limit_seconds:g} s; its process was killed."
            seat.killed_as = Handled(Outcome.TIMED_OUT, failure("timeout", text))
            seat.process.kill()

    def _start(self, seat: Seat) -> None:
        try:
            process = ChildProcess(self._journal, self._job)
        except OSError as error:  # no memory, too many processes or open files
            self.problem = reasons.NO_PROCESS(detail=str(error))
            seat.start_at = time.monotonic() + LONGEST_PAUSE / 6
            return
        seat.process = process
        self._selector.register(process.socket, selectors.EVENT_READ, (_READ, seat))
        self._selector.register(process.death, selectors.EVENT_READ, (_DIED, seat))
        self._watch_writing(seat)

    def _patience(self) -> float:
        """Seconds until somebody must be looked after, at most."""
        waits = any(len(seat.held) > 1 for seat in self._seats)
        if waits and (self.idle or time.monotonic() - self._ended_at < _QUICK):
            return _STEAL_AFTER
        if self.limit_seconds:
            return max(0.02, min(0.5, self.limit_seconds / 10))
        return 0.5
