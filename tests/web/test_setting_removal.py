"""Removing a launch setting: refused while something would be lost, else queues and rows go, also after a
kill."""

import os
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import (
    Activation,
    GroupMember,
    LaunchSetting,
    Pool,
    Run,
    Schedule,
    ScheduledGroup,
    Server,
    Timing,
)
from agents.provisioning.provision import provision_due
from agents.provisioning.topology import REMOVING, save_destination
from agents.reconciler import tend
from agents.settings import removal
from agents.settings.removal import finish_removals, remove_setting
from broker.management.desired_topology import Queue
from broker.management.queues import find
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from broker.port import Message, Outgoing
from console import broker as broker_service
from console.audit.log import no_record
from console.operations.refusals import Refused
from contract.typed import Typed
from failures.models import FailureProtocol
from tests.web.rows import NOW, api_client, make_person, make_setting

pytestmark = pytest.mark.both_databases


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    """The site speaks to a broker in memory."""
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    return broker


@pytest.fixture
def made(memory: MemoryBroker, pool: Pool) -> LaunchSetting:
    """Ready, with its queues."""
    setting = make_setting(pool, provision_state="pending", provisioned_hash="")
    provision_due(NOW)
    setting.refresh_from_db()
    assert setting.provision_state == "ready" and queues() >= {"orders", "DLQ.orders"}
    return setting


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("root", password="not-a-secret-in-tests")


def queues() -> set[str]:
    names = ("orders", "DLQ.orders")
    return {name for name in names if find(broker_service.management(), "listQueues", name)}


def ended_activation(setting: LaunchSetting, server: Server) -> Activation:
    activation = Activation.objects.create(setting=setting, state="succeeded", started_at=NOW, ended_at=NOW)
    Run.objects.create(activation=activation, server=server, epoch=1, wanted=False, closed_at=NOW)
    return activation


def publish(memory: MemoryBroker) -> None:
    memory.publisher().publish([Outgoing("demo.orders", Message(body=Typed("string", "{}")))])


def test_queues_and_rows_go_and_nothing_makes_them_again(made: LaunchSetting, server: Server) -> None:
    for _ in range(3):
        ended_activation(made, server)
    assert remove_setting(made, None, NOW)

    assert not LaunchSetting.objects.exists() and not Activation.objects.exists() and not Run.objects.exists()
    tend(NOW)
    assert queues() == set()


def test_protocols_stay_with_the_key(made: LaunchSetting, world_protocol: FailureProtocol) -> None:
    remove_setting(made, None, NOW)

    world_protocol.refresh_from_db()
    assert (world_protocol.setting, world_protocol.setting_key) == (None, "orders")


@pytest.fixture
def world_protocol(made: LaunchSetting, server: Server) -> FailureProtocol:
    from uuid import uuid4

    activation = ended_activation(made, server)
    return FailureProtocol.objects.create(
        id=uuid4(), spool=uuid4(), number=1, setting=made, setting_key=made.key, activation=activation,
        activation_uuid=activation.pk, epoch=1, server=server, server_name=server.name, agent=made.agent,
        outcome="raised", exception_type="KeyError", fingerprint="f", occurred_at=NOW,
    )  # fmt: skip


def _enable(setting: LaunchSetting) -> None:
    LaunchSetting.objects.filter(pk=setting.pk).update(enabled=True)


def _open_activation(setting: LaunchSetting) -> None:
    Activation.objects.create(setting=setting, state="stopped", started_at=NOW)


def _group(setting: LaunchSetting) -> None:
    GroupMember.objects.create(
        group=ScheduledGroup.objects.create(name="nightly"), setting=setting, position=1
    )


@pytest.mark.parametrize(
    ("prepare", "code"), [(_enable, "enabled"), (_open_activation, "not_ended"), (_group, "in_group")]
)
def test_what_is_in_use_is_not_removed(made: LaunchSetting, admin: User, prepare: Any, code: str) -> None:
    prepare(made)
    answer = api_client(admin).delete("/api/v1/settings/orders/")

    assert (answer.status_code, answer.json()["error"]) == (409, code)
    assert queues() == {"orders", "DLQ.orders"} and LaunchSetting.objects.get().wanted_hash != REMOVING


def test_a_setting_whose_queue_holds_messages_is_not_removed(
    memory: MemoryBroker, made: LaunchSetting, admin: User
) -> None:
    publish(memory)
    answer = api_client(admin).delete("/api/v1/settings/orders/")

    assert (answer.status_code, answer.json()["error"]) == (409, "holds_messages")
    assert "orders" in answer.json()["detail"] and "1" in answer.json()["detail"]
    made.refresh_from_db()
    assert made.provision_state == "ready"


def test_with_the_broker_away_nothing_is_removed(made: LaunchSetting, memory: MemoryBroker) -> None:
    memory.crash()
    with pytest.raises(Refused, match="The broker is not responding"):
        remove_setting(made, None, NOW)
    assert LaunchSetting.objects.get().provision_state == "ready"


def test_only_who_may_delete_settings_removes_one(made: LaunchSetting, operator: User, admin: User) -> None:
    assert api_client(operator).delete("/api/v1/settings/orders/").status_code == 403
    assert api_client(make_person("nobody")).delete("/api/v1/settings/orders/").status_code == 403
    assert api_client(admin).delete("/api/v1/settings/orders/").status_code == 204
    assert api_client(admin).delete("/api/v1/settings/orders/").status_code == 404


class Killed(BaseException):
    """The process is gone at this line."""


@pytest.mark.parametrize("step", ["_remove_queues", "_let_all_go", "_remove_row"])
def test_a_kill_before_any_step_is_made_good_by_tend(
    made: LaunchSetting, server: Server, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ended_activation(made, server)

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(removal, step, killed)
        remove_setting(made, None, NOW)
    assert LaunchSetting.objects.get().wanted_hash == REMOVING

    tend(NOW)
    assert not LaunchSetting.objects.exists() and queues() == set()


def test_messages_that_came_meanwhile_take_the_decision_back(
    made: LaunchSetting, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = removal._decide

    def late(*arguments: Any) -> None:
        decide(*arguments)
        publish(memory)

    monkeypatch.setattr(removal, "_decide", late)
    with pytest.raises(Refused, match="still has messages"):
        remove_setting(made, None, NOW)

    provision_due(NOW)
    made.refresh_from_db()
    assert made.provision_state == "ready" and made.wanted_hash == made.provisioned_hash
    assert finish_removals(NOW) == 0 and queues() == {"orders", "DLQ.orders"}


def test_a_setting_being_removed_is_neither_enabled_nor_made_again(
    made: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    removal._decide(made, None, NOW, no_record)
    save_destination(made.destination)  # type: ignore[arg-type]
    provision_due(NOW)

    made.refresh_from_db()
    assert made.wanted_hash == REMOVING and made.provision_state == "pending"
    assert finish_removals(NOW) == 1


def test_a_queue_of_somebody_else_is_left_alone(memory: MemoryBroker, made: LaunchSetting) -> None:
    """Provisioning failed because a queue of this name was at another address."""
    other = make_setting(
        made.pool, "taken", address="demo.taken", provision_state="failed", provisioned_hash=""
    )
    broker_service.management().call("broker", "createAddress", "foreign", "MULTICAST")
    import json

    wanted = {
        "name": "taken",
        "address": "foreign",
        "routing-type": "MULTICAST",
        "durable": True,
        "exclusive": False,
    }
    broker_service.management().call("broker", "createQueue", json.dumps(wanted), True)
    assert remove_setting(other, None, NOW)

    found = find(broker_service.management(), "listQueues", "taken")
    assert found is not None and found["address"] == "foreign"


def test_its_own_dead_letter_queue_goes_though_the_subscription_is_somebody_elses(
    memory: MemoryBroker, made: LaunchSetting
) -> None:
    """Provisioning makes the dead-letter queue first, then finds that the name of the subscription is
    taken."""
    broker_service.management().call("broker", "createAddress", "foreign", "MULTICAST")
    apply(broker_service.management(), [Queue("taken", "foreign")])
    other = make_setting(
        made.pool, "taken", address="demo.taken", provision_state="pending", provisioned_hash=""
    )
    provision_due(NOW)
    other.refresh_from_db()
    assert other.provision_state == "failed" and find(broker_service.management(), "listQueues", "DLQ.taken")
    assert remove_setting(other, None, NOW)

    assert find(broker_service.management(), "listQueues", "DLQ.taken") is None
    found = find(broker_service.management(), "listQueues", "taken")
    assert found is not None and found["address"] == "foreign"


def test_a_standalone_setting_needs_no_broker_and_its_schedule_goes_too(
    memory: MemoryBroker, pool: Pool, admin: User
) -> None:
    memory.crash()
    setting = LaunchSetting.objects.create(
        key="report", agent="demo.report", kind="standalone", timing=Timing.DELAYED, pool=pool
    )
    Schedule.objects.create(setting=setting, every_seconds=60)

    assert api_client(admin).delete("/api/v1/settings/report/").status_code == 204
    assert not Schedule.objects.exists()
