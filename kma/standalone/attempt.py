"""The parent's side of one start of a standalone agent: its process, how it ends, and when it must be
ended."""

import select
import signal
import time
from contextlib import suppress

from contract.outcomes import Outcome
from kma.children.process import ChildProcess, death_text
from kma.delivery.outbox import StandaloneOutbox
from kma.handling import frames
from kma.handling.failure import failure
from kma.handling.frames import SEND
from kma.handling.handler import RETURNED, HandlingResult
from kma.spool.journal import FINISHED, STARTED, Journal
from kma.standalone.lease import Lease, boottime_ns

ENTRY = "kma.standalone.child"
SLOT = 0
_BEGIN_SECONDS = 60.0  # for a process to come as far as user code
# A signal that comes between Python's last look for one and a system call that blocks wakes nobody: it is
# sent again, each time after twice as long.
_AGAIN_SECONDS = 0.5
_LINGER_SECONDS = 2.0  # for a process to end once it has said how its agent ended

STOPPED = HandlingResult(Outcome.RELEASED)


class StandaloneAttempt:
    """Belongs to the run's thread. `killed_as`: what a death by our own hand means."""

    def __init__(self, journal: Journal, lease: Lease, job: bytes, outbox: StandaloneOutbox) -> None:
        self._journal = journal
        self._lease = lease
        self._outbox = outbox
        self._process = ChildProcess(journal, job, ENTRY)
        self._open = True
        self._answer: HandlingResult | None = None
        self._leave_by = float("inf")
        self._ask_again_at = float("inf")
        self._ask_again_after = _AGAIN_SECONDS
        self.killed_as: HandlingResult | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def began(self) -> bool:
        return self._journal.state(SLOT) in (STARTED, FINISHED)

    @property
    def seconds(self) -> float:
        """Since `run_agent` began, 0 while it has not."""
        began = self._journal.started(SLOT)
        return time.monotonic() - began if began is not None else 0.0

    def watch(self, poll: select.poll) -> None:
        poll.register(self._process.death, select.POLLIN)
        if self._open:
            poll.register(self._process.socket, select.POLLIN)

    @property
    def dead(self) -> bool:
        poll = select.poll()
        poll.register(self._process.death, select.POLLIN)
        return bool(poll.poll(0))

    def read(self) -> None:
        """What the process says, and what the broker says to it."""
        for answer in self._outbox.answers():
            self._process.send(answer)
        self._process.flush()
        while self._open:
            found, closed = self._process.read()
            self._open = not closed
            for kind, _slot, number, content in found:
                if kind == SEND:
                    self._send(number, content)
                elif kind == frames.FAILED:
                    self._answer = frames.read_handled(kind, content)
                    self._leave_by = time.monotonic() + _LINGER_SECONDS
            if not found:
                return

    def _send(self, number: int, content: bytes) -> None:
        # This process may have been stopped for long: another server may be at work by now.
        if not self._lease.lapsed and not self._lease.over(boottime_ns()):
            self._outbox.put(number, content)

    def ask_to_stop(self) -> None:
        """The flag is in the journal already; the signal wakes the agent's main thread. One too many does
        nothing."""
        self._ask_again_at = time.monotonic() + self._ask_again_after
        self._ask_again_after *= 2
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process.death, signal.SIGTERM)

    def look_after(self, limit_seconds: float) -> None:
        """Ends what is over its time. `limit_seconds` 0 = none."""
        now = time.monotonic()
        if now > self._ask_again_at:
            self.ask_to_stop()
        if self._lease.over(boottime_ns()):
            self.lapse()
        elif limit_seconds and self.killed_as is None and self.seconds > limit_seconds:
            text = f"The agent ran longer than {limit_seconds:g} s; the process was killed."
            self.kill(HandlingResult(Outcome.TIMED_OUT, failure("timeout", text)))
        elif not self.began and now - self._process.started_at > _BEGIN_SECONDS:
            self.kill(STOPPED)
        elif self._journal.state(SLOT) == FINISHED and self._leave_by == float("inf"):
            self._leave_by = now + _LINGER_SECONDS
        elif now > self._leave_by:
            self._process.kill()

    def lapse(self) -> None:
        """Its lease is over: it ends as if it had looked itself, and what it sent since goes nowhere."""
        self._lease.lapse()
        self._process.kill()

    def kill(self, meaning: HandlingResult) -> None:
        self.killed_as = self.killed_as or meaning
        self._process.kill()

    def end(self) -> tuple[HandlingResult | None, float]:
        """After its death: how the agent's run ended, and after how many seconds. None: it never began, or
        its lease was over; nothing is known of it. What it left running in its group ends with it."""
        seconds = self.seconds
        self.read()
        self._process.kill()
        name = self._process.reap()
        self._outbox.forget()
        return self._ending(name), seconds

    def abandon(self) -> None:
        """By force, whatever it is at."""
        self._process.kill()
        while not self.dead:
            time.sleep(0.01)
        self.end()

    def _ending(self, name: str) -> HandlingResult | None:
        if self._answer is not None:
            return self._answer
        state = self._journal.state(SLOT)
        if state == FINISHED:
            return RETURNED
        if state != STARTED or self._lease.lapsed:
            return None
        if self.killed_as is not None:
            return self.killed_as.measured(self._process.memory_peak)
        if name == "signal:SIGKILL" and self._lease.over(boottime_ns()):
            return None  # the kernel's timer, while the process itself could not look
        text = death_text(name, "the agent ran")
        if name == "signal:SIGKILL" and self._lease.deadline_ns:
            text += " A long call in C may have blocked the renewal of its lease: split such calls."
        return HandlingResult(Outcome.CHILD_DIED, failure(name, text)).measured(self._process.memory_peak)
