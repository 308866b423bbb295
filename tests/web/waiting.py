"""Messages that wait, are delayed, in delivery or held back at a memory broker: for tests of what people
see."""

from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Destination, LaunchSetting, Run
from broker.management import waiting_messages
from broker.management.desired_topology import base_topology, hold_topology, setting_topology
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker, MemoryConsumer
from broker.port import Delivery, Message, Outgoing, Settle
from console.operations.operation import perform
from contract.names import connection_name, hold_queue
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq.index.broker import LetterQueues
from dlq.models.message_action import WaitingAction
from dlq.subscriptions.operations import BY_KIND
from dlq.subscriptions.requests import Selection, listed_messages
from failures.intake.batch import accept_batch
from tests.broker.houses import eventually
from tests.dlq.jobs import actions, carry_out
from tests.web import reports

DLA = "MA.DLA"
HOURS = RedeliveryPolicy(max_attempts=5, delay=3_600_000)


class Owner:
    """Of a consumer: keeps what was delivered."""

    def __init__(self) -> None:
        self.got: list[Delivery] = []

    def opened(self) -> None: ...

    def lost(self, reason: str, permanent: bool) -> None: ...

    def delivered(self, delivery: Delivery) -> None:
        self.got.append(delivery)

    def settled(self, tag: int, problem: str | None) -> None: ...


class WaitingHouse:
    """A broker with the queues of one setting."""

    def __init__(self, setting: LaunchSetting) -> None:
        self.setting, self.key = setting, setting.key
        Destination.objects.filter(name=self.address).update(
            max_attempts=HOURS.max_attempts, delay_ms=HOURS.delay, multiplier=HOURS.multiplier
        )
        setting.subscribed.refresh_from_db()
        self.broker = MemoryBroker()
        self.management, self.browser = self.broker.management(), self.broker.browser()
        self.queues = LetterQueues(self.management, self.browser, DLA)
        apply(self.management, base_topology(DLA))
        apply(self.management, setting_topology(self.key, self.address, HOURS, False, DLA))
        self._consumers: list[MemoryConsumer] = []

    @property
    def address(self) -> str:
        return self.setting.subscribed.name

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.stop()

    def answers(self, monkeypatch: pytest.MonkeyPatch, *places: str) -> None:
        """Instead of the real one, where it is asked for; no worker is told of anything."""
        for place in places:
            monkeypatch.setattr(place, lambda: self.management)
        monkeypatch.setattr("dlq.subscriptions.requests.management", lambda: self.management)
        monkeypatch.setattr("dlq.subscriptions.queries.management", lambda: self.management)
        monkeypatch.setattr("dlq.subscriptions.queries.AmqpBrowser", lambda account, timeout: self.browser)
        monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: None)

    def publish(self, *names: str, body: str = "", **properties: Typed) -> None:
        for name in names:
            message = Message(
                body=Typed("string", body or name), message_id=Typed("string", name), properties=properties
            )
            self.broker.publisher().publish([Outgoing(self.address, message)])

    def delay(self, *names: str) -> None:
        """Publishes them and fails them once."""
        before = self.count("ScheduledCount")
        owner, consumer = self._consume(len(names))
        self.publish(*names)
        eventually(lambda: len(owner.got) == len(names))
        consumer.settle([(delivery.tag, Settle.FAIL) for delivery in owner.got])
        eventually(lambda: self.count("ScheduledCount") == before + len(names))
        consumer.stop()

    def hold(self) -> None:
        """Puts apart what waits."""
        apply(self.management, hold_topology(self.key, DLA))
        for number in self.numbers("waiting"):
            waiting_messages.move(self.management, self.key, number, hold_queue(self.key))

    def deliver(self, count: int, server: str = "srv-1") -> None:
        """The first messages that wait are in delivery on that server from now on."""
        owner, _consumer = self._consume(count, connection_name(server))
        eventually(lambda: len(owner.got) == count)

    def _consume(self, count: int, name: str = "test") -> tuple[Owner, MemoryConsumer]:
        owner = Owner()
        consumer = self.broker.consumer(self.address, self.key, owner, count, name=name)
        consumer.start()
        self._consumers.append(consumer)
        eventually(lambda: self.count("ConsumerCount") > 0)
        return owner, consumer

    def count(self, name: str = "MessageCount", queue: str = "") -> int:
        return int(self.management.attribute(f"queue.{queue or self.key}", name))

    def held(self) -> int:
        return self.count(queue=hold_queue(self.key))

    def numbers(self, part: str) -> list[int]:
        found = listed_messages(self.management, self.key, part)
        assert found is not None
        return [message.number for message in found]

    def ask(
        self, kind: str, part: str, numbers: list[int] | None = None, *, by: User | None, reason: str = "why"
    ) -> WaitingAction:
        done = perform(BY_KIND[kind], self.setting, by, chosen=Selection(part, numbers), reason=reason)
        made: WaitingAction = done.made
        return made

    def work(self) -> WaitingAction:
        """What a worker does with the newest action, to its end."""
        action = WaitingAction.objects.latest("created_at")
        carry_out(actions(self.queues), action)
        action.refresh_from_db()
        return action


def failed(setting: LaunchSetting, message_id: str, attempt: int, at: datetime | None = None) -> None:
    """The protocol of an attempt, as a KMA reports it."""
    server = reports.server()
    row = Run.objects.filter(activation__setting=setting).first() or reports.run(setting, server)
    about = reports.message(message_id, attempt, queue=setting.key, destination=setting.subscribed.name)
    protocol = reports.protocol(reports.run_of(row), about, occurred_at=at or timezone.now())
    accept_batch(server, reports.Spool().batch(protocol), timezone.now())
