"""An object of each operation on waiting messages, whole bodies and foreign queues, with which it can be
done."""

import os
from typing import Any

from django.utils import timezone

from agents.models import LaunchSetting, Pool, Run
from agents.provisioning import queue_counts
from broker.amqp.codec import encode
from broker.management.desired_topology import Queue
from broker.management.topology import apply
from broker.port import Message
from console import broker
from contract.messages import BlockedMessage
from contract.typed import Typed
from contract.wire import dump
from dlq.full_body.operations import CancelFetch, DownloadBody, FetchBody
from dlq.models import DeadLetter, LetterQueue, WaitingAction, WholeFetch
from dlq.queues.operations import FollowQueue, UnfollowQueue
from dlq.subscriptions.operations import (
    CancelAction,
    DeadLetterNow,
    GiveUpBlocked,
    HoldMessages,
    ReleaseMessages,
    RetryNow,
    mark_of,
)
from dlq.subscriptions.requests import Selection
from tests.web import letters
from tests.web.cases_of_agents import ordered
from tests.web.operation_case import Case
from tests.web.rows import make_setting
from tests.web.waiting import WaitingHouse

BLOCKED = BlockedMessage("ID:poison", 3)


def house(pool: Pool) -> WaitingHouse:
    """Its broker is the one that the site asks, until the end of the test."""
    found = WaitingHouse(make_setting(pool))
    broker._connection, broker._process = found.management, os.getpid()
    queue_counts.forget()
    return found


def with_messages(pool: Pool) -> LaunchSetting:
    found = house(pool)
    found.publish("w1", "w2")
    return found.setting


def with_delayed(pool: Pool) -> LaunchSetting:
    found = house(pool)
    found.delay("d1")
    return found.setting


def with_held(pool: Pool) -> LaunchSetting:
    found = house(pool)
    found.publish("w1")
    found.hold()
    return found.setting


def blocked(pool: Pool) -> LaunchSetting:
    setting = ordered(pool)
    run = Run.objects.filter(activation__setting=setting, server__name="srv-1")
    run.update(blocked=dump(BLOCKED), reported_at=timezone.now())
    return setting


def action(pool: Pool) -> WaitingAction:
    setting = make_setting(pool)
    return WaitingAction.objects.create(setting=setting, setting_key="orders", kind="hold", part="waiting")


def large(pool: Pool) -> DeadLetter:
    house(pool)
    row = letters.dead("orders", 10, "ID:10")
    DeadLetter.objects.filter(pk=row.pk).update(truncated=True)
    row.refresh_from_db()
    return row


def being_fetched(pool: Pool) -> DeadLetter:
    row = large(pool)
    WholeFetch.objects.create(letter=row)
    return row


def fetched(pool: Pool) -> DeadLetter:
    row = large(pool)
    whole = encode(Message(body=Typed("string", "all of it")))
    WholeFetch.objects.create(letter=row, state="done", encoded=whole)
    return row


def theirs(pool: Pool) -> LetterQueue:
    """At the broker, and not followed."""
    asked = house(pool).management
    asked.call("broker", "createAddress", "THEIRS", "MULTICAST")
    apply(asked, [Queue("theirs", "THEIRS")])
    return LetterQueue(queue="theirs")


def followed(pool: Pool) -> LetterQueue:
    return LetterQueue.objects.create(queue="theirs", address="THEIRS", foreign=True)


def all_of(part: str) -> dict[str, Any]:
    return {"chosen": Selection(part, None), "reason": "odd sums"}


def of_action(made: WaitingAction) -> str:
    return f"message_action:{made.pk}"


HANDLE, SEE, MANAGE = "dlq.handle_waiting", "dlq.view_deadletter", "dlq.manage_foreign"
ASKED: tuple[tuple[Any, Any, str], ...] = (
    (RetryNow, with_delayed, "delayed"),
    (DeadLetterNow, with_messages, "waiting"),
    (HoldMessages, with_messages, "waiting"),
    (ReleaseMessages, with_held, "held"),
)
GIVEN_UP = {"seen": mark_of(BLOCKED), "reason": "nonsense"}
CASES = (
    *(
        Case(operation, make, HANDLE, all_of(part), {"part": part}, seeing=HANDLE, target=of_action)
        for operation, make, part in ASKED
    ),
    Case(
        GiveUpBlocked,
        blocked,
        HANDLE,
        GIVEN_UP,
        detail={"digest": BLOCKED.digest, "server": "srv-1"},
        seeing=HANDLE,
    ),
    Case(CancelAction, action, HANDLE, seeing=HANDLE),
    Case(FetchBody, large, SEE, seeing=SEE),
    Case(CancelFetch, being_fetched, SEE, seeing=SEE),
    Case(DownloadBody, fetched, SEE, seeing=SEE),
    Case(FollowQueue, theirs, MANAGE, {"reason": "of the old house"}, detail={"address": "THEIRS"}),
    Case(UnfollowQueue, followed, MANAGE),
)
