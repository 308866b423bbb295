"""The message that blocks an ordered subscription: seen with what waits, given up by who may, told to the
server."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone, translation

from agents.heartbeat.desired import desired_state
from agents.models import Activation, LaunchSetting, Pool, Run, Server, StateChange
from alerts import text as alerts_text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from console.audit.models import AuditEntry, AuditResult
from console.reasons import Reason
from contract.messages import BlockedMessage, GiveUpRequest
from contract.wire import dump
from dlq.subscriptions.operations import blocking_of, mark_of
from tests.web import reports
from tests.web.rows import NOW, api_client, make_alive, make_setting

KEY = "ID:<b>poison</b>"
ASKED: dict[str, Any] = {
    "seen": mark_of(BlockedMessage(KEY, 3)),
    "reason": "the producer sent nonsense",
}
PAGE, WAITING, REST = (
    "/settings/row/waiting/give-up/",
    "/settings/row/waiting/",
    "/api/v1/settings/row/blocking/",
)


@pytest.fixture
def setting(pool: Pool, server: Server) -> LaunchSetting:
    make_alive(server, now=timezone.now())
    setting = make_setting(
        pool,
        "row",
        enabled=True,
        spread="MANY",
        ordered=True,
        concurrency=1,
        mode="AUTO",
        blocked_seconds=-1.0,
    )
    activation = Activation.objects.create(setting=setting, state="running")
    run = Run.objects.create(activation=activation, server=server, epoch=1)
    blocks(run, 3)
    return setting


def blocks(run: Run, attempt: int, **fields: Any) -> None:
    told = {"blocked": dump(BlockedMessage(KEY, attempt)), "reported_at": timezone.now(), **fields}
    Run.objects.filter(pk=run.pk).update(**told)


@pytest.fixture
def keeper() -> User:
    return reports.person("keeper", "agents.view_launchsetting", "dlq.view_deadletter", "dlq.handle_waiting")


def logged_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def wished(server: Server) -> GiveUpRequest | None:
    (run,) = desired_state(server).runs
    return run.give_up_request


def test_the_page_of_what_waits_tells_of_it(setting: LaunchSetting, keeper: User) -> None:
    text = logged_in(keeper).get(WAITING).content.decode()

    assert "ID:&lt;b&gt;poison&lt;/b&gt;" in text and KEY not in text
    assert "One message is blocking all others. Attempt 3 failed:" in text and PAGE in text
    assert "/settings/row/retry/" not in text  # the right to run is another one
    seen = logged_in(keeper).get("/settings/row/").content.decode()
    assert "View blocking message" in seen


def test_the_overview_tells_of_it_in_the_language_of_the_reader(setting: LaunchSetting, keeper: User) -> None:
    text = logged_in(keeper).get("/", headers={"accept-language": "ru"}).content.decode()
    assert "обработка заблокирована сообщением" in text and "blocked by message" not in text


def test_a_person_gives_it_up(setting: LaunchSetting, server: Server, keeper: User) -> None:
    client = logged_in(keeper)
    assert wished(server) is None
    text = client.get(PAGE).content.decode()
    assert ASKED["seen"] in text and KEY not in text
    before = desired_state(server).version
    answer = client.post(PAGE, ASKED, follow=True)

    assert "The server is moving the message to the DLQ: row" in answer.content.decode()
    assert wished(server) == GiveUpRequest(1, BlockedMessage(KEY, 3).digest, 3)
    assert desired_state(server).version != before
    change = StateChange.objects.get(setting=setting, new="given up")
    assert (change.by, str(change.reason)) == (keeper, ASKED["reason"])
    entry = AuditEntry.objects.get(action="messages.give_up_blocked")
    assert (entry.by, entry.reason, entry.result) == (keeper, ASKED["reason"], AuditResult.DONE)
    assert KEY not in str(entry.detail)
    assert "Requested: move the blocking message to the DLQ" in client.get("/settings/row/").content.decode()


def test_what_was_tried_again_meanwhile_is_not_meant(
    setting: LaunchSetting, server: Server, keeper: User
) -> None:
    blocks(Run.objects.get(), 4)
    client = logged_in(keeper)
    answer = client.post(PAGE, ASKED, follow=True)

    assert (
        "The message was not moved: it no longer blocks the subscription, or it has been "
        "retried in the meantime."
    ) in answer.content.decode()
    assert wished(server) is None
    assert AuditEntry.objects.get().result == AuditResult.REFUSED
    Run.objects.update(blocked=None)
    assert "No message is blocking the subscription of" in client.get(PAGE, follow=True).content.decode()


@pytest.mark.parametrize("wrong", [{"reason": " "}, {"seen": ""}, {"seen": "3:"}, {"seen": "x" * 1000}])
def test_what_is_wrongly_asked_begins_nothing(
    setting: LaunchSetting, server: Server, keeper: User, wrong: dict[str, str]
) -> None:
    """A reason is asked for again; a message that the page cannot have named is another one."""
    answer = logged_in(keeper).post(PAGE, ASKED | wrong, follow=True)
    told = (
        "This field is required"
        if "reason" in wrong
        else (
            "The message was not moved: it no longer blocks the subscription, or it has been "
            "retried in the meantime."
        )
    )
    assert told in answer.content.decode()
    assert wished(server) is None


def test_it_needs_the_right_to_handle_what_waits(
    setting: LaunchSetting, server: Server, viewer: User
) -> None:
    sees = reports.person("sees", "agents.view_launchsetting", "dlq.view_deadletter")
    client = logged_in(sees)
    assert PAGE not in client.get(WAITING).content.decode()
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, ASKED).status_code == 403
    said = {"message_key": KEY, "attempt": 3, "reason": "x"}
    assert api_client(sees).post(REST, said).status_code == 403
    assert wished(server) is None
    assert {entry.result for entry in AuditEntry.objects.all()} == {AuditResult.REFUSED}
    assert AuditEntry.objects.count() == 2


def test_rest_tells_of_it_and_gives_it_up(setting: LaunchSetting, server: Server, keeper: User) -> None:
    client = api_client(keeper)
    told = client.get(REST).json()["blocking"]
    assert (told["message_key"], told["attempt"], told["retry_seconds"], told["server"]) == (
        KEY,
        3,
        None,
        server.name,
    )
    said = {"message_key": KEY, "attempt": 3, "reason": "x"}

    unsaid = client.post(REST, said | {"reason": ""})
    assert (unsaid.status_code, unsaid.json()["where"]) == (400, "reason")
    refused = client.post(REST, said | {"attempt": 2})
    assert (
        refused.status_code == 409
        and (
            "The message was not moved: it no longer blocks the subscription, or it has been "
            "retried in the meantime."
        )
        in refused.content.decode()
    )
    assert wished(server) is None
    assert client.post(REST, said).status_code == 202
    assert client.post(REST, said).status_code == 202
    assert wished(server) == GiveUpRequest(2, BlockedMessage(KEY, 3).digest, 3)
    Run.objects.update(blocked=None, problems=[Reason("run.broker_lost", {"detail": "away"})])
    assert client.get(REST).json() == {"blocking": None}


def test_of_several_servers_the_last_word_counts(setting: LaunchSetting, second_server: Server) -> None:
    """One that lost its broker goes on saying what was."""
    activation = Activation.objects.get()
    other = Run.objects.create(activation=activation, server=second_server, epoch=2)
    blocks(other, 5)
    found = blocking_of(setting)
    assert found is not None and (found.server, found.blocked.attempt) == (second_server.name, 5)
    Run.objects.filter(pk=other.pk).update(closed_at=timezone.now())
    found = blocking_of(setting)
    assert found is not None and found.blocked.attempt == 3
    setting.enabled = False
    assert blocking_of(setting) is None


@pytest.mark.django_db(transaction=True)
def test_an_alert_tells_that_it_waits_for_a_person(setting: LaunchSetting, server: Server) -> None:
    kind = kind_of("waits_for_person")
    assert kind is not None

    def look(second: int) -> list[str]:
        evaluate_kind(kind, NOW + timedelta(seconds=second))
        return list(Alert.objects.filter(kind=kind.name, state="open").values_list("subject", flat=True))

    assert look(0) == [] and look(50) == []
    assert look(70) == ["row"]
    alert = Alert.objects.get(kind=kind.name, state="open")
    assert "its first message failed on attempt 3" in alerts_text.says(alert) and KEY not in str(alert.facts)
    assert alerts_text.about(alert) == WAITING
    with translation.override("ru"):
        assert "остановилась" in alerts_text.says(alert)
    # Tried again by itself, it waits for nobody; nor does a setting that is off.
    Run.objects.update(blocked=dump(BlockedMessage(KEY, 3, 5.0)))
    assert look(80) == ["row"] and look(120) == []
    Run.objects.update(blocked=dump(BlockedMessage(KEY, 3)))
    LaunchSetting.objects.update(enabled=False)
    assert [look(second) for second in (130, 200, 300)] == [[], [], []]
