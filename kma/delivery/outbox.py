"""What leaves a run beside its messages' transactions, in threads of their own that the first of it starts.

Of message agents these are the sends of handlings of the mode CLIENT that are over and not committed, and
events of rollbacks: all else is part of a message's transaction (kma/run/consumer.py). A standalone agent has
no transaction: what it sends is published by its run, each message by itself, and the agent waits for the
broker's word.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from broker.amqp.codec import decode
from broker.port import BrokerError, BrokerUnavailable, Outgoing, Publisher
from kma.handling.frames import SendReply, answer_frame, read_send


@dataclass(frozen=True, slots=True)
class SendResult:
    """What the handling of this acknowledgement id sent is at the broker, or `problem` says why not.
    `temporary`: it may work later; a part may have been sent."""

    acknowledgement: str
    problem: str = ""
    temporary: bool = False


_TRIES, _PAUSE = 3, 0.5  # of what finds no broker: it may be about to come back
_PATIENCE = 10.0  # seconds for what is on its way at the end


class Outbox:
    """`put` from one thread. Sends are published again after a failure that may have taken a part:
    at-least-once."""

    def __init__(self, make: Callable[[], Publisher], tell: Callable[[SendResult], None], log: Any) -> None:
        self._make = make
        self._tell = tell
        self._log = log
        self._jobs: SimpleQueue[tuple[str, Sequence[Outgoing]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._publisher: Publisher | None = None

    def put(self, acknowledgement: str, messages: Sequence[Outgoing]) -> None:
        """`tell` is called with the end of it."""
        self._put((acknowledgement, messages))

    def put_event(self, event: Outgoing) -> None:
        """Best effort: nobody waits for it, a failure is only logged."""
        self._put(("", (event,)))

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(_PATIENCE)

    def _put(self, job: tuple[str, Sequence[Outgoing]]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="outbox", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _main(self) -> None:
        while (job := self._jobs.get()) is not None:
            acknowledgement, messages = job
            ended = self._publish(acknowledgement, messages)
            if acknowledgement:
                self._tell(ended)
            elif ended.problem:
                self._log.warning("event not sent", to=messages[0].destination, problem=ended.problem)
        self._forget_publisher()

    def _forget_publisher(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            with suppress(BrokerError):
                publisher.close()

    def _publish(self, acknowledgement: str, messages: Sequence[Outgoing]) -> SendResult:
        problem = ""
        for left in reversed(range(_TRIES)):
            try:
                self._publisher = self._publisher or self._make()
                self._publisher.publish(messages)
                return SendResult(acknowledgement)
            except BrokerUnavailable as error:
                self._forget_publisher()
                problem = str(error) or type(error).__name__
                if not left or self._closing.wait(_PAUSE):
                    break
            except (BrokerError, ValueError) as error:
                return SendResult(acknowledgement, str(error) or type(error).__name__)
        return SendResult(acknowledgement, problem, temporary=True)


class StandaloneOutbox:
    """A thread of its own, started by the first send: the run must see to its process while the broker takes
    its time. `descriptor` becomes readable when there are answers."""

    _PATIENCE = 10.0  # seconds for what is on its way at the end

    def __init__(self, make: Callable[[], Publisher]) -> None:
        self._make = make
        self._jobs: SimpleQueue[tuple[int, int, bytes] | None] = SimpleQueue()
        self._answers: deque[tuple[int, bytes]] = deque()
        self._process_number = 0  # grows with each process: numbers begin anew
        self._thread: threading.Thread | None = None
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def put(self, number: int, content: bytes) -> None:
        """What a SEND frame carries."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="outbox", daemon=True)
            self._thread.start()
        self._jobs.put((self._process_number, number, content))

    def answers(self) -> Iterator[bytes]:
        """Frames for the process that asked."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)
        while self._answers:
            process_number, answer = self._answers.popleft()
            if process_number == self._process_number:
                yield answer

    def forget(self) -> None:
        """The process that asked is gone. What is not on its way yet is not sent: nobody was promised it, and
        after a lease another server may be at work."""
        self._process_number += 1

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
            process_number, number, content = job
            if process_number != self._process_number:
                continue
            try:
                destination, encoded = read_send(content)
                publisher = publisher or self._make()
                publisher.publish([Outgoing(destination, decode(encoded))])
                answer = SendReply()
            except BrokerUnavailable as error:
                answer = SendReply(str(error) or type(error).__name__, temporary=True)
            except (BrokerError, ValueError) as error:
                answer = SendReply(str(error) or type(error).__name__)
            self._answers.append((process_number, answer_frame(number, answer)))
            os.eventfd_write(self.descriptor, 1)
        if publisher is not None:
            publisher.close()
