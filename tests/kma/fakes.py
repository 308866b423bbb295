"""A broker's link that tests can look into, and messages for it. Children, journal, spool and run are the
real ones."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from broker.amqp.codec import decode, encode
from broker.port import BrokerError, ConsumerEvents, Delivery, Outgoing, Settle
from contract.messages import DesiredRun, Mode
from contract.reasons import Reason
from contract.typed import Typed
from kma.delivery.message_identity import delivery_count
from kma.run.message_run import MessageRun
from kma.run.minutes import Durations
from kma.run.thread import ContainerServices
from kma.sdk.encoding import encoded_message
from kma.sdk.job import Question, Reply
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool

FIGURES = "minute_figures"
SAMPLES = ("kma.samples.scripted", "kma.samples.orders", "kma.samples.bench")


def message(
    body: Any, *, count: int = 0, identity: str = "", annotations: Mapping[str, Typed] | None = None
) -> bytes:
    """An encoded message; a dict or list as JSON, `count` attempts made before by the broker's count."""
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    found = decode(encoded_message(text, {}, message_id=identity or f"ID:{uuid4()}"))
    return encode(
        replace(found, delivery_count=count, annotations={**found.annotations, **(annotations or {})})
    )


def contents(spool: Spool, kind: str = "") -> list[dict[str, Any]]:
    """Of the records that wait: of one kind, or all but figures."""
    found = spool.head(10_000, 1 << 30)
    return [
        dict(record.content) for record in found if (record.kind == kind if kind else record.kind != FIGURES)
    ]


class FakeLink:
    """A `Consumer` over a list. FAIL brings the message back with its count raised, until `max_attempts`."""

    def __init__(self, events: ConsumerEvents, messages: list[bytes], *, max_attempts: int) -> None:
        self.events = events
        self.queue = list(messages)
        self.max_attempts = max_attempts
        self.dead: list[bytes] = []
        self.outstanding: dict[int, bytes] = {}
        self.settled: list[tuple[bytes, Settle]] = []
        self.sent: list[Outgoing] = []
        self.refuse_sends = ""
        self.may_share: list[bool] = []
        self.held: list[tuple[int, Sequence[Outgoing]]] | None = (
            None  # a list: transactions wait for `let_go`
        )
        self.credit = 0
        self.stopped = False
        self._tag = 0
        self._lock = threading.RLock()

    def start(self) -> None:
        self.events.opened()
        self._pump()

    def reconnect(self, reason: str) -> None:
        self.events.lost(reason, False)
        self.events.opened()

    def grant(self, credit: int) -> None:
        self.credit = credit
        self._pump()

    def settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        with self._lock:
            for tag, settle in settlements:
                encoded = self.outstanding.pop(tag, None)
                if encoded is None:
                    continue
                self.settled.append((encoded, settle))
                if settle is Settle.FAIL and delivery_count(encoded) + 1 < self.max_attempts:
                    found = decode(encoded)
                    self.queue.append(encode(replace(found, delivery_count=found.delivery_count + 1)))
                elif settle is not Settle.ACCEPT:
                    self.dead.append(encoded)
        self._pump()

    def settle_with_sends(self, tag: int, sends: Sequence[Outgoing], *, may_share: bool = False) -> None:
        self.may_share.append(may_share)
        if self.held is not None:
            self.held.append((tag, sends))
            return
        if self.refuse_sends:
            self.events.settled(tag, self.refuse_sends)
            return
        with self._lock:
            self.settled.append((self.outstanding.pop(tag), Settle.ACCEPT))
            self.sent.extend(sends)
        self.events.settled(tag, None)
        self._pump()

    def let_go(self) -> None:
        held, self.held = self.held or [], None
        for tag, sends in held:
            self.settle_with_sends(tag, sends)

    def stop(self, timeout: float = 10.0) -> None:
        self.stopped = True

    def lose(self, reason: str = "gone") -> None:
        """The connection is lost: what is outstanding comes again."""
        with self._lock:
            self.queue = [*self.outstanding.values(), *self.queue]
            self.outstanding.clear()
        self.events.lost(reason, False)
        self.events.opened()
        self._pump()

    def put(self, *messages: bytes) -> None:
        with self._lock:
            self.queue.extend(messages)
        self._pump()

    def outcomes(self) -> Counter[Settle]:
        return Counter(settle for _, settle in self.settled)

    def _pump(self) -> None:
        with self._lock:
            while self.queue and len(self.outstanding) < self.credit and not self.stopped:
                self._tag += 1
                encoded = self.queue.pop(0)
                self.outstanding[self._tag] = encoded
                self.events.delivered(Delivery(self._tag, encoded))


class FakePublisher:
    """A `Publisher` that fails with the stage's `refuse_published`."""

    def __init__(self, stage: "Stage") -> None:
        self._stage = stage

    def publish(self, messages: Sequence[Outgoing]) -> None:
        if self._stage.refuse_published is not None:
            raise self._stage.refuse_published
        self._stage.published.extend(messages)

    def close(self) -> None:
        """Nothing is open."""


class Stage:
    """A run with real children on a fake link, in a folder of its own."""

    def __init__(
        self, folder: Path, messages: list[bytes], *, modules: tuple[str, ...] = SAMPLES, **desired: Any
    ) -> None:
        self.folder = folder
        self.file = SpoolFile(folder / "spool.sqlite3")
        self.spool = Spool(self.file, desired.pop("spool_bytes", 10_000_000))
        self.ledger = Ledger(self.file)
        self.links: list[FakeLink] = []
        self.broker_attempts = desired.pop("broker_attempts", 0)
        self._messages = messages
        self.published: list[Outgoing] = []
        self.refuse_published: BrokerError | None = None
        self.durations: list[Durations] = []
        self.elsewhere: list[tuple[Question, Callable[[Reply], None]]] = []
        connect = desired.pop("connect", self._connect)
        self.around = ContainerServices(
            "srv-1",
            self.spool,
            self.ledger,
            folder,
            modules,
            connect,
            publisher=desired.pop("publisher", lambda: FakePublisher(self)),
            elsewhere=lambda *asked: self.elsewhere.append(asked),
            trace=desired.pop("trace", None),
            durations=self.durations.append,
        )
        self.desired = wanted(**desired)
        self.run = MessageRun(self.desired, "1", self.around)

    def _connect(self, desired: DesiredRun, events: ConsumerEvents) -> FakeLink:
        messages = self.links[-1].queue if self.links else self._messages
        link = FakeLink(events, messages, max_attempts=self.broker_attempts or desired.max_attempts)
        self.links.append(link)
        return link

    @property
    def link(self) -> FakeLink:
        eventually(lambda: bool(self.links), "a link")
        return self.links[-1]

    def records(self, kind: str = "") -> list[dict[str, Any]]:
        """Of one kind, or all but the figures of minutes: how many of those there are, the clock decides."""
        return contents(self.spool, kind)

    def kinds(self) -> list[str]:
        """Without those of figures, see `records`."""
        return [record.kind for record in self.spool.head(10_000, 1 << 30) if record.kind != FIGURES]

    def spooled(self, closing: Mapping[str, Any]) -> int:
        """Records before the closing one, by its word, without figures."""
        return int(closing["records"]) - len(self.records(FIGURES))

    def settled(self, number: int) -> None:
        eventually(lambda: len(self.link.settled) >= number, f"{number} settlements", 60)

    def end(self, *, close: bool = True) -> None:
        if self.run.alive:
            self.run.stop(close=close, reason="test")
            self.run.join(40)
            assert not self.run.alive
        self.file.close()


def wanted(**fields: Any) -> DesiredRun:
    values = {
        "activation": UUID("11111111-2222-3333-4444-555555555555"),
        "epoch": 1,
        "setting": "orders",
        "agent": "demo.scripted",
        "destination": "demo.orders",
        "queue": "orders",
        "mode": Mode.AUTO,
        "max_attempts": 3,
        "max_failures": 1000,  # trips only where a test is about it
        "grace_seconds": 5.0,
    }
    return DesiredRun(**{**values, **fields})


def eventually(true: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    begun = time.monotonic()
    while not true():
        waited = time.monotonic() - begun
        assert waited < seconds, f"no {what} within {seconds:g} s"
        time.sleep(min(0.1, max(0.01, waited / 16)))  # a question may be one to the broker


def said(problems: Any) -> str:
    """Of a run or a KMA, as values or as they went over the wire."""
    return "; ".join(str(Reason(**each) if isinstance(each, dict) else each) for each in problems)
