"""The process that runs user code: `python -m kma.handling.child SOCKET JOURNAL PARENT`, two descriptors
and the parent's pid.

Imports neither Celery, Proton nor Django, and structlog only when an agent logs: it is ready in well under
0.3 s.

An agent's answer to a delivery travels from here to the run as `frames.ACKNOWLEDGE`, the run's reply comes
back as `frames.ACKNOWLEDGED`, both with the number of the question.
"""

import ctypes
import faulthandler
import json
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from contract.outcomes import Outcome
from kma.handling import frames
from kma.handling.failure import describe, may_end_this_process
from kma.handling.frames import question_frame
from kma.handling.handler import Handler, HandlingResult, load
from kma.sdk.job import NOT_YET, JobSpec, Question, Reply
from kma.spool.journal import Journal

_CHUNK = 256 * 1024


class FrameReader:
    """The frames that reach a child process. `before_waiting` is called when it has nothing left and would
    wait."""

    def __init__(self, link: socket.socket, before_waiting: Callable[[], None]) -> None:
        self._link = link
        self._before_waiting = before_waiting
        self._reader = frames.Frames()
        self._ready: deque[frames.Frame] = deque()

    def next(self, seconds: float | None = None) -> frames.Frame | None:
        """The next frame; None when the parent closed its end or is gone. Raises TimeoutError after so many
        seconds."""
        ready = self._ready
        while not ready:
            self._before_waiting()
            if seconds is not None:
                self._wait(seconds)
            data = self._link.recv(_CHUNK)
            if not data:
                return None
            ready.extend(self._reader.feed(data))
        return ready.popleft()

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        if not poll.poll(max(0.0, seconds) * 1000):
            raise TimeoutError


class QuestionChannel:
    """Asks the parent from within a handling, from any thread of the agent. Frames that come meanwhile and
    are no reply go to `ahead`."""

    def __init__(self, link: socket.socket, incoming: FrameReader, ahead: deque[frames.Frame]) -> None:
        self._link = link
        self._incoming = incoming
        self._ahead = ahead
        self._number = 0
        self._lock = threading.Lock()
        self._slot = -1

    def begin(self, slot: int) -> None:
        self._slot = slot

    def end(self) -> None:
        """The handling is over: whoever still waits for a reply is waited for, nobody asks from now on."""
        with self._lock:
            self._slot = -1

    def ask(self, question: Question) -> Reply:
        """Raises RuntimeError when no handling is under way: another thread than its own asks too late."""
        with self._lock:
            if self._slot < 0:
                raise RuntimeError("processing has ended: answer through the REST interface of the MA")
            self._number += 1
            deadline = time.monotonic() + question.seconds
            self._link.sendall(question_frame(self._slot, self._number, question))
            while True:
                try:
                    frame = self._incoming.next(deadline - time.monotonic())
                except TimeoutError:
                    return Reply("", NOT_YET, temporary=True, taken=True)
                if frame is None:
                    return Reply("", "The KMA has ended.", temporary=True, taken=True)
                kind, _slot, number, content = frame
                if kind != frames.ACKNOWLEDGED:
                    self._ahead.append(frame)
                elif number == self._number:
                    return Reply(**json.loads(content))


_PR_SET_PDEATHSIG = 1
_PAGE = resource.getpagesize()
_DONE = frames.frame(frames.DONE)
# Seconds. Quick handlings are told together: waking the parent for each costs more than the handling.
_TELL_AFTER = 0.005


def main(arguments: list[str]) -> int:
    link, journal_file, parent = (int(argument) for argument in arguments)
    die_with(parent)
    keep_output_apart()
    child = Child(socket.socket(fileno=link), Journal.attach(journal_file))
    return child.run()


def die_with(parent: int) -> None:
    """The kernel kills this process with its parent's thread; end now if that happened before we could ask
    for it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def keep_output_apart() -> None:
    """What user code prints goes to the log, not where the container's parent writes; nothing can read its
    input."""
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIOWrapper at this point
    faulthandler.enable()
    may_end_this_process()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the parent's business


class Child:
    """One process: a job first, then messages until the parent closes the socket."""

    def __init__(self, link: socket.socket, journal: Journal) -> None:
        self._link = link
        self._journal = journal
        self._pid = os.getpid()
        self._memory = -1
        self._untold = False
        self._told_at = 0.0
        # Frames until the parent closes its end or dies; it hears of what was done before this waits for
        # more.
        self._incoming = FrameReader(link, self._tell_untold)
        self._ahead: deque[frames.Frame] = deque()  # came before their turn
        self._questions = QuestionChannel(link, self._incoming, self._ahead)
        for file in (link.fileno(), journal.file):
            os.set_inheritable(file, False)  # not for what user code starts

    def run(self) -> int:
        job = self._job()
        if job is None:
            return 0
        try:
            handler = self._handler(job)
        except BaseException as error:
            return self._give_up(error)
        self._link.sendall(frames.frame(frames.READY))
        return self._work(handler, job)

    def _tell_untold(self) -> None:
        if self._untold:
            self._tell()

    def _tell(self) -> None:
        self._untold = False
        self._told_at = time.monotonic()
        self._link.sendall(_DONE)

    def _job(self) -> JobSpec | None:
        while (received := self._incoming.next()) is not None:
            kind, _slot, _number, content = received
            if kind == frames.JOB:
                values = json.loads(content)
                values["modules"] = tuple(values["modules"])
                return replace(
                    JobSpec(**values), stopping=self._journal.asked_to_stop, ask=self._questions.ask
                )
        return None

    def _handler(self, job: JobSpec) -> Handler:
        registered = load(job.agent, job.modules)
        if job.memory_bytes:
            self._memory = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return Handler(registered, job)

    def _work(self, handler: Handler, job: JobSpec) -> int:
        begin, send = self._journal.begin, self._link.sendall
        retiring = halted = False
        questions = self._questions
        while (received := self._next(halted)) is not None:
            kind, slot, attempt, content = received
            if kind == frames.RESUME:
                halted = False
                continue
            acknowledgement, encoded = frames.read_message(kind, content)
            if retiring or not begin(slot, self._pid, len(encoded)):
                send(frames.frame(frames.RECALLED, slot))
                continue
            questions.begin(slot)
            handled = handler.handle(encoded, attempt, acknowledgement)
            if os.getpid() != self._pid:
                # User code forked and came back twice: the twin must not go on with the next message.
                os._exit(0)
            questions.end()
            failed = handled.outcome is not Outcome.RETURNED
            self._answer(slot, handled, handler, failed=failed)
            retiring = (failed and job.isolate) or self._is_too_large(job)
            if retiring:
                send(frames.frame(frames.RETIRING))
            elif failed:
                try:
                    handler.renew()
                except BaseException as error:
                    return self._give_up(error)
                halted = True
        return 0

    def _answer(self, slot: int, handled: HandlingResult, handler: Handler, *, failed: bool) -> None:
        now = 0.0
        if not failed:
            # Before the answer: an answer that the parent never reads leaves no false `kma died`.
            now = self._journal.finish(slot, handler.since_sent(), answering=bool(handled.sends))
        if failed or handled.sends:
            self._link.sendall(frames.handled_frame(slot, handled))
        elif now - self._told_at > _TELL_AFTER:
            self._tell()
        else:
            self._untold = True

    def _next(self, halted: bool) -> frames.Frame | None:
        """The next frame, None at the end. While `halted` messages that come before RESUME are kept for
        later."""
        if not halted and self._ahead:
            return self._ahead.popleft()
        while (frame := self._incoming.next()) is not None:
            if frame[0] == frames.ACKNOWLEDGED:
                continue  # who asked waits no longer
            if not halted or frame[0] == frames.RESUME:
                return frame
            self._ahead.append(frame)
        return None

    def _is_too_large(self, job: JobSpec) -> bool:
        return job.memory_bytes > 0 and self._resident() > job.memory_bytes

    def _resident(self) -> int:
        return int(os.pread(self._memory, 100, 0).split()[1]) * _PAGE

    def _give_up(self, error: BaseException) -> int:
        """The agent cannot be imported or made: no message is to blame, so none pays with an attempt."""
        described = describe(error)
        self._link.sendall(frames.json_frame(frames.PROBLEM, described.as_json()))
        return 1


def run_and_leave(main: Callable[[list[str]], int]) -> None:
    """Leaves without the interpreter's shutdown: threads of user code must not keep the process."""
    code = 1
    try:
        code = main(sys.argv[1:])
    except (BrokenPipeError, ConnectionResetError):
        code = 0  # the parent is gone
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run_and_leave(main)
