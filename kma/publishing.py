"""What standalone agents send: published by their run, each message by itself, the agent waiting for the
broker's word.

A message agent's sends are part of its message's transaction (kma/consumer.py); a standalone agent has none.
"""

import json
import os
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from queue import SimpleQueue

from broker.amqp.codec import decode
from broker.port import BrokerError, BrokerUnavailable, Outgoing, Publisher
from kma import frames

# Child to parent, and back. The number of a frame is the send's.
SEND, SENT = 30, 31
_LENGTH = struct.Struct("<H")


@dataclass(frozen=True, slots=True)
class Answer:
    """`problem` is empty when the broker has the message on disk. `temporary`: it may work later."""

    problem: str = ""
    temporary: bool = False


def send_frame(number: int, destination: str, encoded: bytes) -> bytes:
    name = destination.encode()
    return frames.frame(SEND, 0, number, _LENGTH.pack(len(name)) + name + encoded)


def read_send(content: bytes) -> tuple[str, bytes]:
    """Destination and encoded message."""
    at = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    return content[_LENGTH.size : at].decode(), content[at:]


def answer_frame(number: int, answer: Answer) -> bytes:
    return frames.frame(SENT, 0, number, json.dumps(asdict(answer)).encode())


def read_answer(content: bytes) -> Answer:
    return Answer(**json.loads(content))


class Publishing:
    """A thread of its own, started by the first send: the run must see to its process while the broker takes
    its time. `descriptor` becomes readable when there are answers."""

    _PATIENCE = 10.0  # seconds for what is on its way at the end

    def __init__(self, make: Callable[[], Publisher]) -> None:
        self._make = make
        self._jobs: SimpleQueue[tuple[int, int, bytes] | None] = SimpleQueue()
        self._answers: deque[tuple[int, bytes]] = deque()
        self._life = 0  # grows with each process: numbers begin anew
        self._thread: threading.Thread | None = None
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def put(self, number: int, content: bytes) -> None:
        """What a SEND frame carries."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="publishing", daemon=True)
            self._thread.start()
        self._jobs.put((self._life, number, content))

    def answers(self) -> Iterator[bytes]:
        """Frames for the process that asked."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)
        while self._answers:
            life, answer = self._answers.popleft()
            if life == self._life:
                yield answer

    def forget(self) -> None:
        """The process that asked is gone. What is not on its way yet is not sent: nobody was promised it, and
        after a lease another server may be at work."""
        self._life += 1

    def close(self) -> None:
        self.forget()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(self._PATIENCE)
            if self._thread.is_alive():
                return  # it will still write to the descriptor
        os.close(self.descriptor)

    def _main(self) -> None:
        publisher: Publisher | None = None
        while (job := self._jobs.get()) is not None:
            life, number, content = job
            if life != self._life:
                continue
            try:
                destination, encoded = read_send(content)
                publisher = publisher or self._make()
                publisher.publish([Outgoing(destination, decode(encoded))])
                answer = Answer()
            except BrokerUnavailable as error:
                answer = Answer(str(error) or type(error).__name__, temporary=True)
            except (BrokerError, ValueError) as error:
                answer = Answer(str(error) or type(error).__name__)
            self._answers.append((life, answer_frame(number, answer)))
            os.eventfd_write(self.descriptor, 1)
        if publisher is not None:
            publisher.close()
