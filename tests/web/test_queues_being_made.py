"""A queue that is not there is no broker that is away, and what the broker says stays in the log."""

from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting, ProvisionState
from agents.provisioning import queue_counts
from broker.management.queues import HeavyQueue
from broker.port import BrokerUnavailable, ManagementFailed
from dlq.models import DeadLetter
from ma_site.pages import parts
from tests.web.factories import World
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in

KEY = "mail-send"
RAW = "Problem while retrieving attribute MessageCount"
AWAY = "The broker is not responding"


@pytest.fixture
def client(world: World) -> Client:
    return signed_in(world, "chief")


def without_queues(monkeypatch: pytest.MonkeyPatch, *keys: str) -> None:
    """The broker counts all but these; none named: none at all."""
    counts = broker_figures(waiting=3, dead=2)

    def some(setting: LaunchSetting, now: Any) -> Any:
        if not keys or setting.key in keys:
            raise ManagementFailed(RAW)
        return counts(setting, now)

    broker_answers(monkeypatch, some)
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 2)


def provisioned(state: ProvisionState) -> None:
    LaunchSetting.objects.filter(key=KEY).update(provision_state=state)


def test_the_list_of_queues_says_that_one_is_being_made(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_queues(monkeypatch, KEY)
    provisioned(ProvisionState.PENDING)
    text = looked_at(client, "/dead-letters/").text
    assert "the queue is being created" in text and RAW not in text and AWAY not in text


def test_one_that_is_gone_is_told_from_one_that_is_being_made(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_queues(monkeypatch, KEY)
    provisioned(ProvisionState.READY)
    text = looked_at(client, "/dead-letters/").text
    assert "the broker has no such queue" in text and "being created" not in text and AWAY not in text


def test_where_every_queue_is_being_made_the_broker_is_not_said_to_be_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_queues(monkeypatch)
    LaunchSetting.objects.update(provision_state=ProvisionState.PENDING)
    text = looked_at(client, "/dead-letters/").text
    assert AWAY not in text and text.count("the queue is being created") > 1


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (ProvisionState.PENDING, "The broker is creating the queues"),
        (ProvisionState.READY, "The broker is not reporting figures for this setting"),
    ],
)
def test_the_page_of_the_setting_says_it_too(
    client: Client, monkeypatch: pytest.MonkeyPatch, state: ProvisionState, said: str
) -> None:
    without_queues(monkeypatch, KEY)
    provisioned(state)
    text = looked_at(client, f"/settings/{KEY}/").text
    assert said in text and RAW not in text and AWAY not in text
    listed = looked_at(client, f"/dead-letters/{KEY}/").text
    assert ("the queue is being created" in listed) is (state == ProvisionState.PENDING) and RAW not in listed


def test_alone_it_is_asked_whether_the_queue_is_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    without_queues(monkeypatch, KEY)
    setting, there = world.settings[KEY], [False]
    monkeypatch.setattr(
        queue_counts, "find", lambda _management, _what, name: {"name": name} if there[0] else None
    )
    assert queue_counts.figures_of(setting).problem == queue_counts.MISSING
    there[0] = True
    found = queue_counts.figures_of(setting)
    assert found.problem == queue_counts.REFUSED and found.stale


def test_while_the_broker_is_away_nothing_else_is_said(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_queues(monkeypatch, KEY)
    provisioned(ProvisionState.PENDING)
    looked_at(client, "/dead-letters/")

    def away(*_arguments: Any) -> NoReturn:
        raise BrokerUnavailable("no connection")

    broker_answers(monkeypatch, away)
    monkeypatch.setattr(queue_counts, "figures_of_all", away)
    queue_counts.forget()
    text = looked_at(client, "/dead-letters/").text
    assert AWAY in text and "being created" not in text


# -- health --------------------------------------------------------------------------------------------------


def test_health_knows_nothing_of_settings_on_a_broker_that_is_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_arguments: Any) -> NoReturn:
        raise BrokerUnavailable("no connection")

    LaunchSetting.objects.filter(provision_state=ProvisionState.FAILED).update(
        provision_state=ProvisionState.READY
    )
    monkeypatch.setattr(parts, "_broker_says", away)
    assert (
        "Settings on the broker degraded unknown: the broker is not responding"
        in looked_at(client, "/health/").text
    )
    queue_counts.forget()
    monkeypatch.setattr(parts, "_broker_says", lambda: ("2.40", 1, 2))
    monkeypatch.setattr(parts, "message_count", lambda _queue: 0)
    assert "Settings on the broker ok in sync" in looked_at(client, "/health/").text


def test_the_line_of_the_disk_names_what_fills_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_broker_says", lambda: ("2.40", 1, 85))
    monkeypatch.setattr(parts, "message_count", lambda _queue: 0)
    monkeypatch.setattr(parts, "management", lambda: None)
    heavy = [HeavyQueue(f"DLQ.{KEY}", 12_034, 50 * 1024 * 1024), HeavyQueue("orders", 1, 2048), None]
    monkeypatch.setattr(parts, "heaviest_queue", lambda _management: heavy.pop(0))
    DeadLetter.objects.filter(queue=f"DLQ.{KEY}").delete()
    row = DeadLetter.objects.order_by("pk").first()
    assert row is not None
    DeadLetter.objects.filter(pk=row.pk).update(
        queue=f"DLQ.{KEY}", state="dead", seen_at=timezone.now() - timedelta(days=3)
    )
    text = looked_at(client, "/health/").text
    assert (
        f"largest queue: DLQ.{KEY}, 12,034 messages, 50 MiB; the oldest message has been in the DLQ for 3 d"
        in text
    )
    assert "largest queue: orders, 1 message, 2 KiB" in looked_at(client, "/health/").text
    assert "largest queue" not in looked_at(client, "/health/").text
