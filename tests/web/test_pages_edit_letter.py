"""Editing one letter on its page: what is shown, what changes, who may."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.models import LaunchSetting
from broker.amqp.codec import decode
from broker.port import BodyKind
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.models import DeadLetter, LetterContent, LetterEdit, ReplayJob
from dlq.replay.preflight.rules import CODES
from tests.web import letters, reports

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

BODY = '\n{"sum": 1.10, "note": "a</textarea><script>x</script>"}\n'
PROPERTIES = {
    "region": Typed("string", "north"), "tries": Typed("short", 3), "card": Typed("string", "4111-secret"),
    "raw": Typed("binary", b"\0\xff"), "ratio": Typed("double", 0.1), "when": Typed("timestamp",
    1_700_000_000_123),
    "lines": Typed("string", "a\nb"), "many": Typed("list", (Typed("int", 1),)), "none": Typed("null", None),
    "_AMQ_X": Typed("string", "broker"), "space": Typed("string", " x "),
}  # fmt: skip


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def letter(orders: LaunchSetting) -> DeadLetter:
    return letters.dead("orders", 10, "ID:10", body=Typed("string", BODY), properties=PROPERTIES)


@pytest.fixture
def editor() -> User:
    return reports.person("editor", "dlq.view_deadletter", "dlq.edit_letters")


@pytest.fixture
def client(editor: User) -> Client:
    client = Client()
    client.force_login(editor)
    return client


def fields(text: str) -> dict[str, str]:
    """What a browser would send of the form, unchanged."""
    found: dict[str, str] = {}
    for tag in re.findall(r"<input [^>]*>", text):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        if attributes.get("type") in ("checkbox", "file") or not attributes.get("name"):
            continue
        found[attributes["name"]] = unescape(attributes.get("value", ""))
    for name, options in re.findall(r'<select name="([^"]*)"[^>]*>(.*?)</select>', text, re.DOTALL):
        chosen = re.search(r"<option selected>([^<]*)<", options)
        found[name] = chosen[1] if chosen else "string"
    for name, content in re.findall(r'<textarea [^>]*name="([^"]*)"[^>]*>(.*?)</textarea>', text, re.DOTALL):
        # A browser drops one line end after the tag, and sends all others as CR LF.
        found[name] = re.sub(r"\r?\n", "\r\n", unescape(content).removeprefix("\n"))
    found.pop("csrfmiddlewaretoken", None)
    return found


def form_of(client: Client, letter: DeadLetter) -> dict[str, str]:
    answer = client.get(f"/letters/{letter.pk}/edit/")
    assert answer.status_code == 200
    return fields(answer.content.decode())


def row(form: dict[str, str], name: str) -> str:
    return next(key[:-5] for key, value in form.items() if key.endswith("-name") and value == name)


def post(client: Client, letter: DeadLetter, **data: Any) -> Any:
    return client.post(f"/letters/{letter.pk}/edit/", data)


def test_a_form_that_is_sent_as_it_came_changes_nothing(client: Client, letter: DeadLetter) -> None:
    answer = post(client, letter, **form_of(client, letter))
    assert "No changes found. Change the body or a property first." in answer.content.decode()
    assert not ReplayJob.objects.exists()


def test_from_the_form_over_the_diff_to_the_job(client: Client, letter: DeadLetter, editor: User) -> None:
    form = form_of(client, letter)
    region, tries = row(form, "region"), row(form, "tries")
    form["text"] = form["text"].replace("1.10", "2.50")
    form[f"{tries}-type"], form[f"{region}-remove"] = "int", "1"
    form["p-900-name"], form["p-900-type"], form["p-900-value"] = "new", "boolean", "true"
    shown = post(client, letter, **form)
    text = unescape(shown.content.decode())
    for expected in (
        "-  &quot;sum&quot;: 1.10",
        "+  &quot;sum&quot;: 2.50",
        "3 (short)",
        "3 (int)",
        "north (string)",
    ):
        assert unescape(expected) in text, expected
    assert "<script>x" not in shown.content.decode() and not ReplayJob.objects.exists()
    confirmed = {
        **fields(shown.content.decode()),
        "step": "confirm",
        "reason": "wrong sum",
        "acknowledge": CODES,
    }
    answer = post(client, letter, **confirmed)
    job = ReplayJob.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/replays/{job.pk}/")
    assert (job.action, job.scope, job.reason, job.by, job.total) == ("edit", "one", "wrong sum", editor, 1)
    copy = decode(bytes(LetterEdit.objects.get(item__job=job).encoded))
    assert copy.body == Typed("string", BODY.replace("1.10", "2.50")), "line ends are those of the letter"
    assert "region" not in copy.properties and copy.properties["new"] == Typed("boolean", True)
    kept = {n: i for n, i in PROPERTIES.items() if n not in ("region", "tries")}
    assert {**copy.properties, **kept} == copy.properties and copy.properties["tries"] == Typed("int", 3)
    assert AuditEntry.objects.get().letter == letter.pk


def test_a_warning_that_is_not_ticked_keeps_the_job_from_beginning(
    client: Client, letter: DeadLetter
) -> None:
    LaunchSetting.objects.update(enabled=False)
    form = form_of(client, letter) | {"text": "{}"}
    confirmed = {**fields(post(client, letter, **form).content.decode()), "step": "confirm", "reason": "why"}
    answer = post(client, letter, **confirmed)
    assert (
        answer.status_code == 200
        and "The job was not started: acknowledge the warnings below first." in answer.content.decode()
    )
    assert not ReplayJob.objects.exists() and not LetterEdit.objects.exists()
    assert AuditEntry.objects.get().result == "refused", "the attempt stays in the audit"
    again = fields(answer.content.decode()) | {"step": "confirm", "acknowledge": CODES}
    assert post(client, letter, **again).status_code == 302
    assert ReplayJob.objects.get().reason == "why"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": "{"}, "The body was JSON, but the new body is not:"),
        ({"p-900-name": "x", "p-900-type": "int", "p-900-value": "y"},
        "x: The value"),
        ({"p-900-name": "_AMQ_Y", "p-900-value": "y"}, "annot be changed"),
        ({"p-900-name": "ma_letter", "p-900-value": "y"}, "annot be changed"),
        ({"p-900-name": "region", "p-900-value": "a", "p-901-name": "region", "p-901-value": "b"},
        "The same property is set twice."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_above_the_form(
    client: Client, letter: DeadLetter, change: dict[str, str], said: str
) -> None:
    answer = post(client, letter, **{**form_of(client, letter), **change})
    assert said in answer.content.decode() and 'name="text"' in answer.content.decode()


def test_json_may_become_something_else_when_the_person_says_so(client: Client, letter: DeadLetter) -> None:
    answer = post(client, letter, **form_of(client, letter) | {"text": "hello", "other_form": "1"})
    assert 'value="confirm"' in answer.content.decode()


def test_one_can_go_back_to_the_form_and_change_more(client: Client, letter: DeadLetter) -> None:
    form = form_of(client, letter) | {"text": '{"a": 1}', "p-900-name": "new", "p-900-value": "v"}
    shown = fields(post(client, letter, **form).content.decode())
    again = fields(post(client, letter, **shown | {"step": "again"}).content.decode())
    assert again["text"] == '{\r\n  "a": 1\r\n}' and again[f"{row(again, 'new')}-value"] == "v"


def test_a_file_becomes_the_body_of_bytes(client: Client, orders: LaunchSetting) -> None:
    row = letters.dead("orders", 11, "ID:11", body=Typed("binary", b"\0\xff\1"), body_kind=BodyKind.DATA)
    page = client.get(f"/letters/{row.pk}/edit/").content.decode()
    assert "<textarea" not in page and 'type="file"' in page
    shown = post(client, row, step="look", file=SimpleUploadedFile("b", b"\0\xfe\1"))
    confirmed = {**fields(shown.content.decode()), "step": "confirm", "acknowledge": CODES}
    assert post(client, row, **confirmed).status_code == 302
    assert decode(bytes(LetterEdit.objects.get().encoded)).body == Typed("binary", b"\0\xfe\1")


def test_masked_values_are_neither_shown_nor_changed(client: Client, letter: DeadLetter) -> None:
    LaunchSetting.objects.update(masked_properties=["card", "note"])
    text = client.get(f"/letters/{letter.pk}/edit/").content.decode()
    assert (
        "4111-secret" not in text
        and "a&lt;/textarea" not in text
        and "The body has fields that are masked for you, so you cannot edit it." in text
    )
    form = fields(text) | {"p-900-name": "card", "p-900-value": "x"}
    assert "annot be changed" in post(client, letter, **form).content.decode()
    form = fields(text) | {"text": "{}"}
    assert "masked for you" in post(client, letter, **form).content.decode()
    form = fields(text)
    form[f"{row(form, 'region')}-value"] = "south"
    confirmed = fields(post(client, letter, **form).content.decode()) | {
        "step": "confirm",
        "acknowledge": CODES,
    }
    assert "4111" not in json.dumps(confirmed)
    post(client, letter, **confirmed)
    copy = decode(bytes(LetterEdit.objects.get().encoded))
    assert copy.properties["card"] == PROPERTIES["card"] and copy.body.value == BODY


def test_the_stored_diff_is_masked_whoever_edits(letter: DeadLetter) -> None:
    LaunchSetting.objects.update(masked_properties=["card", "note"])
    chief = Client()
    chief.force_login(User.objects.create_superuser("chief"))
    form = form_of(chief, letter)
    form["text"] = form["text"].replace("script", "secret")
    form[f"{row(form, 'card')}-value"] = "5500-secret"
    shown = post(chief, letter, **form).content.decode()
    assert "5500-secret" in shown
    post(chief, letter, **fields(shown) | {"step": "confirm", "acknowledge": CODES})
    stored = json.dumps(LetterEdit.objects.get().diff)
    assert "secret" not in stored and "4111" not in stored


def test_who_may_not_edit_gets_nothing(letter: DeadLetter) -> None:
    for name, permissions, status in (
        ("looker", ["dlq.view_deadletter", "dlq.give_back"], 403), ("nobody", [], 404),
    ):  # fmt: skip
        client = Client()
        client.force_login(reports.person(name, *permissions))
        assert client.get(f"/letters/{letter.pk}/edit/").status_code == status
        assert post(client, letter, step="confirm", changes='{"remove": ["region"]}').status_code == status
    assert not ReplayJob.objects.exists()


@pytest.mark.parametrize(
    "fields_", [{"truncated": True}, {"queue": "DLQ.unknown"}, {"orig_message_id": -3}, {"content": b"\0"}]
)
def test_a_letter_that_cannot_be_edited_says_why(
    client: Client, letter: DeadLetter, fields_: dict[str, Any]
) -> None:
    changed = dict(fields_)
    if content := changed.pop("content", None):
        LetterContent.objects.filter(letter=letter).update(encoded=content)
    DeadLetter.objects.filter(pk=letter.pk).update(**changed or {"chapter": 1})
    answer = client.get(f"/letters/{letter.pk}/edit/", follow=True)
    assert "This message cannot be edited." in answer.content.decode()


def test_of_two_who_edit_one_letter_one_is_refused(client: Client, letter: DeadLetter) -> None:
    form = form_of(client, letter) | {"text": "{}"}
    confirmed = fields(post(client, letter, **form).content.decode()) | {
        "step": "confirm",
        "acknowledge": CODES,
    }
    assert post(client, letter, **confirmed).status_code == 302
    answer = post(client, letter, **confirmed)
    assert (answer.status_code, answer["Location"]) == (302, f"/letters/{letter.pk}/")
    assert ReplayJob.objects.count() == LetterEdit.objects.count() == 1


def test_hostile_changes_are_refused(client: Client, letter: DeadLetter) -> None:
    for changes in ("", "[]", "{", '{"set": 1}', "[" * 100_000):
        answer = post(client, letter, step="confirm", changes=changes)
        assert answer.status_code == 200 and not ReplayJob.objects.exists()
