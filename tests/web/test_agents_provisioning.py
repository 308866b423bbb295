"""Wishes of settings, carried out on a real broker and read back."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agents.models import Destination, LaunchSetting, Pool, StateChange
from agents.provisioning.provision import (
    provision_all,
    provision_due,
    provision_setting,
    topology_differences,
)
from agents.provisioning.queue_counts import figures_of_all, queue_figures
from agents.provisioning.topology import save_destination, save_setting
from agents.settings.enable import enable_setting
from broker.port import Account, Message, Outgoing
from broker.stomp.client import StompPublisher
from console import broker as broker_service
from console.operations.refusals import Refused
from contract.typed import Typed
from tests.services import ArtemisService
from tests.web.rows import NOW, activate, api_client


@pytest.fixture
def house_broker(
    artemis: ArtemisService, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ArtemisService]:
    """The site speaks to the real broker with its operations account."""
    settings.MA_BROKER_STOMP = Account(artemis.stomp_address, artemis.ops.user, artemis.ops.password)
    monkeypatch.setattr(broker_service, "_connection", None)
    yield artemis
    broker_service.management().close()


@pytest.fixture
def wish(pool: Pool, request: pytest.FixtureRequest) -> LaunchSetting:
    """A saved setting with names of its own: the broker outlives the test."""
    key = f"k{abs(hash(request.node.name)) % 10**9}"
    destination = save_destination(Destination(name=f"t.{key}", max_attempts=4, delay_ms=100))
    return save_setting(LaunchSetting(key=key, agent="demo.orders", pool=pool, destination=destination))


def queue(name: str) -> dict[str, str]:
    options = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
    rows = json.loads(broker_service.management().call("broker", "listQueues", options, 1, 10))["data"]
    return dict(rows[0]) if rows else {}


def test_a_saved_setting_is_made_on_the_broker_and_only_then_enabled(
    house_broker: ArtemisService, wish: LaunchSetting
) -> None:
    with pytest.raises(Refused, match="The broker is still creating the queues of this setting."):
        enable_setting(wish, None, NOW)
    provision_setting(wish.pk)

    wish.refresh_from_db()
    assert (wish.provision_state, wish.provision_problem) == ("ready", "")
    assert wish.provisioned_hash == wish.wanted_hash
    assert (queue(wish.key)["address"], queue(wish.key)["exclusive"]) == (f"t.{wish.key}", "true")
    assert queue(f"DLQ.{wish.key}")["address"] == "MA.DLA"
    assert topology_differences(wish) == topology_differences() == []
    assert activate(wish, None, NOW).state == "pending"


def test_a_disabled_setting_gathers_what_is_published(
    house_broker: ArtemisService, wish: LaunchSetting
) -> None:
    provision_setting(wish.pk)
    publisher = StompPublisher(
        Account(house_broker.stomp_address, house_broker.publisher.user, house_broker.publisher.password)
    )
    publisher.publish([Outgoing(f"t.{wish.key}", Message(body=Typed("string", "{}"))) for _ in range(3)])
    publisher.close()

    figures = queue_figures(wish, NOW)
    while figures.waiting < 3:  # the broker counts a moment after it has confirmed
        figures = queue_figures(wish, NOW)
    assert (figures.waiting, figures.delayed, figures.in_delivery, figures.consumers, figures.dead) == (
        3,
        0,
        0,
        0,
        0,
    )
    assert figures_of_all([wish, LaunchSetting(key="nowhere")], NOW) == {wish.key: figures}


def test_the_api_shows_the_brokers_figures(
    house_broker: ArtemisService, wish: LaunchSetting, viewer: Any
) -> None:
    provision_setting(wish.pk)
    body = api_client(viewer).get(f"/api/v1/queues/{wish.key}/").json()

    assert set(body) == {"waiting", "delayed", "in_delivery", "consumers", "dead", "at"}
    assert body["waiting"] == 0


def test_spread_many_is_not_exclusive_and_a_change_of_it_is_carried_out(
    house_broker: ArtemisService, wish: LaunchSetting
) -> None:
    provision_setting(wish.pk)
    wish.refresh_from_db()
    wish.spread = "MANY"
    save_setting(wish)
    assert LaunchSetting.objects.get(pk=wish.pk).provision_state == "pending"
    provision_due(NOW)

    assert LaunchSetting.objects.get(pk=wish.pk).provision_state == "ready"
    assert queue(wish.key)["exclusive"] == "false"


def test_a_new_policy_of_the_destination_reaches_the_broker(
    house_broker: ArtemisService, wish: LaunchSetting
) -> None:
    provision_setting(wish.pk)
    destination = Destination.objects.get(name=f"t.{wish.key}")
    destination.max_attempts = 7
    save_destination(destination)
    provision_due(NOW)

    found = json.loads(
        broker_service.management().call("broker", "getAddressSettingsAsJSON", destination.name)
    )
    assert found["maxDeliveryAttempts"] == 7


def test_what_somebody_took_away_is_seen_and_comes_back(
    house_broker: ArtemisService, wish: LaunchSetting
) -> None:
    provision_setting(wish.pk)
    broker_service.management().call("broker", "destroyQueue", wish.key)
    assert [str(difference) for difference in topology_differences(wish)] == [
        f"queue {wish.key}: expected on t.{wish.key}, found nothing"
    ]
    provision_all()

    assert topology_differences(wish) == []


def test_what_cannot_be_made_fails_with_the_reason_and_cannot_be_enabled(
    house_broker: ArtemisService, wish: LaunchSetting, pool: Pool
) -> None:
    provision_setting(wish.pk)
    # The subscription's name is taken by a queue of another address.
    other = Destination.objects.create(name=f"t.{wish.key}.other")
    LaunchSetting.objects.filter(pk=wish.pk).update(destination=other)
    moved = LaunchSetting.objects.select_related("destination").get(pk=wish.pk)
    save_setting(moved)
    provision_due(NOW)

    moved.refresh_from_db()
    assert moved.provision_state == "failed"
    assert f"found t.{wish.key}" in moved.provision_problem
    assert StateChange.objects.filter(what="provision", new="failed").count() == 1
    with pytest.raises(Refused, match=f"found t.{wish.key}"):
        enable_setting(moved, None, NOW)


def test_while_the_broker_is_away_the_wish_stays_pending_with_the_reason(wish: LaunchSetting) -> None:
    provision_setting(wish.pk)

    wish.refresh_from_db()
    assert wish.provision_state == "pending"
    assert "no connection" in wish.provision_problem
