"""Failure protocols as files: what is in them, for whom, how much at once, and what the audit knows."""

import csv
import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.test import Client
from rest_framework.test import APIClient

from console.audit.models import AuditEntry
from failures.intake.batch import accept_batch
from tests.web import reports
from tests.web.reports import AT, Spool

pytestmark = pytest.mark.django_db
PERMISSIONS = ("failures.view_failureprotocol", "failures.can_export_protocols")
URL = "/protocols/export/"


@pytest.fixture
def stored() -> list[str]:
    """Ids, newest first."""
    run = reports.run(reports.setting(), reports.server())
    of = reports.run_of(run)
    texts = ["=1+1", "+cmd", "-2", "@SUM(A1)", "\tx", "\ry", 'plain, "quoted"\nтекст']
    contents = [
        reports.protocol(
            of, reports.message(f"ID:{n}", properties={"region": "=north"}), exception_text=text,
            occurred_at=AT + timedelta(minutes=n), counted=n != 6,
        )
        for n, text in enumerate(texts)
    ]  # fmt: skip
    batch = Spool().batch(*contents)
    accept_batch(run.server, batch, AT)
    return [str(record.id) for record in reversed(batch.records)]


@pytest.fixture
def client() -> Client:
    return signed_in(*PERMISSIONS)


def signed_in(*permissions: str, name: str = "looker") -> Client:
    client = Client()
    client.force_login(reports.person(name, *permissions))
    return client


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content).decode()


def table(answer: Any) -> list[dict[str, str]]:
    text = text_of(answer)
    assert text.startswith("\ufeff")
    return list(csv.DictReader(StringIO(text[1:], newline="")))


def test_a_csv_file_has_no_formulas(client: Client, stored: list[str]) -> None:
    rows = table(client.get(URL))

    assert [row["id"] for row in rows] == stored
    assert [row["exception_text"] for row in rows] == [
        "plain, \"quoted\"\nтекст", "'\ry", "'\tx", "'@SUM(A1)", "'-2", "'+cmd", "'=1+1"
    ]  # fmt: skip
    assert "traceback" not in rows[0] and rows[0]["counted"] == "false"


def test_json_lines_are_whole(client: Client, stored: list[str]) -> None:
    rows = [json.loads(line) for line in text_of(client.get(f"{URL}?file=jsonl")).splitlines()]

    assert [row["id"] for row in rows] == stored
    assert rows[0]["properties"] == {"region": "=north"} and rows[0]["traceback"].startswith("Traceback")
    assert rows[0]["occurred_at"] == "2026-03-01T12:06:00+00:00"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("counted=false", [0]),
        ("text=SUM&setting=orders", [3]),
        ("message_key=ID:0", [6]),
        ("text=nowhere", []),
    ],
)
def test_the_filter_of_the_list_is_that_of_the_file(
    client: Client, stored: list[str], query: str, found: list[int]
) -> None:
    assert [row["id"] for row in table(client.get(f"{URL}?file=csv&{query}"))] == [stored[n] for n in found]


@pytest.mark.parametrize("budget", [10.0, -1.0])
def test_it_comes_in_pieces_and_goes_on_where_the_time_was_over(
    client: Client, stored: list[str], monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    monkeypatch.setattr("failures.protocols.exporting.PIECE", 2)
    monkeypatch.setattr("failures.protocols.search.WINDOW", 1)
    monkeypatch.setattr("failures.protocols.search.BUDGET", budget)

    assert [row["id"] for row in table(client.get(f"{URL}?setting=orders"))] == stored


def test_what_is_not_understood_or_too_much_is_refused(
    client: Client, stored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        "Nothing was selected: the filter is invalid. Correct the filter and try again."
        in client.get(f"{URL}?nonsense=1", follow=True).content.decode()
    )
    monkeypatch.setattr("failures.protocols.exporting.MOST", 3)
    answer = client.get(f"{URL}?setting=orders", follow=True)

    assert (
        "failures match. Narrow the filter, for example by time." in answer.content.decode()
        and "setting=orders" in answer.redirect_chain[0][0]
    )
    kept = AuditEntry.objects.get()
    assert (kept.action, kept.result, kept.target) == ("protocols.export", "refused", "setting:orders")
    assert client.get(f"{URL}?file=exe").status_code == 404


def test_a_file_that_turns_out_too_long_is_broken_and_told(
    client: Client, stored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could count: the time was over before."""
    monkeypatch.setattr("failures.protocols.exporting.MOST", 3)
    monkeypatch.setattr("failures.protocols.search.WINDOW", 1)
    monkeypatch.setattr("failures.protocols.search.BUDGET", -1.0)
    answer: Any = client.get(URL)
    with pytest.raises(OverflowError):
        b"".join(answer.streaming_content)
    request_finished.disconnect(close_old_connections)
    try:
        answer.close()
    finally:
        request_finished.connect(close_old_connections)

    assert sorted(entry.result for entry in AuditEntry.objects.all()) == ["done", "failed"]


def test_the_audit_knows_who_took_what_without_personal_values(client: Client, stored: list[str]) -> None:
    text_of(client.get(f"{URL}?file=jsonl&setting=orders&message_key=ID:1&text=cmd"))
    entry = AuditEntry.objects.get()

    assert (entry.action, entry.by_name, entry.target) == ("protocols.export", "looker", "setting:orders")
    assert entry.counts == {"protocols": 1}
    assert "ID:1" not in str(entry.detail) and "cmd" not in str(entry.detail)
    assert "setting=orders" in entry.detail["query"]


@pytest.mark.parametrize("has", [PERMISSIONS[:1], PERMISSIONS[1:], ()])
def test_seeing_and_exporting_are_both_needed(stored: list[str], has: tuple[str, ...]) -> None:
    client = signed_in(*has)
    person = APIClient()
    person.credentials(HTTP_AUTHORIZATION=reports.bearer_of(reports.person("rest", *has))["Authorization"])

    assert client.get(URL).status_code == 403
    assert person.get(f"/api/v1{URL}").status_code == 403
    entries = AuditEntry.objects.order_by("pk").values_list("action", "result", "by_name")
    assert list(entries) == [
        ("protocols.export", "refused", "looker"), ("protocols.export", "refused", "rest"),
    ]  # fmt: skip
    if has == PERMISSIONS[:1]:
        assert "protocols/export" not in client.get("/protocols/").content.decode()


def test_over_rest(stored: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    client = APIClient()
    person = reports.person("rest", *PERMISSIONS)
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(person)["Authorization"])
    url = f"/api/v1{URL}"

    assert len(text_of(client.get(f"{url}?file=jsonl&setting=orders")).splitlines()) == 7
    assert client.get(f"{url}?file=exe").status_code == 400
    for query, where in (
        ("nonsense=1", f"/api/v1{URL}"),
        ("nonsense=", f"/api/v1{URL}"),
        ("span=9y", "span"),
    ):
        answer = client.get(f"{url}?{query}")
        assert (answer.status_code, answer.json()["error"], answer.json()["where"]) == (400, "invalid", where)
        assert answer.json()["what_to_do"] and "__all__" not in str(answer.json())
    monkeypatch.setattr("failures.protocols.exporting.MOST", 3)
    refused = client.get(url)
    assert (refused.status_code, refused.json()["error"]) == (409, "too_many")
