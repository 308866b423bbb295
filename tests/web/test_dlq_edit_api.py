"""Editing dead letters over REST."""

import base64
from typing import Any

import pytest
from rest_framework.test import APIClient

from broker.amqp.codec import decode
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.models import DeadLetter, LetterEdit, ReplayJob
from dlq.replay.preflight.rules import CODES
from tests.web import letters, reports

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

PROPERTIES = {"region": Typed("string", "north"), "tries": Typed("short", 3), "card": Typed("string", "4111")}


@pytest.fixture
def letter() -> DeadLetter:
    reports.setting(masked_properties=["card"])
    return letters.dead("orders", 10, "ID:10", body=Typed("string", '{"sum": 1}'), properties=PROPERTIES)


def client(*permissions: str) -> APIClient:
    client = APIClient()
    person = reports.person("editor", *permissions)
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(person)["Authorization"])
    return client


def editor() -> APIClient:
    return client("dlq.view_deadletter", "dlq.edit_letters")


def post(by: APIClient, letter: DeadLetter, **data: Any) -> Any:
    return by.post(f"/api/v1/dead-letters/{letter.pk}/edit/", data, format="json")


def test_a_dry_run_tells_the_diff_and_stores_nothing(letter: DeadLetter) -> None:
    answer = post(
        editor(),
        letter,
        body={"text": '{"sum": 2}'},
        set=[{"name": "tries", "type": "int", "value": 4}],
        dry_run=True,
    )
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert told["changes"][1] == {"what": "tries", "before": "3 (short)", "after": "4 (int)"}
    assert '+  "sum": 2' in told["changes"][0]["lines"] and told["going"] == 1
    assert {each["code"] for each in told["warnings"]} <= set(CODES)
    assert not ReplayJob.objects.exists()


def test_an_edit_is_a_job_with_the_copy(letter: DeadLetter) -> None:
    content = base64.b64encode(b'{"sum": 3}').decode()
    by = editor()
    refused = post(by, letter, remove=["region"])
    assert (refused.status_code, refused.json()["error"]) == (409, "unacknowledged")
    assert "then acknowledge: " in refused.json()["what_to_do"], "as the field is named"
    assert AuditEntry.objects.get().result == "refused"
    answer = post(
        by, letter, body={"text": '{"sum": 3}'}, remove=["region"], reason="mended", acknowledge=CODES
    )
    assert answer.status_code == 201, answer.content
    copy = decode(bytes(LetterEdit.objects.get(item__job=answer.json()["id"]).encoded))
    assert copy.body.value == '{"sum": 3}' and "region" not in copy.properties
    again = post(by, letter, body={"base64": content}, acknowledge=CODES)
    assert (again.status_code, again.json()["error"]) == (400, "body_fixed"), "its body is text"
    again = post(by, letter, body={"text": "{}"}, acknowledge=CODES)
    assert (again.status_code, again.json()["error"]) == (409, "outstanding")


@pytest.mark.parametrize(
    ("data", "status", "error"),
    [
        ({}, 400, "unchanged"), ({"body": {"text": "{"}}, 400, "no_json"), ({"body": 7}, 400, "unreadable"),
        ({"set": [{"name": "card", "value": "x"}]}, 400, "locked"), ({"remove": ["nope"]}, 400,
        "no_property"),
        ({"set": [{"name": "a", "type": "int", "value": {}}]}, 400, "unreadable"), ({"set": 7}, 400,
        "invalid"),
        ({"set": [{"name": "a", "type": "map"}]}, 400, "invalid"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_answered(letter: DeadLetter, data: dict[str, Any], status: int, error: str) -> None:
    answer = post(editor(), letter, acknowledge=CODES, **data)
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.content
    assert not ReplayJob.objects.exists()


def test_a_letter_that_cannot_be_edited_is_a_conflict(letter: DeadLetter) -> None:
    DeadLetter.objects.update(truncated=True)
    answer = post(editor(), letter, remove=["region"])
    assert (answer.status_code, answer.json()["error"]) == (409, "truncated")


def test_who_may_not_is_refused_and_that_is_in_the_audit(letter: DeadLetter) -> None:
    answer = post(client("dlq.view_deadletter", "dlq.give_back"), letter, remove=["region"])
    assert answer.status_code == 403
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.result, entry.by_name, entry.letter) == (
        "dead_letter.edit",
        "refused",
        "editor",
        letter.pk,
    )
    answer = post(client_of("nobody"), letter, remove=["region"])
    assert answer.status_code == 404


def client_of(name: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(reports.person(name))["Authorization"])
    return client


def post_rule(by: APIClient, **data: Any) -> Any:
    return by.post("/api/v1/dead-letters/edit/", {"setting": "orders", **data}, format="json")


def test_a_rule_is_tried_and_then_a_job(letter: DeadLetter) -> None:
    plain = letters.dead("orders", 11, "ID:11", body=Typed("string", "hello"))
    rule = [{"op": "set_json", "pointer": "/sum", "value": 2}, {"op": "remove_property", "name": "region"}]
    by = editor()
    told = post_rule(by, all=True, rule=rule, dry_run=True).json()
    assert (told["seen"], told["fits"], told["more"], told["preflight"]["going"]) == (2, 1, False, 2)
    assert told["letters"][0]["changes"][0] == {"what": "/sum", "before": "1", "after": "2"}
    assert told["left_out"][0] == {
        "code": "no_json", "reason": "The body is not JSON.", "count": 1, "letters": [plain.pk],
    }  # fmt: skip
    assert not ReplayJob.objects.exists()
    refused = post_rule(by, all=True, rule=rule)
    assert (refused.status_code, refused.json()["error"]) == (409, "unacknowledged")
    answer = post_rule(by, letters=[letter.pk, plain.pk], rule=rule, acknowledge=CODES, per_second=5)
    assert (answer.status_code, answer.json()["action"], answer.json()["total"]) == (201, "edit", 2), (
        answer.content
    )


@pytest.mark.parametrize(
    ("data", "status", "error"),
    [
        ({"all": True}, 400, "invalid"), ({"rule": []}, 400, "invalid"),
        ({"all": True, "rule": [{"op": "set_property", "name": "card", "value": "x"}]}, 400, "locked"),
        ({"all": True, "rule": [{"op": "eval"}]}, 400, "no_operation"),
        ({"query": "nope=1", "rule": [{"op": "remove_property", "name": "x"}]}, 400, "bad_filter"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_refused_with_a_word(
    letter: DeadLetter, data: dict[str, Any], status: int, error: str
) -> None:
    answer = post_rule(editor(), **data)
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.content


def test_a_rule_needs_the_right_to_edit(letter: DeadLetter) -> None:
    answer = post_rule(client("dlq.view_deadletter"), all=True, rule=[{"op": "remove_property", "name": "x"}])
    assert answer.status_code == 403 and AuditEntry.objects.get().result == "refused"
