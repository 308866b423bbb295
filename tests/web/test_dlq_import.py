"""Importing JSON lines as new messages: what is taken, what is refused as a whole, who may, and nothing
twice."""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from broker.port import AddressUnknown, BodyKind, BrokerUnavailable, Message, Outgoing
from console.audit.models import AuditEntry
from console.operations.refusals import WronglyAsked
from contract.typed import Typed
from dlq import exports
from dlq.dead_letters.masks import Masks
from dlq.imports import rules
from dlq.models import DeadLetter
from tests.web import letters, reports
from tests.web.pages import broker_answers, broker_figures
from tests.web.test_pages_edit_letter import fields

pytestmark = pytest.mark.django_db

LINE = (
    '{"body": {"text": "{\\"sum\\": 1}"}, "message": {"properties": [{"name": "n", '
    '"type": "short", "value": 3}]}}'
)
MAY = ("dlq.view_deadletter", "dlq.import_letters")


class Broker:
    """Takes what is sent, each duplicate id once; `trouble` comes with a portion."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.known: set[str] = set()
        self.trouble: list[Exception | None] = []

    def publish(self, messages: Sequence[Outgoing]) -> None:
        trouble = self.trouble.pop(0) if self.trouble else None
        if trouble is not None:
            raise trouble
        for each in messages:
            id_ = each.message.properties["_AMQ_DUPL_ID"].value
            if id_ not in self.known:
                self.known.add(id_)
                self.sent.append(each)

    def close(self) -> None: ...


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr("dlq.imports.operations.AmqpPublisher", lambda _account: broker)
    return broker


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def client(orders: LaunchSetting) -> Client:
    client = Client()
    client.force_login(reports.person("tester", *MAY))
    return client


def api(*permissions: str) -> APIClient:
    client = APIClient()
    person = reports.person("api", *permissions)
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(person)["Authorization"])
    return client


def post(client: APIClient, lines: str = LINE, **data: Any) -> Any:
    return client.post("/api/v1/imports/", {"setting": "orders", "lines": lines, **data}, format="json")


# -- lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"body": Typed("string", '{"a": "é\\u0000\u2028"}')},
        {"body": Typed("binary", b"\0\xff"), "body_kind": BodyKind.DATA},
        {"body": Typed("binary", b"text"), "body_kind": BodyKind.DATA}, {"body": Typed("null", None)},
        {"body": Typed("map", ((Typed("string", "k"), Typed("int", 1)),))},
        {"body": Typed("list", (Typed("int", 1),)), "body_kind": BodyKind.SEQUENCE},
        {"subject": "s", "reply_to": "r", "correlation_id": Typed("ulong", 9), "priority": 7,
        "durable": False},
    ],
)  # fmt: skip
def test_what_was_exported_is_imported_as_it_was(orders: LaunchSetting, message: dict[str, Any]) -> None:
    properties = {
        "region": Typed("string", "Север"), "short": Typed("short", -3), "when": Typed("timestamp",
        1_700_000_000_000),
        "raw": Typed("binary", b"\0\xff"), "flag": Typed("boolean", True), "f": Typed("double", 0.1),
        "nothing": Typed("null", None), "char": Typed("char", "x"), "_AMQ_X": Typed("string", "broker"),
    }  # fmt: skip
    letters.dead("orders", 10, "ID:10", properties=properties, **message)
    rows = exports.rows(exports.of_rows(DeadLetter.objects.all()), Masks(), bodies=True)
    parcel = rules.parcel_of("".join(exports.lines(rows, "jsonl")).encode())
    (made,) = parcel.messages
    kept = {name: item for name, item in properties.items() if name != "_AMQ_X"}
    assert made == Message(properties=kept, **({"body": Typed("string", "{}")} | message))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not a valid message"),
        ("[]", "not a valid message"),
        ("7", "not a valid message"),
        ("{}", "no body"),
        ('{"body": 7}', "not a valid message"),
        ('{"body": {"masked": ""}}', "masked"), ('{"body": {"text": "x"}, "message": {"masked": true}}',
        "masked"),
        ('{"body": {"text": 7}}', "not a valid message"),
        ('{"body": {"base64": "%"}}', "not a valid message"),
        ('{"body": {"text": "x"}, "message": {"priority": 10}}', "0 to 9"),
        ('{"body": {"text": "x"}, "message": {"body_kind": "data"}}', "does not match its type"),
        ('{"body": {"text": "x"}, "message": {"properties": [{"name": "n", "type": "int", "value": "y"}]}}',
        "n: The value"),
        ('{"body": {"text": "x"}, "message": {"properties": [{"name": "", "type": "int", "value": 1}]}}',
        "Enter a property name."),
        ('{"body": {"text": "x"}, "message": {"body": {"type": "int", "value": "y"}}}', "cannot be sent:"),
        ("[" * 100_000, "not a valid message"),
    ],
)  # fmt: skip
def test_one_bad_line_refuses_all(line: str, why: str) -> None:
    with pytest.raises(WronglyAsked) as refused:
        rules.parcel_of(f"{LINE}\n\n{line}\n".encode())
    (problem,) = refused.value.more["problems"]
    assert refused.value.code == "bad_lines" and problem.startswith("Line 3: ") and why in problem


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf\n \n", "empty"),
        (b"x" * 17 * 1024 * 1024, "too_large"),
        (b"{}\n" * 1001, "too_many"),
    ],
)
def test_bounds(content: bytes, code: str) -> None:
    with pytest.raises(WronglyAsked) as refused:
        rules.parcel_of(content)
    assert refused.value.code == code


# -- sending -------------------------------------------------------------------------------------------------


def test_from_the_file_over_the_look_to_the_messages(
    client: Client, broker: Broker, orders: LaunchSetting
) -> None:
    assert "JSON Lines file" in client.get("/dead-letters/orders/import/").content.decode()
    file = SimpleUploadedFile("m.jsonl", b"\xef\xbb\xbf" + f"{LINE}\n{LINE}\n".encode())
    shown = client.post("/dead-letters/orders/import/", {"step": "look", "file": file})
    assert "2 messages" in shown.content.decode() and not broker.sent
    confirmed = fields(shown.content.decode())
    unticked = client.post("/dead-letters/orders/import/", confirmed)
    assert (
        "Nothing was sent: confirm the warnings below first." in unticked.content.decode() and not broker.sent
    )
    answer = client.post("/dead-letters/orders/import/", confirmed | {"known": "1", "reason": "a test"})
    assert answer.status_code == 302
    first, second = broker.sent
    assert first.destination == f"{orders.destination.name}::orders"  # type: ignore[union-attr]
    assert first.message.body == Typed("string", '{"sum": 1}') and first.message.properties["n"] == Typed(
        "short", 3
    )
    assert first.message.message_id != second.message.message_id
    entries = list(AuditEntry.objects.order_by("pk"))
    assert [(entry.action, entry.counts, entry.reason) for entry in entries] == [
        ("messages.import_begun", {"messages": 2}, "a test"), ("messages.import", {"messages": 2}, "a test"),
    ]  # fmt: skip
    again = client.post("/dead-letters/orders/import/", confirmed | {"known": "1"})
    assert "The same lines were already imported" in again.content.decode() and len(broker.sent) == 2
    client.post("/dead-letters/orders/import/", confirmed | {"known": "1", "again": "1"})
    assert len(broker.sent) == 4


def test_a_bad_file_says_which_lines_and_keeps_the_text(client: Client, broker: Broker) -> None:
    answer = client.post("/dead-letters/orders/import/", {"step": "look", "lines": LINE + "\n{<script>"})
    text = answer.content.decode()
    assert "Line 2:" in text and "&lt;script&gt;" in text
    large = client.post("/dead-letters/orders/import/", {"lines": "x" * 1_100_000})
    assert "./ma manage dlq import" in large.content.decode()


@pytest.mark.both_databases
def test_after_a_broken_import_the_same_one_sends_the_rest_only(
    broker: Broker, orders: LaunchSetting
) -> None:
    by, lines = api(*MAY), "\n".join(LINE for _ in range(250))
    assert post(by, lines).json()["sent"] is False and not broker.sent, "looking is what it does unless told"
    broker.trouble = [None, BrokerUnavailable("gone")]
    answer = post(by, lines, dry_run=False)
    assert (answer.status_code, answer.json()["error"], len(broker.sent)) == (503, "broker_away", 100)
    assert "Import the same file again: no message is sent twice." in answer.json()["what_to_do"]
    assert post(by, lines, dry_run=False).json()["sent"] is True
    assert len(broker.sent) == 250
    assert post(by, lines, dry_run=False).json()["error"] == "imported_already"
    results = AuditEntry.objects.order_by("pk").values_list("action", "result")
    assert list(results) == [
        ("messages.import_begun", "done"), ("messages.import", "refused"),
        ("messages.import_begun", "done"), ("messages.import", "done"), ("messages.import", "refused"),
    ]  # fmt: skip


def test_without_a_subscription_nothing_is_sent(broker: Broker, orders: LaunchSetting) -> None:
    broker.trouble = [AddressUnknown("no queue")]
    assert post(api(*MAY), dry_run=False).json()["error"] == "no_subscription"


def test_the_right_is_asked_for_per_pool(broker: Broker, orders: LaunchSetting) -> None:
    answer = post(api("dlq.view_deadletter", "dlq.give_back"), dry_run=False)
    assert answer.status_code == 403 and not broker.sent
    assert AuditEntry.objects.get().result == "refused"
    looker = Client()
    looker.force_login(reports.person("looker", "dlq.view_deadletter"))
    assert looker.get("/dead-letters/orders/import/").status_code == 403
    assert (
        looker.post(
            "/dead-letters/orders/import/", {"step": "confirm", "lines": LINE, "known": "1"}
        ).status_code
        == 403
    )


def test_the_command_looks_and_then_sends(broker: Broker, orders: LaunchSetting, tmp_path: Path) -> None:
    reports.person("tester", *MAY)
    file = tmp_path / "m.jsonl"
    file.write_text(LINE + "\n", "utf-8")

    def told(*arguments: str) -> str:
        out = StringIO()
        how = ("import", str(file), "--setting", "orders", "--as", "tester", *arguments)
        call_command("dlq", *how, stdout=out, stderr=StringIO())
        return out.getvalue()

    assert "nothing was sent: add --send" in told() and not broker.sent
    assert json.loads(told("--send", "--json"))["sent"] is True and len(broker.sent) == 1
    with pytest.raises(CommandError, match="The same lines were already imported"):
        told("--send")
    file.write_text("{\n", "utf-8")
    with pytest.raises(CommandError, match="not a valid message"):
        told()


@pytest.mark.parametrize(
    ("consumers", "told"), [(2, "Stopping, 2 consumers open"), (0, "wait in its subscription")]
)
def test_of_a_disabled_setting_the_page_says_whether_they_will_wait(
    client: Client,
    broker: Broker,
    orders: LaunchSetting,
    monkeypatch: pytest.MonkeyPatch,
    consumers: int,
    told: str,
) -> None:
    broker_answers(monkeypatch, broker_figures(consumers=consumers))
    LaunchSetting.objects.filter(pk=orders.pk).update(enabled=False)
    file = SimpleUploadedFile("m.jsonl", LINE.encode())
    assert (
        told in client.post("/dead-letters/orders/import/", {"step": "look", "file": file}).content.decode()
    )
