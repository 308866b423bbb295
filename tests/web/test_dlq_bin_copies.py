"""Putting back the original of an edited letter, whose copy is on its way already: left out, or
acknowledged."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from dlq.models import DeadLetter, LetterEdit, ReplayItem, ReplayJob
from tests.web import letters, reports
from tests.web.test_dlq_jobs_command import told

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db, pytest.mark.usefixtures("sent")]
CODE = "edited_copy_sent"
PUT_BACK = {"setting": "orders", "action": "put_back"}


@pytest.fixture
def orders() -> LaunchSetting:
    reports.person("anna", "dlq.view_deadletter", "dlq.view_replayjob", "dlq.discard")
    return reports.setting()


def into_bin(setting: LaunchSetting, number: int, key: str, action: str, **fields: Any) -> DeadLetter:
    """The row in the bin of a letter that died as `number`: its own id is the one that it had as a letter."""
    original = letters.dead("orders", number, key)
    job = letters.given_back(setting, original)
    ReplayJob.objects.filter(pk=job.pk).update(action=action, target_queue="DLQ.bin")
    if action == "edit":
        LetterEdit.objects.create(item=ReplayItem.objects.get(job=job), encoded=b"", state="done")
    row = letters.dead("orders", number + 1, key)
    row.queue, row.orig_queue, row.message_key = "DLQ.bin", "DLQ.orders", original.message_key
    for name, value in fields.items():
        setattr(row, name, value)
    row.save()
    return row


@pytest.fixture
def edited(orders: LaunchSetting) -> DeadLetter:
    return into_bin(orders, 10, "ID:1", "edit")


@pytest.fixture
def discarded(orders: LaunchSetting) -> DeadLetter:
    return into_bin(orders, 30, "ID:2", "discard")


def rest(address: str, body: dict[str, Any]) -> Any:
    client = APIClient()
    client.force_authenticate(anna())
    return client.post(address, body, format="json")


def anna() -> User:
    return User.objects.get(username="anna")


def test_of_many_it_is_left_out_and_the_reason_is_told_everywhere(
    edited: DeadLetter, discarded: DeadLetter
) -> None:
    flight = rest("/api/v1/preflight/", PUT_BACK | {"all": True}).json()
    assert (flight["going"], flight["skipped"], flight["examples"]) == (1, {CODE: 1}, {CODE: [edited.pk]})
    assert "original of an edited message: the copy was already replayed" in flight["reasons"][CODE]

    asked = ("--setting", "orders", "--as", "anna", "--all")
    assert f"skipped    1: {flight['reasons'][CODE]}" in told("preflight", *asked, "--action", "put_back")

    client = Client()
    client.force_login(anna())
    shown = client.get("/dead-letters/orders/put-back/?all=1").content.decode()
    assert flight["reasons"][CODE] in shown


def test_a_job_leaves_it_out_as_the_preflight_says(edited: DeadLetter, discarded: DeadLetter) -> None:
    answer = rest("/api/v1/replays/", PUT_BACK | {"letters": [edited.pk, discarded.pk]})
    assert answer.status_code == 201, answer.content
    items = ReplayItem.objects.filter(job=answer.json()["id"])
    assert dict(items.values_list("letter", "why")) == {edited.pk: CODE, discarded.pk: ""}


def test_alone_it_goes_once_that_is_acknowledged(edited: DeadLetter) -> None:
    refused = rest("/api/v1/replays/", PUT_BACK | {"letters": [edited.pk]})
    assert refused.status_code == 409 and refused.json()["warnings"] == [CODE]
    assert AuditEntry.objects.filter(action="dead_letters.restore", result="refused").count() == 1

    client = Client()
    client.force_login(anna())
    url = "/dead-letters/orders/put-back/"
    shown = client.get(f"{url}?letter={edited.pk}").content.decode()
    assert (
        f'value="{CODE}"' in shown
        and (
            "The edited copy of this message was already replayed. If you also restore and replay "
            "the original, the message is processed twice."
        )
        in shown
    )
    client.post(url, {"letters": str(edited.pk)})
    how = ("--setting", "orders", "--reason", "as it was", "--as", "anna")
    with pytest.raises(
        CommandError,
        match=(
            "The edited copy of this message was already replayed. If you also restore and replay "
            "the original, the message is processed twice."
        ),
    ):
        told("put-back", *how, str(edited.pk))
    assert not ReplayJob.objects.filter(action="put_back").exists()
    told("put-back", *how, "--acknowledge", CODE, str(edited.pk))
    assert ReplayJob.objects.get(action="put_back").acknowledged == [CODE]


@pytest.mark.parametrize("state", ["planned", "failed"])
def test_a_copy_that_was_never_sent_hinders_nothing(edited: DeadLetter, state: str) -> None:
    LetterEdit.objects.update(state=state)
    assert rest("/api/v1/preflight/", PUT_BACK | {"all": True}).json()["going"] == 1


def test_it_is_told_from_its_copy_that_died_and_was_discarded(
    orders: LaunchSetting, edited: DeadLetter
) -> None:
    copy = into_bin(orders, 50, "ID:1", "discard")
    flight = rest("/api/v1/preflight/", PUT_BACK | {"all": True}).json()
    assert flight["examples"] == {CODE: [edited.pk]} and flight["going"] == 1
    assert rest("/api/v1/replays/", PUT_BACK | {"letters": [copy.pk]}).status_code == 201


def test_equal_messages_without_an_id_may_each_be_the_edited_one(orders: LaunchSetting) -> None:
    for number, action in ((10, "edit"), (30, "discard")):
        into_bin(orders, number, "", action)
    assert rest("/api/v1/preflight/", PUT_BACK | {"all": True}).json()["skipped"] == {CODE: 2}
