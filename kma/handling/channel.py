"""How an agent's answer to a delivery travels: from its process to the run, and the run's reply back.

Child to parent `frames.ACKNOWLEDGE`, back `frames.ACKNOWLEDGED`, both with the number of the question.
"""

import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from kma.handling import frames
from kma.handling.frames import question_frame
from kma.sdk.job import NOT_YET, Question, Reply

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
                raise RuntimeError("the handling is over: answer through the MA's REST interface")
            self._number += 1
            deadline = time.monotonic() + question.seconds
            self._link.sendall(question_frame(self._slot, self._number, question))
            while True:
                try:
                    frame = self._incoming.next(deadline - time.monotonic())
                except TimeoutError:
                    return Reply("", NOT_YET, temporary=True, taken=True)
                if frame is None:
                    return Reply("", "The container is gone.", temporary=True, taken=True)
                kind, _slot, number, content = frame
                if kind != frames.ACKNOWLEDGED:
                    self._ahead.append(frame)
                elif number == self._number:
                    return Reply(**json.loads(content))
