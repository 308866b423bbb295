"""The process of a standalone agent: `python -m kma.standalone.child SOCKET JOURNAL PARENT`, as
`kma.handling.child` is started.

One job, one `run_agent`, and out. A success is told by the journal's slot alone, before the process ends.
"""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from queue import SimpleQueue

from contract.outcomes import Outcome
from kma.handling import frames
from kma.handling.child import die_with, keep_output_apart, run_and_leave
from kma.handling.frames import SendReply, read_answer, send_frame
from kma.handling.handler import load
from kma.sdk.context import StandaloneContext
from kma.sdk.errors import SendRefused, TemporaryUnavailable
from kma.sdk.job import JobSpec
from kma.spool.journal import Journal
from kma.standalone.lease import Lease, LeaseWatchdog
from kma.standalone.run_agent import StopSignal, run_once

SLOT = 0
_CHUNK = 256 * 1024


def main(arguments: list[str]) -> int:
    link, journal_file, parent = (int(argument) for argument in arguments)
    die_with(parent)
    keep_output_apart()
    journal = Journal.attach(journal_file)
    stop_signal = StopSignal(journal.asked_to_stop)
    signal.signal(signal.SIGTERM, stop_signal.signalled)
    sys.unraisablehook = stop_signal.unraisable
    return run(socket.socket(fileno=link), journal, stop_signal)


def run(link: socket.socket, journal: Journal, stop_signal: StopSignal) -> int:
    """Killed before `begin`: nobody began. After it and before `finish`: the run failed (`kma died` if the
    parent went too). After `finish`: it returned, whoever is killed then."""
    received = _frames(link)
    job = _job(received, journal)
    if job is None:
        return 0
    for file in (link.fileno(), journal.file):
        os.set_inheritable(file, False)  # not for what user code starts
    pid = os.getpid()
    LeaseWatchdog(Lease(journal.file)).start()
    journal.begin(SLOT, pid)
    context = StandaloneContext(job, _Sender(link, received, stop_signal).publish)
    handled = run_once(lambda: load(job.agent, job.modules), context, stop_signal)
    if os.getpid() != pid:
        os._exit(0)  # user code forked and came back twice: the twin has nothing to tell
    if handled.outcome is Outcome.RETURNED:
        journal.finish(SLOT)
    else:
        link.sendall(frames.handled_frame(SLOT, handled))
    return 0


def _frames(link: socket.socket) -> Iterator[frames.Frame]:
    reader = frames.Frames()
    while data := link.recv(_CHUNK):
        yield from reader.feed(data)


def _job(received: Iterator[frames.Frame], journal: Journal) -> JobSpec | None:
    for kind, _slot, _number, content in received:
        if kind == frames.JOB:
            values = json.loads(content)
            values["modules"] = tuple(values["modules"])
            return replace(JobSpec(**values), stopping=journal.asked_to_stop)
    return None


class _Sender:
    """What the agent sends goes through the parent, which has the connection. Any thread of the agent."""

    def __init__(
        self, link: socket.socket, received: Iterator[frames.Frame], stop_signal: StopSignal
    ) -> None:
        self._link = link
        self._received = received
        self._stop_signal = stop_signal
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: dict[int, SimpleQueue[SendReply]] = {}
        self._reading = False

    def publish(self, destination: str, encoded: bytes) -> None:
        """Returns when the broker has it. Stopped in here the agent does not learn whether it has."""
        answers: SimpleQueue[SendReply] = SimpleQueue()
        main = threading.current_thread() is threading.main_thread()
        if main:
            # Asked, though the signal may have woken nobody: nothing more goes out.
            self._stop_signal.signalled()
            self._stop_signal.hold()  # half a frame on the link would spoil the next one
        try:
            with self._lock:
                self._read_answers()
                self._number += 1
                self._waiting[self._number] = answers
                self._link.sendall(send_frame(self._number, destination, encoded))
        finally:
            if main:
                self._stop_signal.release()
        answer = answers.get()
        if answer.temporary:
            raise TemporaryUnavailable(f"not sent to {destination}: {answer.problem}")
        if answer.problem:
            raise SendRefused(f"not sent to {destination}: {answer.problem}")

    def _read_answers(self) -> None:
        if not self._reading:
            self._reading = True
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            threading.Thread(target=self._read, name="answers", daemon=True).start()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _read(self) -> None:
        for _kind, _slot, number, content in self._received:
            waiting = self._waiting.pop(number, None)
            if waiting is not None:
                waiting.put(read_answer(content))


if __name__ == "__main__":
    run_and_leave(main)
