"""The pages of messages before they are handled: looking, asking, what became of them, stopping; and who
may."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from agents.models import Pool
from agents.provisioning import queue_counts as figures
from broker.port import BrokerUnavailable
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.models import DeadLetter
from dlq.models.message_action import WaitingAction, WaitingState
from tests.web import letters, reports
from tests.web.pages import Elements, looked_at
from tests.web.teams import teammate
from tests.web.waiting import WaitingHouse, failed

pytestmark = pytest.mark.django_db
PAGE, ASK = "/settings/orders/waiting/", "/settings/orders/waiting/ask/"
SEES = ("agents.view_launchsetting", "dlq.view_deadletter", "failures.view_failureprotocol")


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingHouse]:
    figures.forget()
    house = WaitingHouse(reports.setting())
    house.answers(monkeypatch, "dlq.pages.subscriptions.management", "dlq.pages.message_actions.management")
    yield house
    house.close()


def signed_in(name: str, *permissions: str) -> Client:
    client = Client()
    client.force_login(reports.person(name, *permissions))
    return client


@pytest.fixture
def operator() -> Client:
    return signed_in("operator", *SEES, "dlq.handle_waiting")


@pytest.fixture
def viewer() -> Client:
    return signed_in("viewer", *SEES)


def away(*_: Any, **__: Any) -> Any:
    raise BrokerUnavailable("no connection")


def test_each_part_has_a_tab_with_the_count_of_the_broker(house: WaitingHouse, viewer: Client) -> None:
    house.delay("d1", "d2")
    house.publish("w1", "w2", "w3", "w4")
    house.deliver(1)
    page = looked_at(viewer, PAGE)
    for text in ("Waiting 3", "Delayed 2", "In delivery 1", "On hold 0", "w2", "w4"):
        assert text in page.text, text
    assert "d1" not in page.text
    assert "srv-1" in looked_at(viewer, f"{PAGE}?part=in_delivery").text
    failed(house.setting, "d1", 1)
    delayed = looked_at(viewer, f"{PAGE}?part=delayed")
    assert "2 of 5" in delayed.text and "unknown" in delayed.text
    assert any(each.startswith("/cases/?key=d1&") for each in delayed.links())


def test_empty_parts_say_what_will_appear(house: WaitingHouse, viewer: Client) -> None:
    for part, words in (("waiting", "No messages waiting."), ("delayed", "No delayed messages."),
                        ("in_delivery", "No messages in delivery."), ("held",
                        "No messages on hold.")):  # fmt: skip
        assert words in looked_at(viewer, f"{PAGE}?part={part}").text


def test_what_is_cut_off_is_said(
    house: WaitingHouse, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.publish(*(f"w{n}" for n in range(205)))
    page = looked_at(viewer, PAGE)
    assert (
        "The broker lists only the first 200 messages. Actions on all messages also apply to the rest."
    ) in page.text and "Waiting 205" in page.text
    assert "w150" in looked_at(viewer, f"{PAGE}?part=waiting&start=150").text
    monkeypatch.setattr("broker.management.waiting_messages.LISTED", 1)
    house.delay("d1", "d2")
    assert (
        "messages are delayed. The broker cannot list them individually"
        in looked_at(viewer, f"{PAGE}?part=delayed").text
    )


def test_nothing_hostile_runs_and_nothing_masked_is_told(house: WaitingHouse, viewer: Client) -> None:
    house.setting.masked_properties = ["card"]
    house.setting.save()
    script = "<script>alert(1)</script>\u202e"
    house.publish(f"m{script}", body=f"b{script}", card=Typed("string", "4111"), name=Typed("string", script))
    html = viewer.get(PAGE).content.decode()
    assert Elements(html).inline_scripts == 0
    assert "<script>alert" not in html and "\u202e" not in html and "4111" not in html and "•••" in html


def test_a_connection_may_call_itself_anything(house: WaitingHouse, viewer: Client) -> None:
    house.publish("m", "n")
    house.deliver(1, "../a b<script>")
    reports.server("srv-9")
    house.deliver(1, "srv-9")
    page = looked_at(viewer, f"{PAGE}?part=in_delivery")
    assert "external client" in page.text and "/servers/srv-9/" in page.links()


def test_the_broker_that_is_away_is_said_and_nothing_is_begun(
    house: WaitingHouse, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.publish("m")
    number = house.numbers("waiting")[0]
    monkeypatch.setattr(house.management, "call", away)
    text = looked_at(operator, PAGE).text
    assert "The broker is not responding." in text and text.count("broker is not responding") == 1
    data = {"kind": "hold", "part": "waiting", "number": number, "asked": 1, "reason": "x"}
    for answer in (
        operator.get(f"{ASK}?kind=hold&part=waiting&all=1", follow=True),
        operator.post(ASK, data, follow=True),
    ):
        assert "The broker is not responding: no connection. Nothing was changed" in answer.content.decode()
    assert not WaitingAction.objects.exists()
    assert [(each.action, each.result) for each in AuditEntry.objects.all()] == [("messages.hold", "refused")]


def test_selected_messages_are_held_after_a_question_and_the_page_tells_of_each(
    house: WaitingHouse, operator: Client
) -> None:
    house.publish("w1", "w2", "w3")
    first, _second, third = house.numbers("waiting")
    asked = looked_at(operator, f"{ASK}?part=waiting&kind=hold&number={first}&number={third}")
    assert "2 selected messages" in asked.text and not WaitingAction.objects.exists()
    data = {"kind": "hold", "part": "waiting", "number": f"{first},{third}", "asked": "2"}
    assert "required" in operator.post(ASK, data).content.decode()
    answer = operator.post(ASK, data | {"reason": "odd sums"})
    action = WaitingAction.objects.get()
    assert answer.headers["Location"] == f"/waiting-actions/{action.pk}/"
    assert "still pending 2" in looked_at(operator, answer.headers["Location"]).text
    house.work()
    page = looked_at(operator, answer.headers["Location"])
    assert "on hold 2" in page.text and "odd sums" in page.text and "w1" in page.text
    assert not any(
        attributes.get("id") == "live" and "hx-get" in attributes for _tag, attributes in page.found
    )
    held = looked_at(operator, f"{PAGE}?part=held").text
    assert "operator" in held and "odd sums" in held and "On hold 2" in held
    assert "Hold" in held and "2 By" not in held


def test_all_above_a_thousand_is_typed_and_no_more_is_done_than_was_confirmed(
    house: WaitingHouse, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.pages.message_actions.TYPED_ABOVE", 3)
    house.publish(*(f"w{n}" for n in range(4)))
    assert "Type 4 to confirm" in looked_at(operator, f"{ASK}?part=waiting&kind=to_dlq&all=1").text
    house.publish("later")
    data = {"kind": "to_dlq", "part": "waiting", "all": "1", "asked": "4", "reason": "x"}
    assert "Type the number 4" in operator.post(ASK, data | {"confirm": "5"}).content.decode()
    operator.post(ASK, data | {"confirm": "4"})
    action = WaitingAction.objects.get()
    assert (action.total, action.every, action.kind) == (4, True, "to_dlq")


def test_what_was_sent_to_the_dead_letters_leads_to_its_letter_and_the_letter_says_by_whom(
    house: WaitingHouse, operator: Client
) -> None:
    house.publish("m")
    number = house.numbers("waiting")[0]
    data = {"kind": "to_dlq", "part": "waiting", "number": number, "asked": "1", "reason": "poison"}
    path = operator.post(ASK, data).headers["Location"]
    letter = letters.dead("orders", number, "m")
    DeadLetter.objects.update(node_id=house.queues.node_id(), seen_at=WaitingAction.objects.get().created_at)
    house.work()
    assert f"/letters/{letter.pk}/" in looked_at(operator, path).links()
    told = looked_at(operator, f"/letters/{letter.pk}/").text
    assert "Moved to DLQ by operator" in told and "poison" in told
    assert "Moved to DLQ by operator" in looked_at(operator, "/cases/?key=m&setting=orders").text


def test_an_action_is_stopped_from_its_page(house: WaitingHouse, operator: Client) -> None:
    house.publish("w1", "w2")
    path = operator.post(
        ASK, {"kind": "hold", "part": "waiting", "all": "1", "asked": "2", "reason": "x"}
    ).headers["Location"]
    operator.post(f"{path}stop/")
    assert "The action stops after the current messages." in looked_at(operator, path).text
    assert house.work().state == WaitingState.STOPPED
    assert "not yet started 2" in looked_at(operator, path).text
    assert "already" in operator.post(f"{path}stop/", follow=True).content.decode()


def test_a_second_question_leads_to_the_action_that_runs(house: WaitingHouse, operator: Client) -> None:
    house.publish("w1", "w2")
    data = {"kind": "hold", "part": "waiting", "all": "1", "asked": "2", "reason": "x"}
    path = operator.post(ASK, data).headers["Location"]
    assert operator.post(ASK, data).headers["Location"] == path
    assert WaitingAction.objects.count() == 1
    assert "another action on messages of this setting is" in looked_at(operator, PAGE).text


@pytest.mark.parametrize(
    "query", ["", "kind=hold&part=waiting", "kind=x&part=waiting&all=1", "kind=to_dlq&part=held&all=1",
    "number=1",
              "kind=hold&part=waiting&number=x", f"kind=hold&part=waiting&number={'9' * 30}"],
)  # fmt: skip
def test_what_nobody_can_mean_leads_back(house: WaitingHouse, operator: Client, query: str) -> None:
    assert operator.get(f"{ASK}?{query}").status_code == 302
    assert (
        operator.post(f"{ASK}", dict(each.split("=") for each in query.split("&") if each)).status_code == 302
    )


# -- who may -------------------------------------------------------------------------------------------------


def test_a_viewer_looks_and_does_nothing(house: WaitingHouse, viewer: Client, operator: Client) -> None:
    house.publish("m")
    data = {"kind": "hold", "part": "waiting", "all": "1", "asked": "1", "reason": "x"}
    assert "Can manage waiting messages" in looked_at(viewer, PAGE).text
    assert viewer.get(f"{ASK}?kind=hold&part=waiting&all=1").status_code == 403
    assert viewer.post(ASK, data).status_code == 403
    path = operator.post(ASK, data).headers["Location"]
    assert looked_at(viewer, path)
    assert viewer.post(f"{path}stop/").status_code == 403
    refused = AuditEntry.objects.filter(result="refused", by_name="viewer").values_list("action", flat=True)
    assert sorted(refused) == ["message_action.cancel", "messages.hold"]
    assert not WaitingAction.objects.get().stopping


def test_an_outsider_and_somebody_of_another_pool_see_nothing(house: WaitingHouse, groups: None) -> None:
    house.publish("secret-id")
    outsider = signed_in("outsider")
    stranger = Client()
    stranger.force_login(
        teammate(Pool.objects.create(name="other"), name="stranger", rights=("handle_waiting",))
    )
    action = WaitingAction.objects.create(
        setting=house.setting, setting_key="orders", kind="hold", part="waiting"
    )
    for path in (PAGE, f"{ASK}?kind=hold&part=waiting&all=1", f"/waiting-actions/{action.pk}/"):
        assert outsider.get(path).status_code == 403, path
    assert outsider.post(f"/waiting-actions/{action.pk}/stop/").status_code == 403
    assert Client().get(PAGE).status_code == 302
    data = {"kind": "hold", "part": "waiting", "all": "1", "asked": "1", "reason": "x"}
    assert stranger.post(ASK, data).status_code in (403, 404)
    assert WaitingAction.objects.count() == 1


def test_a_right_in_the_pool_suffices(house: WaitingHouse, groups: None) -> None:
    house.publish("m")
    mate = Client()
    mate.force_login(teammate(house.setting.pool, name="mate", rights=("handle_waiting",)))
    mate.post(ASK, {"kind": "hold", "part": "waiting", "all": "1", "asked": "1", "reason": "x"})
    assert WaitingAction.objects.get().by_name == "mate"


def test_the_pages_are_there_in_russian(house: WaitingHouse, operator: Client) -> None:
    house.publish("m")
    operator.post("/i18n/setlang/", {"language": "ru"})
    operator.cookies["django_language"] = "ru"
    with translation.override("ru"):
        text = looked_at(operator, PAGE).text
    assert "Ожидающие сообщения настройки orders" in text
