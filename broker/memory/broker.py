"""An honest broker within this process: for tests of what stands above the port, proved by the same suite."""

import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from uuid import uuid4

from broker.amqp.codec import decode, encode, encode_outgoing
from broker.memory.management import MemoryManagement
from broker.memory.store import Reference, Store
from broker.port import (
    AddressUnknown,
    BrokerUnavailable,
    Browsed,
    ConsumerEvents,
    Delivery,
    Message,
    Outgoing,
    Settle,
)

RECONNECT = 0.02

# Messages in a piece of a walk.
WALKED = 500


class MemoryBroker:
    """`clock` in seconds and `scale` for the delays of policies, see `Store`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, scale: float = 1.0) -> None:
        self._store = Store(clock, scale)

    def consumer(
        self, address: str, queue: str, events: ConsumerEvents, prefetch: int = 0, *, name: str = "ma"
    ) -> "MemoryConsumer":
        return MemoryConsumer(self._store, address, queue, events, prefetch, name)

    def publisher(self) -> "MemoryPublisher":
        return MemoryPublisher(self._store)

    def browser(self) -> "MemoryBrowser":
        return MemoryBrowser(self._store)

    def management(self) -> MemoryManagement:
        return MemoryManagement(self._store)

    def take(self, address: str, message: Message) -> None:
        """A message of a stranger, who does not check what a publisher of ours checks."""
        with self._store.changed:
            self._store.send(address, message)

    def tick(self) -> None:
        """After the injected clock was moved: brings back what is due."""
        self._store.tick()

    def crash(self) -> None:
        """As kill -9: connections are lost; what was in delivery comes back with its attempt counted, what
        was delayed at once, and what was not durable is gone."""
        with self._store.changed:
            self._store.running = False
            for each in self._store.queues.values():
                each.paused = each.pause_kept
                for reference in each.delivering:
                    reference.count += 1
                back = sorted(each.delivering, key=lambda reference: reference.id)
                each.delivering.clear()
                each.ready.extendleft(reversed(back))
                # Delays do not survive either.
                kept = [one for one in (*each.ready, *each.scheduled) if one.message.durable]
                each.ready = type(each.ready)(kept)
                each.scheduled.clear()
                takers, each.takers = each.takers, []
                for taker in takers:
                    taker.dropped("the broker was killed")
            self._store.changed.notify_all()

    def restart(self) -> None:
        with self._store.changed:
            self._store.running = True
        self._store.tick()


class MemoryPublisher:
    """A `Publisher`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def publish(self, messages: Sequence[Outgoing]) -> None:
        with self._store.changed:
            if not self._store.running:
                raise BrokerUnavailable("the memory broker is down")
            sent = [
                (outgoing.destination, decode(encode_outgoing(outgoing.message))) for outgoing in messages
            ]
            for destination, _ in sent:
                self._store.targets(destination)
            for destination, message in sent:
                self._store.send(destination, message)

    def close(self) -> None:
        """Nothing is open."""


class MemoryBrowser:
    """A `Browser`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def browse(self, address: str, queue: str, *, limit: int) -> Iterator[Browsed]:
        with self._store.changed:
            if not self._store.running:
                raise BrokerUnavailable("the memory broker is down")
            found = self._store.queues.get(queue)
            if found is None or found.address != address:
                raise AddressUnknown(f"source address {address}::{queue} does not exist")
            seen = [
                replace(each.message, delivery_count=each.count)
                for each in itertools.islice(found.ready, limit)
            ]
        for message in seen:
            yield Browsed(encode(message), message)

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        found = [browsed.encoded for browsed in self.browse(address, queue, limit=sys.maxsize)]
        for start in range(0, len(found), WALKED):
            yield found[start : start + WALKED]

    def close(self) -> None:
        """Nothing is open."""


class MemoryConsumer:
    """A `Consumer`: its thread tells the owner what the store noted, and reconnects after a crash."""

    def __init__(
        self,
        store: Store,
        address: str,
        queue_name: str,
        events: ConsumerEvents,
        prefetch: int = 0,
        name: str = "ma",
    ) -> None:
        self.name = f"{name}-{uuid4()}"
        self.delivered_at = 0.0
        self._store = store
        self._address = address
        self._queue = queue_name
        self._events = events
        self._window = prefetch
        self._tags = itertools.count(1)
        self._outstanding: dict[int, Reference] = {}
        self._told: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"memory consumer {queue_name}", daemon=True)

    # -- any thread ------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def grant(self, credit: int) -> None:
        with self._store.changed:
            self._window = credit
            self._feed()

    def reconnect(self, reason: str) -> None:
        with self._store.changed:
            references = list(self._outstanding.values())
            self.dropped(reason)
            self._store.release(references)

    def settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        with self._store.changed:
            for tag, settle in settlements:
                reference = self._outstanding.pop(tag, None)
                if reference is None:
                    continue
                if settle is Settle.ACCEPT:
                    self._store.accept(reference)
                elif settle is Settle.REJECT:
                    self._store.die(reference)
                else:
                    self._store.fail(reference)
            self._feed()

    def settle_with_sends(self, tag: int, sends: Sequence[Outgoing], *, may_share: bool = False) -> None:
        with self._store.changed:
            if tag not in self._outstanding:
                return
            problem = self._commit(tag, sends)
            self._told.put(lambda: self._events.settled(tag, problem))
            self._feed()

    def _commit(self, tag: int, sends: Sequence[Outgoing]) -> str | None:
        try:
            messages = [(send.destination, decode(encode_outgoing(send.message))) for send in sends]
            for destination, message in messages:
                address, _ = self._store.targets(destination)
                if self._store.duplicate(address, message):
                    return "Duplicate message detected - message will not be routed."
        except (AddressUnknown, ValueError) as error:
            return str(error)
        for destination, message in messages:
            self._store.send(destination, message)
        self._store.accept(self._outstanding.pop(tag))
        return None

    def stop(self, timeout: float = 10.0) -> None:
        self._stopping.set()
        with self._store.changed:
            self._detach()
            references, self._outstanding = list(self._outstanding.values()), {}
            if self._store.running:
                self._store.release(references)
        self._told.put(None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    # -- called by the store with its lock held --------------------------------------------------------------

    def holds(self) -> list[Reference]:
        return list(self._outstanding.values())

    def room(self) -> int:
        return self._window - len(self._outstanding)

    def take(self, reference: Reference) -> None:
        tag = next(self._tags)
        self._outstanding[tag] = reference
        self.delivered_at = time.time()
        delivery = Delivery(tag, encode(replace(reference.message, delivery_count=reference.count)))
        self._told.put(lambda: self._events.delivered(delivery))

    def dropped(self, reason: str) -> None:
        self._outstanding.clear()
        self._detach()
        if not self._stopping.is_set():
            self._told.put(lambda: self._lost(reason))

    # -- its own thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._attach()
        while (call := self._told.get()) is not None:
            call()

    def _lost(self, reason: str) -> None:
        self._events.lost(reason, False)
        self._attach()

    def _attach(self) -> None:
        while not self._stopping.is_set():
            with self._store.changed:
                found = self._store.queues.get(self._queue)
                unknown = found is None or found.address != self._address
                if self._store.running and found is not None and not unknown:
                    self._told.put(self._events.opened)
                    found.takers.append(self)
                    self._store.feed(found)
                    return
                running = self._store.running
            self._events.lost(
                "no such queue" if running else "the memory broker is down", running and unknown
            )
            self._stopping.wait(RECONNECT if not running else 1.0)

    def _detach(self) -> None:
        for each in self._store.queues.values():
            if self in each.takers:
                each.takers.remove(self)

    def _feed(self) -> None:
        if (found := self._store.queues.get(self._queue)) is not None:
            self._store.feed(found)
