"""Dead letters as files: over pages, REST and the command line; what is in them for whom, and how much
goes."""

import csv
import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.signals import request_finished
from django.db import close_old_connections
from django.test import Client
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from console import exports
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.exports import EXPORT
from dlq.models import DeadLetter
from tests.web import letters, reports

pytestmark = pytest.mark.django_db

BODY = Typed("string", '{"sum": 1, "card": "4111-secret"}')
PROPERTIES = {
    "region": Typed("string", "=north"),
    "card": Typed("string", "4111-secret"),
    "n": Typed("short", 3),
}


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting(masked_properties=["card"])


@pytest.fixture
def some(orders: LaunchSetting) -> list[DeadLetter]:
    letters.dead("invoices", 5, "ID:other")
    rows = [letters.dead("orders", 10 + n, f"=ID:{n}", body=BODY, properties=PROPERTIES) for n in range(3)]
    DeadLetter.objects.filter(pk=rows[0].pk).update(exception_type="KeyError")
    return rows


def signed_in(*permissions: str, name: str = "looker") -> Client:
    client = Client()
    client.force_login(reports.person(name, *permissions))
    return client


@pytest.fixture
def client() -> Client:
    return signed_in("dlq.view_deadletter")


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content).decode()


def close(answer: Any) -> None:
    """Before its end, as for a reader who is gone; the connection of the test stays."""
    request_finished.disconnect(close_old_connections)
    try:
        answer.close()
    finally:
        request_finished.connect(close_old_connections)


def test_a_list_is_a_csv_file_without_formulas(client: Client, some: list[DeadLetter]) -> None:
    answer = client.get("/dead-letters/orders/export/")
    assert answer["Content-Type"].startswith("text/csv") and "attachment" in answer["Content-Disposition"]
    text = text_of(answer)
    assert text.startswith("\ufeff")
    rows = list(csv.DictReader(StringIO(text[1:], newline="")))
    assert [row["message_key"] for row in rows] == ["'=ID:2", "'=ID:1", "'=ID:0"]
    assert rows[0]["body_text"] == '{"sum": 1, "card": "•••"}'
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.setting_key, entry.counts, entry.result) == (
        "dead_letters.export",
        "orders",
        {"letters": 3},
        "done",
    )


def test_the_filter_of_the_list_is_that_of_the_file(client: Client, some: list[DeadLetter]) -> None:
    for address, keys in (
        ("/dead-letters/orders/export/?file=jsonl&exception=KeyError", ["=ID:0"]),
        ("/letters/export/?file=jsonl&setting=orders&match=1", ["=ID:2", "=ID:1", "=ID:0"]),
        ("/letters/export/?file=jsonl", ["=ID:2", "=ID:1", "=ID:0", "ID:other"]),
        ("/dead-letters/bin/export/?file=jsonl", []),
    ):
        lines = text_of(client.get(address)).splitlines()
        assert [json.loads(line)["message_key"] for line in lines] == keys, address


@pytest.mark.parametrize("sees", [False, True])
def test_whole_letters_have_their_properties_as_far_as_one_may_see_them(
    some: list[DeadLetter], sees: bool
) -> None:
    client = signed_in("dlq.view_deadletter", *(["dlq.can_see_masked"] if sees else []))
    text = text_of(client.get("/dead-letters/orders/export/?file=jsonl&bodies=1"))
    assert ("4111-secret" in text) is sees
    row = json.loads(text.splitlines()[0])
    assert row["body"]["text"] == (BODY.value if sees else '{"sum": 1, "card": "•••"}')
    assert row["message"]["masked"] is not sees
    assert {"name": "n", "type": "short", "value": 3} in row["message"]["properties"]
    table = text_of(client.get("/dead-letters/orders/export/?bodies=1"))
    assert ("4111-secret" in table) is sees and "properties" not in table


def test_it_comes_in_pieces(client: Client, some: list[DeadLetter], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlq.exports.PIECE", 2)
    monkeypatch.setattr("console.exports.JOINED", 1)
    answer = client.get("/letters/export/?file=jsonl")
    pieces = [piece for piece in answer.streaming_content if piece]  # type: ignore[attr-defined]
    assert len(pieces) == 4


def test_too_many_are_left_to_the_command_line(
    client: Client, some: list[DeadLetter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.exports.MOST", 2)
    answer = client.get("/dead-letters/orders/export/?prop=n%3D3", follow=True)
    assert "./ma manage dlq export" in answer.content.decode() and "prop" in answer.redirect_chain[0][0]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.result, entry.target) == (EXPORT, "refused", "setting:orders")


def test_only_so_many_at_once_and_a_place_is_given_back(client: Client, some: list[DeadLetter]) -> None:
    held = [client.get("/letters/export/") for _ in range(exports.AT_ONCE)]
    assert client.get("/letters/export/").status_code == 302
    assert AuditEntry.objects.filter(action=EXPORT, target="letters:all", result="refused").count() == 1
    for each in held:
        close(each)
    failed = AuditEntry.objects.filter(result="failed")
    assert failed.count() == exports.AT_ONCE, "what broke off is told"
    text_of(client.get("/letters/export/"))


def test_a_reader_that_is_too_slow_gets_a_broken_file(
    client: Client, some: list[DeadLetter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.exports.LONGEST", -1.0)
    monkeypatch.setattr("console.exports.JOINED", 1)
    answer = client.get("/letters/export/")
    with pytest.raises(TimeoutError):
        b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    close(answer)
    assert AuditEntry.objects.filter(result="failed").exists()


def test_who_may_not_see_gets_nothing(some: list[DeadLetter]) -> None:
    assert signed_in(name="nobody").get("/dead-letters/orders/export/").status_code == 403
    assert AuditEntry.objects.filter(action=EXPORT, by_name="nobody", result="refused").count() == 1
    assert signed_in("dlq.view_deadletter").get("/letters/export/?file=exe").status_code == 404


def test_over_rest(some: list[DeadLetter], monkeypatch: pytest.MonkeyPatch) -> None:
    client = APIClient()
    client.credentials(
        HTTP_AUTHORIZATION=reports.bearer_of(reports.person("reader", "dlq.view_deadletter"))["Authorization"]
    )
    lines = text_of(
        client.get("/api/v1/dead-letters/export/?file=jsonl&setting=orders&exception=KeyError")
    ).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [some[0].pk]
    wrong = client.get("/api/v1/dead-letters/export/?nope=1")
    assert (wrong.status_code, wrong.json()["error"]) == (409, "bad_filter")
    monkeypatch.setattr("dlq.exports.MOST", 2)
    assert client.get("/api/v1/dead-letters/export/").json()["error"] == "too_many"
    outsider = APIClient()
    bearer = reports.bearer_of(reports.person("outsider"))["Authorization"]
    outsider.credentials(HTTP_AUTHORIZATION=bearer)
    assert outsider.get("/api/v1/dead-letters/export/").status_code == 403
    kept = AuditEntry.objects.filter(action=EXPORT, result="refused").order_by("pk")
    assert list(kept.values_list("by_name", flat=True)) == ["reader", "reader", "outsider"]


def test_the_command_masks_for_anybody_unless_a_person_is_named(some: list[DeadLetter]) -> None:
    User.objects.create_superuser("chief")

    def told(*arguments: str) -> str:
        out = StringIO()
        call_command("dlq", "export", "--setting", "orders", *arguments, stdout=out, stderr=StringIO())
        return out.getvalue()

    for form in (["--format", "jsonl", "--bodies"], []):
        assert "4111-secret" not in told(*form)
        assert "4111-secret" in told(*form, "--as", "chief")
    assert AuditEntry.objects.filter(action=EXPORT).values_list("by_name", flat=True).distinct().count() == 2


def test_a_file_and_rest_tell_what_a_letter_died_of_as_its_page_does(
    client: Client, orders: LaunchSetting
) -> None:
    """Also after retention has deleted the protocol; a spreadsheet calculates nothing of it."""
    letter = letters.dead("orders", 10, "ID:1")
    text = "=cmd|'/c calc'!A0 no price for <b>"
    DeadLetter.objects.filter(pk=letter.pk).update(
        exception_type="KeyError", exception_text=text, place="a.py:handle"
    )

    (told,) = [
        json.loads(line)
        for line in text_of(client.get("/dead-letters/orders/export/?file=jsonl")).splitlines()
    ]
    assert (told["exception_text"], told["place"]) == (text, "a.py:handle")
    (row,) = csv.DictReader(StringIO(text_of(client.get("/dead-letters/orders/export/?file=csv"))))
    assert row["exception_text"].endswith(text) and not row["exception_text"].startswith("=")

    person = User.objects.get(username="looker")
    rest = APIClient()
    rest.credentials(HTTP_AUTHORIZATION=reports.bearer_of(person)["Authorization"])
    assert rest.get("/api/v1/dead-letters/").json()["results"][0]["exception_text"] == text
    assert rest.get(f"/api/v1/dead-letters/{letter.pk}/").json()["exception_text"] == text

    outsider = APIClient()
    outsider.credentials(HTTP_AUTHORIZATION=reports.bearer_of(reports.person("outsider"))["Authorization"])
    assert outsider.get(f"/api/v1/dead-letters/{letter.pk}/").status_code == 403
