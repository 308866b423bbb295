"""A small world for the state machine of dead letters: the memory broker, the MA's own services, and
processes that may die before each statement to the database and before or after each call of the broker.

`Truth` is the simple model: what really happened to each letter, noted where the broker itself moves
messages.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from agents.models import Destination
from broker.management.desired_topology import base_topology, setting_topology
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from broker.memory.filters import Predicate
from broker.memory.store import Reference, Store, StoredQueue
from broker.port import BrokerError, Delivery, Message, Settle
from contract.message_key import message_key
from contract.records import ReplayOutcome
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq.dead_letters.rules.parser import origin_of
from dlq.index.broker import LetterQueues
from dlq.index.feed import Feed, Inbox
from dlq.index.sweep import Sweep
from dlq.index.walk import Walk
from dlq.models import LetterReport, ReplayJob
from dlq.outcomes import settlement
from ma_site.tasks import start_jobs
from tests.dlq.dying import NONE, Died, Instructions, Trouble, Wire
from tests.web import reports

DLA, ADDRESS = "MA.DLA", "t.orders"
KEYS = ("orders", "mirror")
FEED, BIN = "DLQ.feed", "DLQ.bin"
LOOKED_AFTER = (*(f"DLQ.{key}" for key in KEYS), BIN)
# (queue, id before the death): one death of one message.
Death = tuple[str, int]


@dataclass
class Returned:
    """One letter that the broker moved to a subscription, and what became of it there: "" while it waits."""

    death: Death
    letter_id: int
    label: str
    target: str
    outcome: str = ""


@dataclass
class Truth:
    """`published` and `ended` (handled, or taken by a stranger) by label. `taken`: letters that strangers
    took. `moved`: letters that we moved, and where to. `returned`: those that went to a subscription."""

    published: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    returned: list[Returned] = field(default_factory=list)
    moved: dict[Death, str] = field(default_factory=dict)
    taken: set[Death] = field(default_factory=set)


class Tap:
    """The feed's consumer: what it accepts will not come again."""

    def __init__(self) -> None:
        self.accepted: set[int] = set()

    def settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        self.accepted |= {tag for tag, settle in settlements if settle is Settle.ACCEPT}

    def start(self) -> None: ...

    def grant(self, credit: int) -> None: ...

    def reconnect(self, reason: str) -> None: ...

    def stop(self) -> None: ...


class World:
    """Two settings of one destination. `unfed` are the letters that the feed has not accepted yet."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.store: Store = self.broker._store
        self.truth = Truth()
        self.instructions = Instructions()
        self.unfed: dict[int, bytes] = {}
        self.fed: list[bytes] = []
        self.reports: list[LetterReport] = []
        self.walks: list[Walk] = []
        self._asked: list[str] = []
        self._tags = 0
        self._delivered: dict[int, Reference] = {}
        self._move = self.store.move
        self.store.move = self._noted_move  # type: ignore[method-assign]
        management = self.broker.management()
        apply(management, base_topology(DLA))
        for key in KEYS:
            apply(
                management,
                setting_topology(key, ADDRESS, RedeliveryPolicy(max_attempts=1, delay=0), False, DLA),
            )
        first = reports.setting(KEYS[0], destination=_destination())
        others = [reports.setting(key, destination=first.destination) for key in KEYS[1:]]
        self.settings = {setting.key: setting for setting in (first, *others)}
        self.runs = {key: reports.run(setting, reports.server()) for key, setting in self.settings.items()}
        self.asker, self.other = (
            User.objects.create_superuser(name, password=None) for name in ("who-asks", "who-approves")
        )
        wires: list[Any] = [Wire(part, self.instructions) for part in (management, self.broker.browser())]
        self.queues = LetterQueues(wires[0], wires[1], DLA)
        self.management, self.browser = wires
        self.publisher = Wire(self.broker.publisher(), self.instructions)

    # -- processes -------------------------------------------------------------------------------------------

    def process(self, work: Callable[[], Any], trouble: Trouble = NONE) -> bool:
        """Runs `work` as a process of its own; whether it lived to its end."""
        trouble.prepare(self.instructions)
        try:
            with connection.execute_wrapper(self.instructions.statement):
                work()
        except (Died, BrokerError):
            return False
        finally:
            self.instructions.stop()
        return True

    def feed(self, encoded: Sequence[tuple[int, bytes]], trouble: Trouble = NONE) -> None:
        """The feed's process gets these deliveries in this order."""
        tap, inbox = Tap(), Inbox()
        inbox.openings = 1
        for tag, each in encoded:
            inbox.deliveries.put(Delivery(tag, each))
        feed: Any = Feed(tap, inbox, self.management, self.publisher, DLA)  # type: ignore[arg-type]

        def work() -> None:
            while not inbox.deliveries.empty() and feed.step(0):
                pass

        self.process(work, trouble)
        self.fed += [each for tag, each in encoded if tag in tap.accepted]
        for tag in tap.accepted:
            self.unfed.pop(tag, None)
            if reference := self._delivered.pop(tag, None):
                self.store.accept(reference)

    def arrive_at_feed(self) -> None:
        """The broker hands over what is new."""
        queue = self.store.queues[FEED]
        for browsed in list(self.broker.browser().browse(DLA, FEED, limit=1_000_000)):
            self._tags += 1
            self.unfed[self._tags] = browsed.encoded
            self._delivered[self._tags] = queue.ready.popleft()
            queue.delivering.add(self._delivered[self._tags])

    def sweep(self, steps: int, trouble: Trouble = NONE) -> None:
        """The sweep of a process that has just begun."""

        def work() -> None:
            sweep = Sweep(self.management, self.browser, DLA)
            all(sweep.step(timezone.now(), idle=True) for _ in range(steps))

        self.process(work, trouble)

    def begin_walk(self, queue: str, trouble: Trouble = NONE) -> None:
        def work() -> None:
            self.walks.append(Walk(queue, DLA, self.management, self.browser, timezone.now()))

        self.process(work, trouble)

    def walk_on(self, walk: Walk, steps: int, trouble: Trouble = NONE) -> None:
        """Some steps of a walk; one whose process died is not gone on with."""

        def work() -> None:
            if all(walk.step(timezone.now()) for _ in range(steps)):
                self.walks.append(walk)

        self.walks.remove(walk)
        self.process(work, trouble)

    # -- jobs ------------------------------------------------------------------------------------------------

    def asked_to_run(self, task: str, kind: str, job: str, **_: Any) -> bool:
        self._asked.append(job)
        return True

    def jobs_to_do(self) -> list[str]:
        """What beat finds once nobody holds a job any more: leases run out, and what is waited for is
        over."""
        past = timezone.now() - timedelta(seconds=1)
        ReplayJob.objects.filter(lease_until__gt=past).update(lease_until=past)
        self._asked.clear()
        start_jobs()
        return list(self._asked)

    def bring_everything(self) -> None:
        """All that the feed and the KMAs have to say arrives."""
        self.arrive_at_feed()
        self.feed(list(self.unfed.items()))
        self.reports_arrive(self.reports)
        assert not self.unfed and not self.reports

    # -- messages --------------------------------------------------------------------------------------------

    def publish(self, key: str, label: str, *, strong: bool) -> None:
        id_ = Typed("string", f"ID:{label}") if strong else None
        self.broker.take(f"{ADDRESS}::{key}", Message(body=Typed("string", label), message_id=id_))
        self.truth.published[label] += 1

    def waiting(self, key: str) -> int:
        return len(self.store.queues[key].ready)

    def kma_takes(self, key: str, result: str) -> None:
        """The oldest message of a subscription: `handled`, `failed` (it will come again) or `dead`."""
        queue = self.store.queues[key]
        reference = queue.ready.popleft()
        queue.delivering.add(reference)
        if result == "handled":
            self.store.accept(reference)
            self.truth.ended[label_of(reference)] += 1
        elif result == "dead":
            self.store.die(reference)
        else:
            queue.delivering.discard(reference)
            queue.ready.append(reference)
        self._report(key, reference, result)

    def _report(self, key: str, reference: Reference, result: str) -> None:
        returned = self._returned(reference)
        if returned is None:
            return
        returned.outcome = {"handled": "handled", "failed": "failed_again", "dead": "dead_again"}[result]
        told = message_key(
            reference.message.message_id, reference.message.body_section, reference.message.properties
        )
        about = reports.message(
            told.text,
            weak=told.weak,
            replayed=True,
            dead_letter_queue=returned.death[0],
            dead_letter_id=returned.letter_id,
        )
        content = ReplayOutcome(
            run=reports.run_of(self.runs[key]),
            message=about,
            result="handled" if result == "handled" else "failed",
            occurred_at=timezone.now(),
        )
        self.reports.append(LetterReport(id=uuid4(), **settlement.ReplayOutcomes().columns(content)))

    def _returned(self, reference: Reference) -> Returned | None:
        origin = origin_of(reference.message)
        for returned in self.truth.returned:
            if (returned.death[0], returned.letter_id) == (origin.queue, origin.message_id):
                return returned
        return None

    def reports_arrive(self, chosen: Sequence[LetterReport], trouble: Trouble = NONE) -> None:
        def intake() -> None:
            with transaction.atomic():
                settlement.reports_arrived(chosen, timezone.now())

        lived = self.process(intake, trouble)
        stored = set(LetterReport.objects.values_list("pk", flat=True))
        if lived:
            self.reports = [each for each in self.reports if each.id not in stored]

    def restarts(self) -> None:
        """The broker: its messages are there, it counts anew what was added."""
        for queue in self.store.queues.values():
            queue.added, queue.acknowledged = queue.count, 0

    def stranger_takes(self, queue_name: str, index: int) -> None:
        """A letter that expired, or that somebody removed at the broker's console."""
        queue = self.store.queues[queue_name]
        reference = queue.ready[index]
        queue.ready.remove(reference)
        self.truth.ended[label_of(reference)] += 1
        self.truth.taken.add((queue_name, _number(reference)))

    # -- what is where ---------------------------------------------------------------------------------------

    def lying(self, queue_name: str) -> list[Death]:
        """The letters of a dead-letter queue."""
        return [(queue_name, _number(reference)) for reference in self.store.queues[queue_name].ready]

    def labels_at_the_broker(self) -> Counter[str]:
        """How often each message is there, in all queues but the feed's, which holds copies."""
        found: Counter[str] = Counter()
        for queue in self.store.queues.values():
            if queue.name != FEED:
                found.update(label_of(reference) for reference in queue.ready)
        return found

    def _noted_move(self, queue: StoredQueue, matches: Predicate, target: StoredQueue, most: int) -> int:
        before = list(queue.ready)
        moved = self._move(queue, matches, target, most)
        stayed = set(queue.ready)
        for reference in before:
            if reference not in stayed:
                death = (queue.name, _number(reference))
                assert death not in self.truth.moved, "a death was moved twice"
                self.truth.moved[death] = target.name
                if target.name in KEYS:
                    self.truth.returned.append(
                        Returned(death, reference.id, label_of(reference), target.name)
                    )
        return moved


def label_of(reference: Reference) -> str:
    return str(reference.message.body.value)


def _number(reference: Reference) -> int:
    number = origin_of(reference.message).message_id
    assert number is not None
    return number


def _destination() -> Any:
    return Destination.objects.get_or_create(name=ADDRESS)[0]
