"""Activations that drain their subscription on a real broker, whose counts decide. A consumer of ours plays
the KMA."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from agents.activations.drains import watch_drains
from agents.activations.end import end_activations
from agents.activations.operations import start_activation
from agents.models import Activation, Destination, LaunchSetting, Pool, Run, Server, Trigger
from agents.provisioning.provision import provision_setting
from agents.provisioning.queue_counts import queue_figures
from agents.provisioning.topology import save_destination, save_setting
from broker.amqp.consumer import AmqpConsumer
from broker.port import Account, Message, Outgoing, Settle
from broker.stomp.client import StompPublisher
from console import broker as broker_service
from contract.typed import Typed
from tests.broker.houses import Owner
from tests.services import ArtemisService
from tests.web.rows import NOW, make_alive

MANY = 30


class Drain:
    """An activation of a setting of its own, and the hands of its KMA."""

    def __init__(self, artemis: ArtemisService, setting: LaunchSetting) -> None:
        self.artemis, self.setting, self.owner = artemis, setting, Owner()
        self.now = NOW
        kma = Account(artemis.amqp_url, artemis.kma.user, artemis.kma.password)
        self.consumer = AmqpConsumer(kma, setting.subscribed.name, setting.key, self.owner, MANY)

    def publish(self, count: int) -> None:
        account = Account(
            self.artemis.stomp_address, self.artemis.publisher.user, self.artemis.publisher.password
        )
        publisher = StompPublisher(account)
        message = Message(body=Typed("string", "drained"))
        publisher.publish([Outgoing(self.setting.subscribed.name, message)] * count)
        publisher.close()

    def handle(self, settle: Settle, count: int = 1) -> None:
        for _ in range(count):
            self.consumer.settle([(self.owner.got().tag, settle)])

    def until(self, *, waiting: int = 0, delayed: int = 0, in_delivery: int = 0) -> None:
        """The broker settles in its own time."""

        def seen() -> tuple[int, int, int]:
            found = queue_figures(self.setting, NOW)
            return found.waiting, found.delayed, found.in_delivery

        end = time.monotonic() + 30
        while seen() != (waiting, delayed, in_delivery):
            assert time.monotonic() < end, seen()
            time.sleep(0.05)

    def look(self, after: float = 2.0) -> Activation:
        """The next look, so many seconds later by the clock of the MA."""
        self.now += timedelta(seconds=after)
        watch_drains(self.now)
        return Activation.objects.get()


@pytest.fixture
def start(
    artemis: ArtemisService, settings: Any, monkeypatch: pytest.MonkeyPatch, pool: Pool, server: Server,
    request: pytest.FixtureRequest, django_capture_on_commit_callbacks: Any,
) -> Iterator[Callable[..., Drain]]:  # fmt: skip
    settings.MA_BROKER_STOMP = Account(artemis.stomp_address, artemis.ops.user, artemis.ops.password)
    monkeypatch.setattr(broker_service, "_connection", None)
    make_alive(server, now=NOW)
    drains = []

    def started(delay_ms: int, messages: int, **fields: Any) -> Drain:
        key = f"d{abs(hash(request.node.name)) % 10**9}"
        destination = save_destination(Destination(name=f"t.{key}", delay_ms=delay_ms))
        wish = LaunchSetting(
            key=key, agent="demo.orders", pool=pool, destination=destination, timing="DELAYED", **fields
        )
        setting = save_setting(wish)
        provision_setting(setting.pk)
        LaunchSetting.objects.update(enabled=True)
        drain = Drain(artemis, LaunchSetting.objects.get())
        drains.append(drain)
        drain.publish(messages)
        drain.until(waiting=messages)
        with django_capture_on_commit_callbacks(execute=True):
            start_activation(drain.setting, Trigger.PERSON, None, NOW)
        drain.consumer.start()
        return drain

    yield started
    for drain in drains:
        drain.consumer.stop()
    broker_service.management().close()


def test_a_stream_that_never_ends_does_not_keep_it_open(start: Callable[..., Drain]) -> None:
    drain = start(delay_ms=1500, messages=3)
    drain.handle(Settle.ACCEPT, 2)
    endings = []
    for _ in range(3):
        drain.publish(1)
        drain.handle(Settle.ACCEPT)
        drain.until(in_delivery=1)
        endings.append(drain.look().ending)
    drain.handle(Settle.ACCEPT)
    drain.publish(1)
    drain.until(in_delivery=1)

    assert [*endings, drain.look().ending] == ["", "", "", "drained"]


def test_thirty_messages_of_which_some_are_delayed_drain_well(start: Callable[..., Drain]) -> None:
    drain = start(delay_ms=1500, messages=MANY)
    activation = Activation.objects.get()
    assert (activation.waiting_at_start, activation.added_at_start) == (MANY, MANY)

    drain.handle(Settle.ACCEPT, MANY - 6)
    drain.handle(Settle.FAIL, 6)
    drain.until(delayed=6)
    assert [drain.look().ending for _ in range(5)] == [""] * 5
    drain.handle(Settle.ACCEPT, 6)
    drain.until()

    assert [drain.look().ending for _ in range(4)] == ["", "", "", "drained"]
    activation = Activation.objects.get()
    assert activation.added_seen == MANY, "a redelivery is no new message"
    Run.objects.update(state="finished", closed_at=NOW)
    end_activations(drain.now)
    assert Activation.objects.get().state == "succeeded"


def test_one_that_stays_delayed_ends_it_with_an_error_and_is_kept(start: Callable[..., Drain]) -> None:
    drain = start(delay_ms=600_000, messages=3, drain_wait_seconds=60.0)
    drain.handle(Settle.ACCEPT, 2)
    drain.handle(Settle.FAIL)
    drain.until(delayed=1)
    assert drain.look().ending == ""
    assert drain.look(after=59).ending == ""

    assert drain.look(after=1).ending == "waited"
    assert not Run.objects.get().wanted
    Run.objects.update(state="finished", closed_at=NOW)
    end_activations(drain.now)
    assert Activation.objects.get().state == "failed"
    drain.until(delayed=1)


def test_messages_that_come_later_are_handled_within_a_limit(start: Callable[..., Drain]) -> None:
    drain = start(delay_ms=1000, messages=1, drain_limit_minutes=60)
    drain.handle(Settle.ACCEPT)
    drain.until()
    drain.look()
    drain.publish(1)
    drain.handle(Settle.ACCEPT)
    drain.until()

    assert [drain.look(after=4).ending for _ in range(3)] == ["", "", "drained"]


def test_the_minutes_end_it_though_messages_keep_coming(start: Callable[..., Drain]) -> None:
    drain = start(delay_ms=1000, messages=1, drain_limit_minutes=1)
    assert drain.look(after=59).ending == ""

    assert drain.look(after=1).ending == "limit"
    drain.handle(Settle.ACCEPT)


def test_while_the_broker_is_away_only_time_decides(
    start: Callable[..., Drain], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain = start(delay_ms=1000, messages=0, drain_limit_minutes=1)
    drain.look()
    present = broker_service._connection
    settings.MA_BROKER_STOMP = Account("127.0.0.1:1", "nobody", "")
    monkeypatch.setattr(broker_service, "_connection", None)

    assert drain.look(after=30).ending == ""
    assert drain.look(after=28).ending == "limit"
    monkeypatch.setattr(broker_service, "_connection", present)
