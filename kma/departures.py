"""What leaves a run beside its messages' transactions, in a thread of its own that the first of it starts:
the sends of handlings of the mode CLIENT that are over and not committed, and events of rollbacks.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from broker.port import BrokerError, BrokerUnavailable, Outgoing, Publisher
from kma.inbox import Sent

_TRIES, _PAUSE = 3, 0.5  # of what finds no broker: it may be about to come back
_PATIENCE = 10.0  # seconds for what is on its way at the end


class Departures:
    """`put` from one thread. Sends are published again after a failure that may have taken a part:
    at-least-once."""

    def __init__(self, make: Callable[[], Publisher], tell: Callable[[Sent], None], log: Any) -> None:
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
            self._thread = threading.Thread(target=self._main, name="departures", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _main(self) -> None:
        while (job := self._jobs.get()) is not None:
            acknowledgement, messages = job
            ended = self._publish(acknowledgement, messages)
            if acknowledgement:
                self._tell(ended)
            elif ended.problem:
                self._log.warning("an event was not sent", to=messages[0].destination, problem=ended.problem)
        self._forget_publisher()

    def _forget_publisher(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            with suppress(BrokerError):
                publisher.close()

    def _publish(self, acknowledgement: str, messages: Sequence[Outgoing]) -> Sent:
        problem = ""
        for left in reversed(range(_TRIES)):
            try:
                self._publisher = self._publisher or self._make()
                self._publisher.publish(messages)
                return Sent(acknowledgement)
            except BrokerUnavailable as error:
                self._forget_publisher()
                problem = str(error) or type(error).__name__
                if not left or self._closing.wait(_PAUSE):
                    break
            except (BrokerError, ValueError) as error:
                return Sent(acknowledgement, str(error) or type(error).__name__)
        return Sent(acknowledgement, problem, temporary=True)
