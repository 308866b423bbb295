"""A queue with messages in it on a broker, and a real run that handles them: what benches of consuming
share."""

import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.place import Place
from broker.amqp.consumer import AmqpConsumer
from broker.port import ConsumerEvents, Message, Outgoing
from broker.stomp.client import StompManagement, StompPublisher
from contract.messages import DesiredRun
from contract.records import RunState
from contract.typed import Typed

if TYPE_CHECKING:
    from kma.run.message_run import MessageRun

PATIENCE = 120.0  # seconds for one run


def publish(place: Place, address: str, text: str, number: int) -> None:
    publisher = StompPublisher(place.stomp)
    body, properties = Typed("string", text), {"kind": Typed("string", "standard")}
    try:
        for start in range(0, number, 5_000):
            some = range(start, min(start + 5_000, number))
            publisher.publish([Outgoing(address, Message(body=body, properties=properties)) for _ in some])
    finally:
        publisher.close()


def left_in(management: StompManagement, queue: str) -> int:
    """Messages that are left; the broker works off the last acceptances for a moment."""
    deadline = time.monotonic() + 10
    while (
        left := int(management.attribute(f"queue.{queue}", "MessageCount"))
    ) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


class _Held(AmqpConsumer):
    """Takes nothing before it is let go."""

    _held, _credit = True, 0

    def grant(self, credit: int) -> None:
        self._credit = credit
        if not self._held:
            super().grant(credit)

    def let_go(self) -> None:
        self._held = False
        self.grant(self._credit)


def handle(place: Place, desired: DesiredRun, number: int, samples: Sequence[str]) -> dict[str, float]:
    """A real run: link, journal, spool, child processes. From the moment when all of them are ready until
    `number` messages are handled: `rate` per second, `peak_mb` with all children."""
    from kma.children.pool import ChildPool
    from kma.run import message_run as kma_run
    from kma.run.thread import ContainerServices
    from kma.spool.file import SpoolFile
    from kma.spool.ledger import Ledger
    from kma.spool.records import Spool

    links: list[_Held] = []
    pools: list[Any] = []

    class Seen(ChildPool):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            pools.append(self)

    def connect(wanted: DesiredRun, events: ConsumerEvents) -> AmqpConsumer:
        links.append(_Held(place.amqp, wanted.destination, wanted.queue, events))
        return links[-1]

    setattr(kma_run, "ChildPool", Seen)  # noqa: B010  # to see when all children are ready
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        file = SpoolFile(folder / "spool.sqlite3")
        around = ContainerServices(
            "bench", Spool(file, 1 << 30), Ledger(file), folder, tuple(samples), connect, "ERROR"
        )
        one = kma_run.MessageRun(desired, "1", around)
        one.start()
        began = time.monotonic()
        while not (one.report().connected and all(worker.ready for worker in pools[0]._workers)):
            _in_time(one, began)
            time.sleep(0.001)
        began = time.monotonic()
        links[-1].let_go()
        while one.report().handled < number:
            _in_time(one, began)
            time.sleep(0.002)
        seconds = time.monotonic() - began
        one.stop(close=True)
        one.join()
        assert one.state is RunState.FINISHED, one.problems
        assert not one.report().failed
        file.close()
    children = desired.concurrency * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"rate": number / seconds, "peak_mb": (own_peak() + children) / 1024}


def own_peak() -> int:
    """KB of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _in_time(one: "MessageRun", began: float) -> None:
    if time.monotonic() - began > PATIENCE - 10:
        raise RuntimeError(f"the bench's run does not get on: {one.report()}")
