"""The state of the memory broker: addresses, queues, references, policies. One lock for all of it.

It does what was seen on Artemis 2.56: delivery counts per queue, redelivery after the policy's delay at the
head of the queue, dead letters routed by the filters of the dead-letter address's queues with annotations
that tell their origin, moves that reach one queue only and give new ids.
"""

import itertools
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

from broker.memory.filters import Predicate, predicate
from broker.port import AddressUnknown, Message
from contract.names import ANNOTATED_ORIG_ADDRESS, ANNOTATED_ORIG_MESSAGE_ID, ANNOTATED_ORIG_QUEUE
from contract.redelivery import RedeliveryPolicy, delay_before
from contract.typed import Typed

# What our broker.xml gives an address without settings of its own.
DEFAULTS: Mapping[str, Any] = {
    "deadLetterAddress": "MA.DLA",
    "maxDeliveryAttempts": 10,
    "redeliveryDelay": 5000,
    "addressFullMessagePolicy": "PAGE",
    "maxSizeBytes": -1,
    "pageSizeBytes": 10_485_760,
    "autoCreateQueues": False,
    "autoDeleteQueues": False,
    "autoCreateAddresses": False,
    "autoDeleteAddresses": False,
}


class Taker(Protocol):
    """A consumer as a queue sees it. Called with the store's lock held: it must only note the work.
    `delivered_at`: when it was given its last message, seconds since 1970."""

    name: str
    delivered_at: float

    def holds(self) -> Sequence["Reference"]: ...

    def room(self) -> int: ...

    def take(self, reference: "Reference") -> None: ...

    def dropped(self, reason: str) -> None: ...


@dataclass(slots=True, eq=False)
class Reference:
    """A message in one queue. `count`: attempts before."""

    message: Message
    id: int
    queue: "StoredQueue"
    count: int = 0
    due: float = 0.0


@dataclass(slots=True, eq=False)
class StoredQueue:
    """`pause_kept`: its pause outlives the broker."""

    name: str
    address: str
    id: int
    filter: str = ""
    exclusive: bool = False
    paused: bool = False
    pause_kept: bool = False
    matches: Predicate = field(default=lambda message: True)
    ready: deque[Reference] = field(default_factory=deque)
    scheduled: list[Reference] = field(default_factory=list)
    delivering: set[Reference] = field(default_factory=set)
    takers: list[Taker] = field(default_factory=list)
    added: int = 0
    acknowledged: int = 0

    @property
    def count(self) -> int:
        return len(self.ready) + len(self.scheduled) + len(self.delivering)


class Store:
    """`clock` in seconds; `scale` shortens the delays of policies. With another clock than the real one,
    `tick` must be called after it was moved."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, scale: float = 1.0) -> None:
        self.clock = clock
        self.scale = scale
        self.changed = threading.Condition(threading.RLock())
        self.node_id = str(uuid4())
        self.addresses: dict[str, int] = {}
        self.queues: dict[str, StoredQueue] = {}
        self.policies: dict[str, dict[str, Any]] = {}
        self.duplicates: dict[str, set[Any]] = {}
        self.running = True
        self._ids = itertools.count(1)
        self._timer: threading.Thread | None = None

    # -- addresses and policies ------------------------------------------------------------------------------

    def next_id(self) -> int:
        return next(self._ids)

    def settings(self, address: str) -> dict[str, Any]:
        return {**DEFAULTS, **self.policies.get(address, {})}

    def targets(self, destination: str) -> tuple[str, list[StoredQueue] | None]:
        """(address, the one queue of `address::queue` or None). Raises AddressUnknown."""
        address, _, name = destination.partition("::")
        if address not in self.addresses:
            raise AddressUnknown(f"target address {destination} does not exist")
        if not name:
            return address, None
        queue = self.queues.get(name)
        if queue is None or queue.address != address:
            raise AddressUnknown(f"target address {destination} does not exist")
        return address, [queue]

    def duplicate(self, address: str, message: Message) -> bool:
        item = message.properties.get("_AMQ_DUPL_ID")
        return item is not None and item in self.duplicates.get(address, ())

    # -- routing ---------------------------------------------------------------------------------------------

    def send(self, destination: str, message: Message) -> None:
        address, one = self.targets(destination)
        if self.duplicate(address, message):
            return
        if (item := message.properties.get("_AMQ_DUPL_ID")) is not None:
            self.duplicates.setdefault(address, set()).add(item)
        self.route(address, replace(message, delivery_count=0), one)

    def route(self, address: str, message: Message, one: list[StoredQueue] | None = None) -> None:
        number = self.next_id()
        queues = (
            one if one is not None else [queue for queue in self.queues.values() if queue.address == address]
        )
        for queue in queues:
            if one is not None or queue.matches(message):
                queue.ready.append(Reference(message, number, queue))
                queue.added += 1
                self.feed(queue)

    def moved(self, reference: Reference) -> Message:
        """The message as it arrives after a move: annotated with where it was last."""
        annotations = dict(reference.message.annotations)
        annotations[ANNOTATED_ORIG_ADDRESS] = Typed("string", reference.queue.address)
        annotations[ANNOTATED_ORIG_QUEUE] = Typed("string", reference.queue.name)
        annotations[ANNOTATED_ORIG_MESSAGE_ID] = Typed("long", reference.id)
        return replace(reference.message, annotations=annotations)

    # -- delivery --------------------------------------------------------------------------------------------

    def feed(self, queue: StoredQueue) -> None:
        """Hands over what consumers have room for; an exclusive queue feeds its first consumer only."""
        while queue.ready and self.running and not queue.paused:
            takers = queue.takers[:1] if queue.exclusive else queue.takers
            taker = next((taker for taker in takers if taker.room() > 0), None)
            if taker is None:
                return
            reference = queue.ready.popleft()
            queue.delivering.add(reference)
            taker.take(reference)
            if not queue.exclusive:
                queue.takers.append(queue.takers.pop(queue.takers.index(taker)))

    def accept(self, reference: Reference) -> None:
        if reference in reference.queue.delivering:
            reference.queue.delivering.discard(reference)
            reference.queue.acknowledged += 1

    def release(self, references: list[Reference]) -> None:
        """Unsettled ones go back to the head, in their order, no attempt spent."""
        for reference in reversed(references):
            if reference in reference.queue.delivering:
                reference.queue.delivering.discard(reference)
                reference.queue.ready.appendleft(reference)
        for queue in {reference.queue.name: reference.queue for reference in references}.values():
            self.feed(queue)

    def fail(self, reference: Reference) -> None:
        queue, settings = reference.queue, self.settings(reference.queue.address)
        if reference not in queue.delivering:
            return
        reference.count += 1
        if 0 < settings["maxDeliveryAttempts"] <= reference.count:
            self.die(reference)
            return
        queue.delivering.discard(reference)
        reference.due = self.clock() + self.scale * self._delay(settings, reference.count) / 1000
        queue.scheduled.append(reference)
        self.tick()

    def _delay(self, settings: Mapping[str, Any], k: int) -> int:
        longest = settings.get("maxRedeliveryDelay", -1)
        policy = RedeliveryPolicy(
            delay=settings["redeliveryDelay"],
            multiplier=settings.get("redeliveryMultiplier", 1.0),
            max_delay=None if longest < 0 else longest,
            collision_avoidance=settings.get("redeliveryCollisionAvoidanceFactor", 0.0),
        )
        return delay_before(policy, k, sign=random.choice((-1, 1)), u=random.random())

    def die(self, reference: Reference) -> None:
        """To the dead-letter address; without one the message is deleted."""
        reference.queue.delivering.discard(reference)
        dead = self.settings(reference.queue.address).get("deadLetterAddress")
        if dead and dead in self.addresses:
            self.route(dead, self.moved(reference))

    def move(self, queue: StoredQueue, matches: Predicate, target: StoredQueue, most: int) -> int:
        chosen = [reference for reference in queue.ready if matches(reference.message)]
        for reference in chosen[: most or None]:
            queue.ready.remove(reference)
            self.route(target.address, self.moved(reference), [target])
        return len(chosen[: most or None])

    def set_filter(self, queue: StoredQueue, selector: str) -> None:
        queue.matches = predicate(selector)
        queue.filter = selector

    # -- time ------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Brings back what is due."""
        with self.changed:
            now = self.clock()
            for queue in self.queues.values():
                due = sorted((each for each in queue.scheduled if each.due <= now), key=lambda each: each.due)
                for reference in reversed(due):
                    queue.scheduled.remove(reference)
                    queue.ready.appendleft(reference)
                if due:
                    self.feed(queue)
            if self._timer is None and self.clock is time.monotonic:
                self._timer = threading.Thread(target=self._watch, name="memory broker", daemon=True)
                self._timer.start()
            self.changed.notify_all()

    def _watch(self) -> None:
        with self.changed:
            while self.running:
                due = [each.due for queue in self.queues.values() for each in queue.scheduled]
                self.changed.wait(max(0.0, min(due) - self.clock()) if due else None)
                if any(moment <= self.clock() for moment in due):
                    self.tick()
            self._timer = None
