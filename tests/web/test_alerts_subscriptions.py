"""Subscriptions that stand still or that nobody consumes, on a real broker; KMAs that say they have lost
it."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from agents.models import Activation, Destination, LaunchSetting, Pool, Run, Server
from agents.provisioning import subscriptions
from agents.provisioning.provision import provision_setting
from agents.provisioning.queue_counts import queue_figures
from agents.provisioning.subscriptions import watch_subscriptions
from agents.provisioning.topology import save_destination, save_setting
from agents.settings.enable import enable_setting
from alerts import text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from broker.amqp.consumer import AmqpConsumer
from broker.port import Account, BrokerUnavailable, Message, Outgoing, Settle
from broker.stomp.client import StompPublisher
from console import broker as broker_service
from contract.messages import RunReport
from contract.records import RunState
from contract.typed import Typed
from tests.broker.houses import Owner
from tests.services import ArtemisService
from tests.web.rows import NOW, api_client, heartbeat_json, make_alive

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Subscription:
    """An enabled setting with a consumer that takes one message at a time and settles when it is told."""

    def __init__(self, artemis: ArtemisService, setting: LaunchSetting) -> None:
        self.artemis, self.setting, self.owner = artemis, setting, Owner()
        kma = Account(artemis.amqp_url, artemis.kma.user, artemis.kma.password)
        self.consumer = AmqpConsumer(kma, setting.subscribed.name, setting.key, self.owner, 1)

    def publish(self, count: int) -> None:
        account = Account(
            self.artemis.stomp_address, self.artemis.publisher.user, self.artemis.publisher.password
        )
        publisher = StompPublisher(account)
        publisher.publish(
            [Outgoing(self.setting.subscribed.name, Message(body=Typed("string", "x")))] * count
        )
        publisher.close()

    def until(self, **wanted: int) -> None:
        """The broker counts in its own time."""
        end = time.monotonic() + 30
        while True:
            found = queue_figures(self.setting, NOW)
            if all(getattr(found, name) == value for name, value in wanted.items()):
                return
            assert time.monotonic() < end, found
            time.sleep(0.05)


@pytest.fixture
def subscription(
    artemis: ArtemisService, settings: Any, monkeypatch: pytest.MonkeyPatch, pool: Pool, server: Server,
    request: pytest.FixtureRequest,
) -> Iterator[Subscription]:  # fmt: skip
    settings.MA_BROKER_STOMP = Account(artemis.stomp_address, artemis.ops.user, artemis.ops.password)
    monkeypatch.setattr(broker_service, "_connection", None)
    make_alive(server, now=NOW)
    key = f"s{abs(hash(request.node.name)) % 10**9}"
    destination = save_destination(Destination(name=f"t.{key}"))
    made = save_setting(LaunchSetting(key=key, agent="demo.orders", pool=pool, destination=destination))
    provision_setting(made.pk)
    made.refresh_from_db()
    enable_setting(made, by=None, now=NOW)
    subscription = Subscription(artemis, LaunchSetting.objects.get())
    yield subscription
    subscription.consumer.stop()
    broker_service.management().close()


def watch(kind_name: str, second: float) -> list[str]:
    """What beat does every ten seconds, so many seconds after NOW; the subjects of the alerts that are open
    then."""
    now = NOW + second * SECOND
    watch_subscriptions(now)
    if (kind := kind_of(kind_name)) is not None:
        evaluate_kind(kind, now)
    return list(Alert.objects.filter(kind=kind_name, state="open").values_list("subject", flat=True))


def over(kind: str, seconds: range) -> list[str]:
    """The last answer of a watch in these seconds."""
    return [watch(kind, second) for second in seconds][-1]


def test_a_subscription_that_is_fed_and_acknowledges_nothing_opens_an_alert_until_it_moves(
    subscription: Subscription,
) -> None:
    subscription.consumer.start()
    subscription.publish(3)
    subscription.until(waiting=2, in_delivery=1, consumers=1)
    assert over("subscription_stalled", range(0, 60, 10)) == []
    assert over("subscription_stalled", range(60, 90, 10)) == [subscription.setting.key]
    said = text.says(Alert.objects.get()).replace("\N{NO-BREAK SPACE}", " ")
    assert said == (
        f"“{subscription.setting.key}”: messages waiting: 2, consumers: 1, no acknowledgement for 1 min 20 s."
    )

    subscription.consumer.settle([(subscription.owner.got().tag, Settle.ACCEPT)])
    subscription.until(waiting=1, in_delivery=1)
    assert over("subscription_stalled", range(90, 130, 10)) == []


def test_one_that_is_slow_but_moves_opens_none(subscription: Subscription) -> None:
    subscription.consumer.start()
    subscription.publish(4)
    for step in range(3):
        subscription.until(waiting=3 - step, in_delivery=1)
        assert over("subscription_stalled", range(50 * step, 50 * (step + 1), 10)) == []
        subscription.consumer.settle([(subscription.owner.got().tag, Settle.ACCEPT)])


def test_an_enabled_setting_that_nobody_consumes_opens_an_alert_until_somebody_does(
    subscription: Subscription,
) -> None:
    subscription.publish(2)
    subscription.until(waiting=2, consumers=0)
    kind = "subscription_without_consumer"
    assert over(kind, range(0, 120, 10)) == []
    assert over(kind, range(120, 140, 10)) == [subscription.setting.key]
    subscription.consumer.start()
    subscription.until(consumers=1)
    assert over(kind, range(140, 180, 10)) == []


def test_one_that_is_disabled_or_started_by_schedule_needs_no_consumer(subscription: Subscription) -> None:
    LaunchSetting.objects.update(timing="DELAYED")
    assert over("subscription_without_consumer", range(0, 200, 20)) == []
    LaunchSetting.objects.update(timing="ASAP", enabled=False)
    assert over("subscription_without_consumer", range(200, 400, 20)) == []


def test_while_the_broker_does_not_answer_nothing_opens_and_nothing_closes(
    subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "subscription_without_consumer"
    subscription.until(consumers=0)
    assert over(kind, range(0, 140, 10)) == [subscription.setting.key]

    def away(_management: Any) -> Any:
        raise BrokerUnavailable("away")

    monkeypatch.setattr(subscriptions, "figures_of_all", away)
    assert over(kind, range(140, 400, 20)) == [subscription.setting.key]


def test_the_alert_closes_when_the_last_setting_that_is_on_is_disabled(subscription: Subscription) -> None:
    kind = "subscription_without_consumer"
    subscription.until(consumers=0)
    assert over(kind, range(0, 140, 10)) == [subscription.setting.key]
    LaunchSetting.objects.update(enabled=False)
    assert over(kind, range(140, 200, 10)) == []


@pytest.fixture
def reporting(setting: LaunchSetting, server: Server, settings: Any) -> Callable[..., list[str]]:
    """A heartbeat of a KMA with one run, and the alerts that are open after it."""
    make_alive(server, now=NOW)
    enable_setting(setting, by=None, now=NOW)
    activation = Activation.objects.get()
    run = Run.objects.get(activation=activation)
    client = api_client(server)

    def report(second: float, *, connected: bool) -> list[str]:
        told = RunReport(activation.pk, run.epoch, setting.key, RunState.RUNNING, connected=connected)
        answer = client.post("/api/v1/heartbeat/", heartbeat_json("srv-1", told), format="json")
        assert answer.status_code == 200
        now = NOW + second * SECOND
        Server.objects.update(last_seen_at=now)
        if (kind := kind_of("kma_without_broker")) is not None:
            evaluate_kind(kind, now)
        return list(
            Alert.objects.filter(kind="kma_without_broker", state="open").values_list("subject", flat=True)
        )

    return report


def test_a_kma_that_is_heard_and_has_lost_its_broker_opens_an_alert(
    reporting: Callable[..., list[str]],
) -> None:
    assert reporting(0, connected=True) == []
    assert reporting(10, connected=False) == reporting(60, connected=False) == []
    assert reporting(71, connected=False) == ["srv-1"]
    assert text.says(Alert.objects.get()) == (
        "The KMA of srv-1 is not connected to the broker: 1 instance is not receiving messages."
    )
    reporting(80, connected=True)
    assert reporting(111, connected=True) == []
