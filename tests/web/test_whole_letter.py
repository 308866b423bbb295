"""Fetching a letter whole: who may, what it says before, and what the audit keeps of it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import LaunchSetting
from broker.amqp.codec import encode
from broker.port import Message
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.models import DeadLetter, WholeFetch
from tests.web import letters
from tests.web.rows import api_client

WHOLE = '{"card": "4111", "text": "' + "x" * 3000 + '"}'


@pytest.fixture
def letter(setting: LaunchSetting) -> DeadLetter:
    found = letters.dead("orders", 10, "ID:10")
    DeadLetter.objects.filter(pk=found.pk).update(truncated=True, size=3_000_000)
    found.refresh_from_db()
    return found


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker counts."""
    for module in ("dlq.pages.dead_letters.full_body", "dlq.api.full_body", "dlq.full_body.operations"):
        monkeypatch.setattr(f"{module}.message_count", lambda queue: 1200)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def done(letter: DeadLetter) -> None:
    encoded = encode(Message(body=Typed("string", WHOLE)))
    WholeFetch.objects.update_or_create(letter=letter, defaults={"state": "done", "encoded": encoded})


def actions() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", "result"))


def test_the_page_says_what_it_costs_how_far_it_is_and_gives_the_bytes(
    operator: User, letter: DeadLetter
) -> None:
    client, address = signed_in(operator), f"/letters/{letter.pk}/"
    assert "1,200" in client.get(address).content.decode()
    client.post(f"{address}whole/")
    WholeFetch.objects.update(seen=700)
    assert "Searching the queue. Messages read: 700 of 1,200." in client.get(address).content.decode()
    client.post(f"{address}whole/cancel/")
    assert WholeFetch.objects.get().state == "cancelled"
    done(letter)
    assert "Download full body" in client.get(address).content.decode()
    answer = client.get(f"{address}whole/body/")
    assert answer.content.decode() == WHOLE
    assert answer["Content-Disposition"].startswith("attachment") and answer["Content-Type"].endswith(
        "octet-stream"
    )
    assert actions() == [("body.fetch", "done"), ("body.cancel", "done"), ("body.download", "done")]
    assert {*AuditEntry.objects.values_list("letter", "scope")} == {(letter.pk, "one")}


def test_rest_does_the_same(operator: User, letter: DeadLetter) -> None:
    client, address = api_client(operator), f"/api/v1/dead-letters/{letter.pk}/whole/"
    told = client.get(address).json()
    assert (told["truncated"], told["fetch"], told["cost"]["letters"]) == (True, None, 1200)
    assert client.post(address).status_code == 202
    assert client.post(address).json()["error"] == "exists"
    assert client.get(address).json()["fetch"]["state"] == "asked"
    assert client.get(f"{address}body/").status_code == 404
    assert client.delete(address).status_code == 204
    assert client.delete(address).status_code == 409
    done(letter)
    assert client.get(f"{address}body/").content.decode() == WHOLE
    refused = AuditEntry.objects.filter(result="refused").values_list("action", flat=True)
    assert sorted(refused) == ["body.cancel", "body.fetch"]


def test_masked_fields_are_not_told_by_fetching_it_whole(operator: User, letter: DeadLetter) -> None:
    LaunchSetting.objects.filter(key="orders").update(masked_properties=["card"])
    done(letter)
    assert signed_in(operator).get(f"/letters/{letter.pk}/whole/body/").status_code == 403
    assert api_client(operator).get(f"/api/v1/dead-letters/{letter.pk}/whole/body/").status_code == 403
    assert actions() == [("body.download", "refused")] * 2
    assert {*AuditEntry.objects.values_list("letter", "setting_key")} == {(letter.pk, "orders")}


def test_who_may_not_see_the_letter_gets_nothing(outsider: User, letter: DeadLetter) -> None:
    done(letter)
    client, rest = signed_in(outsider), api_client(outsider)
    for path in ("whole/", "whole/cancel/"):
        assert client.post(f"/letters/{letter.pk}/{path}").status_code == 403
    assert client.get(f"/letters/{letter.pk}/whole/body/").status_code == 403
    for path in ("", "body/"):
        assert rest.get(f"/api/v1/dead-letters/{letter.pk}/whole/{path}").status_code == 403
    assert rest.post(f"/api/v1/dead-letters/{letter.pk}/whole/").status_code == 403


def test_a_letter_that_is_kept_whole_or_is_gone_is_not_looked_for(operator: User, letter: DeadLetter) -> None:
    client, address = api_client(operator), f"/api/v1/dead-letters/{letter.pk}/whole/"
    for fields in ({"truncated": False}, {"truncated": True, "state": "gone"}):
        DeadLetter.objects.filter(pk=letter.pk).update(**fields)
        assert client.post(address).json()["error"] == "not_possible"
    assert not WholeFetch.objects.exists()
