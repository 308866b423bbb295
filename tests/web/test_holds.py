"""Holds of subscriptions beside what else goes on: saving, provisioning, other replays, rows of before."""

import os
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.utils import timezone

from agents.models import Destination, Hold, LaunchSetting, Pool
from agents.provisioning import provision
from agents.provisioning.provision import provision_all, provision_due, steps_of
from agents.provisioning.topology import REMOVING, save_destination
from broker.amqp.codec import encode
from broker.management.queues import find
from broker.management.topology import apply, found_policy
from broker.memory.broker import MemoryBroker
from broker.port import Management, Message, Outgoing
from console import broker as broker_service
from console.jobs.engine import Wait, claim, start_due
from console.operations.operation import perform
from console.operations.refusals import Refused
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.index.walk_ids import DeadLetterIdentifier, IndexedRow
from dlq.models import ReplayJob
from dlq.queues.adoption import _shares
from dlq.queues.operations import check_foreign_queue
from dlq.replay.operations import PauseReplay
from dlq.replay.worker import hold
from dlq.replay.worker.step import ReplayWorker
from tests.web.rows import NOW, make_setting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
MINUTE = timedelta(minutes=1)


def no_queues() -> NoReturn:
    raise AssertionError("nothing is moved here")


WORKER = ReplayWorker(no_queues)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    return broker


@pytest.fixture
def orders(memory: MemoryBroker, pool: Pool) -> LaunchSetting:
    """Ready, with its queues."""
    setting = make_setting(pool, provision_state="pending", provisioned_hash="")
    provision_due(NOW)
    setting.refresh_from_db()
    assert setting.provision_state == "ready"
    return setting


def broker() -> Management:
    return broker_service.management()


def wanted(setting: LaunchSetting, **fields: Any) -> ReplayJob:
    """A replay that is to go ahead of what waits."""
    return ReplayJob.objects.create(
        setting=setting, setting_key=setting.key, target_key=setting.key, source_queue=f"DLQ.{setting.key}",
        **{"scope": "matching", "in_order": "ahead", "hold_minutes": 60, "hold": "wanted", "state": "planned"}
        | fields,
    )  # fmt: skip


def holding(setting: LaunchSetting, **fields: Any) -> ReplayJob:
    now = timezone.now()
    job = wanted(setting, **{"hold": "held", "held_at": now, "hold_until": now + 60 * MINUTE} | fields)
    LaunchSetting.objects.filter(pk=setting.pk).update(hold=Hold.AHEAD, held_by=job.pk)
    setting.refresh_from_db()
    apply(broker(), steps_of(setting))
    return job


def taken(job: ReplayJob) -> ReplayJob:
    found = claim(WORKER, job.pk, timezone.now())
    assert found is not None
    return found


def queue(name: str) -> dict[str, str]:
    found = find(broker(), "listQueues", name)
    assert found is not None
    return dict(found)


def save_policy(setting: LaunchSetting) -> None:
    """Saved by a person, and carried out by another process."""
    destination = Destination.objects.get(pk=setting.subscribed.pk)
    destination.max_attempts = 7
    save_destination(destination)
    provision_due(timezone.now())


def attempts_at(setting: LaunchSetting) -> int:
    return int(found_policy(broker(), setting.subscribed.name)["maxDeliveryAttempts"])


def before_first(call: Callable[..., Any], do: Callable[[], None]) -> Callable[..., Any]:
    """`call`, and once before it `do`."""
    to_do = [do]

    def wrapped(*arguments: Any, **named: Any) -> Any:
        while to_do:
            to_do.pop()()
        return call(*arguments, **named)

    return wrapped


# -- other replays -------------------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_who_holds_is_started_though_an_older_replay_of_its_queue_waits_for_it(
    orders: LaunchSetting, sent: list[str], state: str
) -> None:
    now = timezone.now()
    waits = wanted(orders, created_at=now - MINUTE, lease_until=now, wait_reason="held_by_another")
    holds = holding(orders, state=state, created_at=now, lease_until=now, wait_reason="ahead")
    start_due(WORKER, now)
    assert sent[0] == str(holds.pk) and str(waits.pk) in sent


def test_a_replay_is_not_paused_while_its_hold_ends(orders: LaunchSetting) -> None:
    """The runs take from a subscription that delivers nothing: nobody would end that."""
    job = holding(orders, state="running", hold="ending")
    with pytest.raises(Refused) as refused:
        perform(PauseReplay, job, None, reason="")
    job.refresh_from_db()
    assert (refused.value.code, job.state) == ("ending", "running")


def test_a_setting_that_is_being_removed_is_not_held_any_more(orders: LaunchSetting) -> None:
    job = taken(wanted(orders))
    LaunchSetting.objects.filter(pk=orders.pk).update(wanted_hash=REMOVING)
    assert isinstance(hold.begin(job, broker(), timezone.now()), Wait)
    orders.refresh_from_db()
    assert (orders.hold, orders.held_by) == ("", None)
    assert find(broker(), "listQueues", "orders.ahead") is None


# -- saving and provisioning ---------------------------------------------------------------------------------


def test_a_policy_that_is_saved_while_a_hold_ends_stays(
    orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = taken(holding(orders))
    moves = before_first(hold._move_behind, lambda: save_policy(orders))
    monkeypatch.setattr(hold, "_move_behind", moves)
    assert hold.end(job, broker(), timezone.now(), handled=True) is None
    assert (attempts_at(orders), queue("orders")["paused"]) == (7, "false")


def test_a_policy_that_is_saved_while_a_hold_begins_stays(
    orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = taken(wanted(orders))
    monkeypatch.setattr(hold, "apply", before_first(apply, lambda: save_policy(orders)))
    assert hold.begin(job, broker(), timezone.now()) is None
    assert (attempts_at(orders), queue("orders")["paused"]) == (7, "true")


def test_who_provisions_for_longer_than_its_lock_leaves_no_subscription_paused(
    orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows were read while a replay held it, and it comes to this one when that is long over."""
    holding(orders)

    def released() -> None:
        LaunchSetting.objects.update(hold="", held_by=None)
        apply(broker(), steps_of(LaunchSetting.objects.get(pk=orders.pk)))

    LaunchSetting.objects.update(provision_state="pending")
    monkeypatch.setattr(provision, "apply", before_first(apply, released))
    provision_due(timezone.now())
    assert queue("orders")["paused"] == "false"


def test_rows_of_before_a_hold_leave_no_message_beside_the_subscription(
    memory: MemoryBroker, orders: LaunchSetting
) -> None:
    holding(orders)
    one, two = (Message(body=Typed("string", name)) for name in ("one", "two"))
    memory.publisher().publish([Outgoing(f"{orders.subscribed.name}::orders.ahead", one)])
    memory.publisher().publish([Outgoing(orders.subscribed.name, two)])
    assert queue("orders.ahead")["messageCount"] == "1"
    ReplayJob.objects.all().delete()
    LaunchSetting.objects.update(hold="", held_by=None)
    provision_all()
    assert (queue("orders")["paused"], queue("orders")["messageCount"]) == ("false", "2")
    assert queue("orders.ahead")["messageCount"] == "0"


def test_what_lies_beside_a_held_subscription_is_left_there(
    memory: MemoryBroker, orders: LaunchSetting
) -> None:
    holding(orders)
    one = Message(body=Typed("string", "one"))
    memory.publisher().publish([Outgoing(f"{orders.subscribed.name}::orders.ahead", one)])
    provision_all()
    assert (queue("orders")["paused"], queue("orders.ahead")["messageCount"]) == ("true", "1")


# -- what died ahead, in a queue that takes the dead letters of several --------------------------------------


def died_ahead() -> bytes:
    annotations = {
        "x-opt-ORIG-QUEUE": Typed("string", "orders.ahead"),
        "x-opt-ORIG-MESSAGE-ID": Typed("long", 10),
    }
    return encode(Message(body=Typed("string", "{}"), annotations=annotations))


def test_what_died_ahead_goes_back_to_the_dead_letters_of_its_setting(orders: LaunchSetting) -> None:
    (share,) = _shares(Counter({"orders.ahead": 1}), broker())
    assert (share.origin, share.key) == ("orders.ahead", "orders")


def test_a_walk_knows_again_what_died_ahead() -> None:
    identifier = DeadLetterIdentifier(
        mixed=True,
        read=lambda encoded: letter_row(encoded, "node", NOW),
        known=lambda numbers: {10: IndexedRow("dead", "orders")} if 10 in list(numbers) else {},
    )
    letters, known = identifier.of([died_ahead()])
    assert (list(letters), list(known)) == ([10], [10])


def test_the_queue_beside_a_subscription_holds_no_dead_letters_of_others(orders: LaunchSetting) -> None:
    holding(orders)
    with pytest.raises(Refused) as refused:
        check_foreign_queue("orders.ahead", broker())
    assert refused.value.code == "subscription"
