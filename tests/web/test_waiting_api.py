"""Waiting messages over REST: looking, asking, what became of them, stopping; refusals with their reasons."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import Pool
from broker.port import BrokerUnavailable
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.models.message_action import WaitingAction
from tests.web import reports
from tests.web.teams import teammate
from tests.web.waiting import WaitingHouse, failed

pytestmark = pytest.mark.django_db
WAITING, ACTIONS = "/api/v1/settings/orders/waiting/", "/api/v1/waiting-actions/"


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingHouse]:
    house = WaitingHouse(reports.setting())
    house.answers(monkeypatch, "dlq.api.subscriptions.management")
    yield house
    house.close()


def client(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    return client


@pytest.fixture
def operator() -> APIClient:
    return client(reports.person("operator", "dlq.view_deadletter", "dlq.handle_waiting"))


@pytest.fixture
def viewer() -> APIClient:
    return client(reports.person("viewer", "dlq.view_deadletter"))


def ask(who: APIClient, **said: Any) -> Any:
    return who.post(WAITING, {"action": "hold", "part": "waiting", "reason": "x"} | said, format="json")


def test_each_part_is_told_with_what_is_known_of_its_messages(house: WaitingHouse, viewer: APIClient) -> None:
    house.setting.masked_properties = ["card"]
    house.setting.save()
    house.delay("d")
    failed(house.setting, "d", 2)
    house.publish("w1")
    house.publish("w2", body="two", card=Typed("string", "4111"), n=Typed("int", 7))
    house.deliver(1, "srv-2")
    told = viewer.get(WAITING).json()
    assert told["counts"] == {"waiting": 1, "delayed": 1, "in_delivery": 1, "held": 0}
    assert (told["part"], told["told"], told["cut"], told["next"]) == ("waiting", 1, False, None)
    (message,) = told["messages"]
    assert (message["message_id"], message["message_key"], message["body"]) == ("w2", "w2", "two")
    assert message["properties"] == [
        {"name": "card", "value": "•••", "masked": True}, {"name": "n", "value": "7", "masked": False},
    ]  # fmt: skip
    (message,) = viewer.get(f"{WAITING}?part=delayed").json()["messages"]
    assert (message["next_attempt"]["number"], message["next_attempt"]["of"], message["body"]) == (3, 5, None)
    (message,) = viewer.get(f"{WAITING}?part=in_delivery").json()["messages"]
    assert (message["delivery"]["server"], message["delivery"]["exact"], message["hold"]) == (
        "srv-2",
        True,
        None,
    )


def test_chosen_messages_are_held_and_each_says_what_became_of_it(
    house: WaitingHouse, operator: APIClient
) -> None:
    house.publish("w1", "w2", "w3")
    numbers = house.numbers("waiting")
    answer = ask(operator, messages=[numbers[0], numbers[2], 2**60])
    assert answer.status_code == 201
    action = answer.json()
    assert (action["state"], action["total"], action["fates"]["planned"], action["fates"]["missing"]) == (
        "planned", 2, 2, 1,
    )  # fmt: skip
    house.work()
    path = f"{ACTIONS}{action['id']}/"
    assert operator.get(path).json()["fates"] == {
        "planned": 0, "acted": 0, "done": 2, "left": 0, "stayed": 0, "missing": 1,
    }  # fmt: skip
    messages = operator.get(f"{path}messages/").json()["results"]
    assert [(each["message_key"], each["fate"]) for each in messages] == [("w1", "done"), ("w3", "done")]
    held = operator.get(f"{WAITING}?part=held").json()["messages"]
    assert [(each["hold"]["by"], each["hold"]["reason"]) for each in held] == [("operator", "x")] * 2
    listed = operator.get(f"{ACTIONS}?setting=orders&state=done").json()["results"]
    assert [each["id"] for each in listed] == [action["id"]]
    assert operator.get(f"{ACTIONS}?setting=other").json()["results"] == []


def test_no_more_than_said_is_done_with_all(house: WaitingHouse, operator: APIClient) -> None:
    house.publish("w1", "w2", "w3")
    assert ask(operator, all=True, most=2).json()["total"] == 2
    assert house.work().counts == {"done": 2}
    assert (house.count(), house.held()) == (1, 2)


@pytest.mark.parametrize(
    ("said", "status", "word"),
    [
        ({"all": True, "messages": [1]}, 400, "invalid"),
        ({}, 400, "invalid"),
        ({"messages": []}, 400, "invalid"),
        ({"messages": [-1]}, 400, "invalid"),
        ({"all": True, "action": "eat"}, 400, "invalid"),
        ({"all": True, "part": "in_delivery"}, 400, "invalid"),
        ({"all": True, "action": "release"}, 400, "impossible"),
        ({"all": True, "reason": " "}, 400, "no_reason"),
        ({"all": True, "part": "delayed"}, 409, "nothing"),
        ({"messages": [2**62]}, 409, "gone"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_reason(
    house: WaitingHouse, operator: APIClient, said: dict[str, Any], status: int, word: str
) -> None:
    house.publish("m")
    answer = ask(operator, **said)
    assert (answer.status_code, answer.json()["error"]) == (status, word)
    assert not WaitingAction.objects.exists()
    if status == 409:
        assert answer.json()["what_to_do"] or answer.json()["detail"]
        assert AuditEntry.objects.get().result == "refused"


def test_one_action_at_a_time_and_it_can_be_stopped(house: WaitingHouse, operator: APIClient) -> None:
    house.publish("w1", "w2")
    running = ask(operator, all=True).json()["id"]
    answer = ask(operator, all=True, action="to_dlq")
    assert (answer.status_code, answer.json()["error"], answer.json()["action"]) == (
        409,
        "already_running",
        running,
    )
    assert operator.post(f"{ACTIONS}{running}/stop/").json()["stopping"] is True
    assert house.work().state == "stopped"
    answer = operator.post(f"{ACTIONS}{running}/stop/")
    assert (answer.status_code, answer.json()["error"]) == (409, "over")
    assert sorted(AuditEntry.objects.filter(result="refused").values_list("action", flat=True)) == [
        "message_action.cancel", "messages.dead_letter",
    ]  # fmt: skip


def test_a_broker_that_is_away_is_503(
    house: WaitingHouse, operator: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise BrokerUnavailable("no connection")

    monkeypatch.setattr(house.management, "call", away)
    monkeypatch.setattr(house.management, "attribute", away)
    for answer in (operator.get(WAITING), ask(operator, all=True)):
        assert (answer.status_code, answer.json()["error"]) == (503, "broker_away")
        assert answer.json()["detail"] == "The broker is not responding: no connection."
        assert answer.json()["what_to_do"] == "Nothing was changed. Try again later."
    # A look is no attempt.
    assert list(AuditEntry.objects.values_list("action", "result")) == [("messages.hold", "refused")]


def test_who_may_not_is_refused_and_stands_in_the_audit(
    house: WaitingHouse, viewer: APIClient, operator: APIClient, groups: None
) -> None:
    house.publish("m")
    stranger = client(
        teammate(Pool.objects.create(name="other"), name="stranger", rights=("handle_waiting",))
    )
    outsider = client(reports.person("outsider"))
    assert [outsider.get(WAITING).status_code, outsider.get(ACTIONS).status_code] == [403, 403]
    assert (ask(viewer, all=True).status_code, ask(outsider, all=True).status_code) == (403, 403)
    assert ask(stranger, all=True).status_code in (403, 404)
    path = f"{ACTIONS}{ask(operator, all=True).json()['id']}/"
    assert [viewer.get(path).status_code, outsider.get(path).status_code] == [200, 403]
    assert [viewer.post(f"{path}stop/").status_code, outsider.post(f"{path}stop/").status_code] == [403, 403]
    refused = AuditEntry.objects.filter(result="refused", by_name__in=("viewer", "outsider"))
    assert sorted(refused.values_list("by_name", "action")) == [
        ("outsider", "message_action.cancel"), ("outsider", "messages.hold"),
        ("viewer", "message_action.cancel"), ("viewer", "messages.hold"),
    ]  # fmt: skip
    assert APIClient().get(WAITING).status_code == 401
    assert WaitingAction.objects.count() == 1 and not WaitingAction.objects.get().stopping
