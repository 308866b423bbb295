"""What lies in the queues, minute by minute: the last value of a span, and a gap where nobody could ask."""

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.models import LaunchSetting, Pool
from agents.provisioning.provision import provision_due
from broker.management.desired_topology import base_topology
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from broker.port import BrokerError, ManagementFailed, Message, Outgoing
from console import broker as broker_service
from contract.typed import Typed
from metrics import rollup, sampling
from metrics.models import Day, Hour, MetricsMark, ScopeMinute
from metrics.queries import Point, scope_of, series
from tests.web.rows import make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    apply(broker.management(), base_topology("MA.DLA"))
    return broker


@pytest.fixture
def orders(pool: Pool, memory: MemoryBroker) -> LaunchSetting:
    return provisioned(pool, "orders")


def provisioned(pool: Pool, key: str) -> LaunchSetting:
    made = make_setting(pool, key, address=f"t.{key}", provision_state="pending", provisioned_hash="")
    provision_due(NOON)
    return made


def publish(memory: MemoryBroker, key: str, number: int, age: float | None = 60.0) -> None:
    made = None if age is None else datetime.now(UTC) - timedelta(seconds=age)
    message = Message(Typed("string", "x"), created_at=made)
    memory.publisher().publish([Outgoing(f"t.{key}", message)] * number)


def points(scope: str, minutes: int) -> tuple[Point, ...]:
    end = NOON + minutes * MINUTE
    return series(scope, NOON, end, end + MINUTE).points


def waiting(scope: str, minutes: int) -> list[int | None]:
    return [point.waiting for point in points(scope, minutes)]


def test_each_minute_has_its_depths_and_a_minute_without_the_broker_has_none(
    memory: MemoryBroker, orders: LaunchSetting, pool: Pool
) -> None:
    other = provisioned(pool, "other")
    publish(memory, "orders", 3)
    sampling.sample(NOON)
    publish(memory, "other", 2, age=600)
    sampling.sample(NOON + MINUTE)
    memory.crash()
    sampling.sample(NOON + 2 * MINUTE)
    memory.restart()
    sampling.sample(NOON + 3 * MINUTE)
    assert waiting(scope_of(orders.pk), 5) == [3, 3, None, 3, None]
    assert waiting(scope_of(other.pk), 4) == [0, 2, None, 2]
    assert waiting("*", 5) == [3, 5, None, 5, None]
    first, second = points("*", 2)
    assert (first.dead, first.delayed, first.in_delivery) == (0, 0, 0)
    assert first.oldest_seconds is not None and 60 <= first.oldest_seconds < 300
    assert second.oldest_seconds is not None and 600 <= second.oldest_seconds < 900
    # Of hours and days the last known value.
    for table in (Hour, Day):
        assert table._default_manager.get(scope__key="*").waiting == 5


def test_of_a_message_without_a_time_the_age_is_unknown_and_so_is_that_of_all(
    memory: MemoryBroker, orders: LaunchSetting, pool: Pool
) -> None:
    empty = provisioned(pool, "empty")
    publish(memory, "orders", 1, age=None)
    sampling.sample(NOON)
    assert points(scope_of(orders.pk), 1)[0].oldest_seconds is None
    assert points(scope_of(empty.pk), 1)[0].oldest_seconds == 0
    assert points("*", 1)[0].oldest_seconds is None and waiting("*", 1) == [1]


def test_in_a_minute_one_asks(memory: MemoryBroker, orders: LaunchSetting) -> None:
    sampling.sample(NOON)
    publish(memory, "orders", 3)
    sampling.sample(NOON + timedelta(seconds=20))
    assert waiting("*", 1) == [0]
    assert MetricsMark.objects.count() == 1


def test_a_setting_without_its_queues_is_a_gap(
    memory: MemoryBroker, orders: LaunchSetting, pool: Pool
) -> None:
    missing = make_setting(pool, "missing")
    sampling.sample(NOON)
    assert waiting(scope_of(missing.pk), 1) == [None] and waiting("*", 1) == [0]


def test_ages_are_asked_for_a_bounded_time_and_the_next_minute_begins_with_others(
    memory: MemoryBroker, orders: LaunchSetting, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ["orders", *(provisioned(pool, f"s{number}").key for number in range(3))]
    for key in keys:
        publish(memory, key, 1)
    asked: list[str] = []
    clock = [0.0]

    def slow(_management: Any, queue: str) -> float:
        asked.append(queue)
        clock[0] += 1.5
        return 7.0

    monkeypatch.setattr(sampling, "oldest_age", slow)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for minute in range(4):
        sampling.sample(NOON + minute * MINUTE)
    assert len(asked) == 8 and set(asked) == set(keys)


def test_a_queue_that_tells_no_age_keeps_nobody_elses(
    memory: MemoryBroker, orders: LaunchSetting, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = provisioned(pool, "other")
    for key in ("orders", "other"):
        publish(memory, key, 1)

    def one(_management: Any, queue: str) -> float:
        if queue == "orders":
            raise ManagementFailed("no such queue")
        return 7.0

    monkeypatch.setattr(sampling, "oldest_age", one)
    sampling.sample(NOON)
    assert points(scope_of(orders.pk), 1)[0].oldest_seconds is None
    assert points(scope_of(other.pk), 1)[0].oldest_seconds == 7


def test_a_broker_that_refuses_is_a_gap(orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Any:
        raise BrokerError("no")

    monkeypatch.setattr(sampling, "figures_of_all", refuses)
    sampling.sample(NOON)
    assert not ScopeMinute.objects.exists()


def test_depths_and_what_was_handled_share_a_row(memory: MemoryBroker, orders: LaunchSetting) -> None:
    from tests.web.test_minute_figures import Hall

    publish(memory, "orders", 3)
    hall = Hall()
    hall.send(hall.minute())
    sampling.sample(NOON)
    rollup.fold_all(NOON + 2 * MINUTE)
    sampling.sample(NOON + MINUTE)
    hall.send(hall.minute(NOON + MINUTE))
    rollup.fold_all(NOON + 3 * MINUTE)
    for scope in ("*", scope_of(orders.pk)):
        assert [(point.waiting, point.handled) for point in points(scope, 2)] == [(3, 10), (3, 10)]
        assert Hour.objects.get(scope__key=scope).succeeded == 16
        assert Hour.objects.get(scope__key=scope).waiting == 3
