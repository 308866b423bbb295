"""Ordered subscriptions in the MA: what goes with an order, what servers are told, and asking for another
attempt."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.heartbeat.desired import desired_state
from agents.models import Activation, LaunchSetting, Pool, Run, Server, StateChange
from agents.provisioning.provision import steps_of
from agents.provisioning.topology import desired_topology
from broker.management.desired_topology import Queue
from console.ui.amounts import duration
from contract.messages import DesiredRun
from contract.outcomes import AfterLast
from failures.models import FailureProtocol, RecoveredMessage
from tests.web.rows import api_client, make_alive, make_setting

FIELDS = {"ordered": True, "concurrency": 1, "mode": "AUTO", "blocked_seconds": 2.0}


@pytest.fixture
def ordered(pool: Pool, server: Server) -> LaunchSetting:
    make_alive(server, now=timezone.now())
    setting = make_setting(pool, "row", enabled=True, spread="MANY", **FIELDS)
    activation = Activation.objects.create(setting=setting, state="running")
    Run.objects.create(activation=activation, server=server, epoch=1)
    return setting


def protocol(setting: LaunchSetting, key: str, attempt: int, *, at: datetime, **fields: Any) -> None:
    run = Run.objects.select_related("server").get()
    FailureProtocol.objects.create(
        id=uuid4(), spool=uuid4(), number=1, setting=setting, setting_key=setting.key,
        activation=run.activation,
        activation_uuid=run.activation_id, epoch=1, server=run.server, server_name=run.server.name,
        agent="demo.orders",
        outcome="raised", exception_type="KeyError", fingerprint="v1:0123456789abcdef", message_key=key,
        attempt=attempt, occurred_at=at, received_at=at, **fields,
    )  # fmt: skip


def told(server: Server) -> DesiredRun:
    (run,) = desired_state(server).runs
    return run


@pytest.mark.parametrize(
    ("wish", "where"),
    [
        ({"mode": "CLIENT"}, "mode"),
        ({"mode": "DUPS_OK"}, "mode"),
        ({"concurrency": 2}, "concurrency"),
        ({"blocked_seconds": -0.5}, "blocked_seconds"),
        ({"ordered": False, "after_last": "stay"}, "after_last"),
        ({"kind": "standalone", "destination": None}, "ordered"),
    ],
)
def test_what_does_not_go_with_an_order_is_refused(
    operator: User, setting: LaunchSetting, wish: dict[str, Any], where: str
) -> None:
    body = (
        {"key": "row", "agent": "demo.orders", "pool": "demo", "destination": "demo.orders"} | FIELDS | wish
    )
    answer = api_client(operator).post("/api/v1/settings/", body)

    assert (answer.status_code, answer.json()["where"]) == (400, where), answer.content


def test_an_ordered_setting_is_made_and_its_queue_feeds_one_consumer(
    operator: User, setting: LaunchSetting
) -> None:
    body = {
        "key": "row",
        "agent": "demo.orders",
        "pool": "demo",
        "destination": "demo.orders",
        "spread": "MANY",
    }
    answer = api_client(operator).post("/api/v1/settings/", body | FIELDS | {"after_last": "stay"})

    assert answer.status_code == 201, answer.content
    made = LaunchSetting.objects.get(key="row")
    assert desired_topology(made)["exclusive"] is True
    assert [step.exclusive for step in steps_of(made) if isinstance(step, Queue) and step.name == "row"] == [
        True
    ]


def test_the_order_cannot_change_while_it_runs(operator: User, ordered: LaunchSetting) -> None:
    answer = api_client(operator).patch("/api/v1/settings/row/", {"ordered": False})
    assert (answer.status_code, answer.json()["where"]) == (400, "ordered")


def test_servers_learn_of_the_order(ordered: LaunchSetting, server: Server) -> None:
    LaunchSetting.objects.filter(pk=ordered.pk).update(after_last="stay")
    run = told(server)
    assert (run.ordered, run.blocked_seconds, run.retries_requested, run.after_last) == (
        True,
        2.0,
        0,
        AfterLast.STAY,
    )


@pytest.mark.both_databases
def test_the_attempts_of_what_blocks_are_known_from_its_protocols(
    ordered: LaunchSetting, server: Server
) -> None:
    """Though no server died: the broker counts none of them."""
    now = timezone.now()
    for attempt in (1, 2, 3):
        protocol(ordered, "blocks", attempt, at=now - timedelta(days=3) + timedelta(seconds=attempt))
    assert told(server).known_attempts == {"blocks": 3}

    RecoveredMessage.objects.create(
        id=uuid4(), setting_key="row", activation_uuid=uuid4(), server_name=server.name,
        message_key="blocks", attempt=4, occurred_at=now - timedelta(days=2), received_at=now,
    )  # fmt: skip
    assert told(server).known_attempts == {}
    protocol(ordered, "dead", 9, at=now, last_attempt=True)
    assert told(server).known_attempts == {}


@pytest.mark.both_databases
def test_a_person_asks_for_another_attempt(operator: User, ordered: LaunchSetting, server: Server) -> None:
    client = api_client(operator)
    assert client.post("/api/v1/settings/row/retry/").status_code == 204
    assert told(server).retries_requested == 1
    assert StateChange.objects.get(setting=ordered, new="tried again").by == operator

    LaunchSetting.objects.filter(pk=ordered.pk).update(enabled=False)
    assert client.post("/api/v1/settings/row/retry/").status_code == 409


def test_it_needs_the_right_to_run(viewer: User, ordered: LaunchSetting) -> None:
    assert api_client(viewer).post("/api/v1/settings/row/retry/").status_code == 403
    client = Client()
    client.force_login(viewer)
    assert client.post("/settings/row/retry/").status_code == 403
    assert LaunchSetting.objects.get(key="row").retries_asked == 0


def test_the_page_of_a_setting_tells_of_the_order_and_asks(operator: User, ordered: LaunchSetting) -> None:
    client = Client()
    client.force_login(operator)
    text = client.get("/settings/row/").content.decode()
    assert "/settings/row/retry/" in text and "retry" in text
    assert client.get("/settings/row/retry/").status_code == 200
    client.post("/settings/row/retry/")
    assert LaunchSetting.objects.get(key="row").retries_asked == 1
    assert "Retry requested" in client.get("/settings/row/").content.decode()


def test_others_have_no_such_button(operator: User, setting: LaunchSetting) -> None:
    client = Client()
    client.force_login(operator)
    assert "/retry/" not in client.get(f"/settings/{setting.key}/").content.decode()
    assert FailureProtocol.objects.count() == 0


@pytest.mark.parametrize(
    ("choice", "there", "absent"),
    [
        ({"blocked_seconds": 90.0}, [duration(90), "dead"], ["× 2"]),
        (
            {"blocked_seconds": 90.0, "after_last": "stay"},
            [
                "unlimited",
                "and so on",
                "after 10 crashes the message is dead-lettered",
            ],
            ["After the last attempt, the message goes to"],
        ),
        ({"blocked_seconds": -1.0}, ["on request"], ["Redelivery of a failing message"]),
    ],
)
def test_its_page_and_its_form_tell_the_interval_and_not_the_delays_of_the_destination(
    operator: User, ordered: LaunchSetting, choice: dict[str, Any], there: list[str], absent: list[str]
) -> None:
    LaunchSetting.objects.filter(pk=ordered.pk).update(**choice)
    client = Client()
    client.force_login(operator)
    typed = {"setting": "row", "breaker_m": 10, "ordered": "on", "spread": "MANY", **choice}
    for page in (client.get("/settings/row/"), client.get("/previews/setting/", typed)):
        text = page.content.decode()
        assert [each for each in there if each not in text] == [] and [
            each for each in absent if each in text
        ] == []
