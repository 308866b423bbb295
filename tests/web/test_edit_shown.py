"""What an edit changed is shown for ever: in the case file, on the replay, in the audit, over REST."""

from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from contract.typed import Typed
from dlq.edit.operations import edit_letter
from dlq.edit.rules.changes import Changes
from dlq.edit.rules.diff import stored_changes, visible_changes
from dlq.models import DeadLetter, LetterEdit, ReplayJob
from dlq.replay.preflight.rules import CODES
from tests.web import letters, reports

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

OLD, NEW = '-  "sum": 1.10', '+  "sum": 2.50'
SECRET = "4111-secret"
SEES = ("dlq.view_deadletter", "failures.view_failureprotocol", "console.view_auditentry")
LINES_HIDDEN = "The changed lines are hidden"


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def letter(orders: LaunchSetting) -> DeadLetter:
    body = Typed("string", '{"sum": 1.10, "pin": "' + SECRET + '"}')
    return letters.dead("orders", 10, "ID:10", body=body, properties={"region": Typed("string", "north")})


@pytest.fixture
def job(letter: DeadLetter) -> ReplayJob:
    by = User.objects.create_superuser("chief")
    changes = Changes(text='{"sum": 2.50, "pin": "' + SECRET + '"}', put={"region": Typed("string", "south")})
    return edit_letter(letter, changes, by=by, reason="wrong sum", now=timezone.now(), acknowledged=CODES)


def page(user: User, path: str) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return unescape(answer.content.decode())


def items(user: User, job: ReplayJob) -> Any:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    answer = client.get(f"/api/v1/replays/{job.pk}/letters/")
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def pages_of(letter: DeadLetter, job: ReplayJob) -> list[str]:
    return [f"/letters/{letter.pk}/", "/cases/?key=ID:10&setting=orders", f"/replays/{job.pk}/", "/audit/"]


def test_every_page_about_it_shows_the_lines(letter: DeadLetter, job: ReplayJob) -> None:
    # The first move ends: a case file tells of what happened, not of what is planned.
    job.items.update(state="given_back")
    reader = reports.person("reader", *SEES)
    for path in pages_of(letter, job):
        text = page(reader, path)
        for expected in (OLD, NEW, "north (string)", "south (string)"):
            assert expected in text, (path, expected)


def test_rest_gives_the_changes_of_each_item(letter: DeadLetter, job: ReplayJob) -> None:
    found = items(reports.person("reader", *SEES), job)[0]
    assert [each["what"] for each in found["changes"]] == ["body", "region"]
    assert f"{OLD}," in found["changes"][0]["lines"] and "masked" not in found["changes"][0]
    assert found["changes_deleted_at"] is None
    LetterEdit.objects.update(diff=[], body_deleted_at=timezone.now())
    assert items(User.objects.get(username="reader"), job)[0]["changes_deleted_at"] is not None


def test_an_item_without_an_edit_has_no_changes(letter: DeadLetter, orders: LaunchSetting) -> None:
    job = letters.given_back(orders, letter)
    reader = reports.person("reader", *SEES)
    assert items(reader, job)[0]["changes"] is None
    assert "Changes to message" not in page(reader, f"/replays/{job.pk}/")


def test_what_was_masked_when_it_was_edited_leaves_the_rest_to_see(
    letter: DeadLetter, orders: LaunchSetting
) -> None:
    LaunchSetting.objects.update(masked_properties=["pin"])
    by = User.objects.create_superuser("chief")
    changes = Changes(text='{"sum": 2.50, "pin": "other-secret"}')
    job = edit_letter(letter, changes, by=by, now=timezone.now(), acknowledged=CODES)
    job.items.update(state="given_back")
    reader = reports.person("reader", *SEES)
    for path in pages_of(letter, job):
        text = page(reader, path)
        assert OLD in text and NEW in text and "-secret" not in text, path


def test_what_is_masked_since_hides_the_lines(letter: DeadLetter, job: ReplayJob) -> None:
    job.items.update(state="given_back")
    LaunchSetting.objects.update(masked_properties=["pin", "region"])
    reader, trusted = reports.person("reader", *SEES), reports.person("trusted", *SEES, "dlq.can_see_masked")
    for path in pages_of(letter, job):
        text = page(reader, path)
        assert LINES_HIDDEN in text and OLD not in text, path
        assert "south (string)" not in text and SECRET not in text, path
        assert "region" in text, "that it changed is said"
        assert NEW in page(trusted, path), path
    told = items(reader, job)[0]["changes"]
    assert told[0]["hides_lines"] and "lines" not in told[0] and told[1]["after"] == "•••"


def test_who_reads_the_audit_alone_sees_no_message(letter: DeadLetter, job: ReplayJob) -> None:
    text = page(reports.person("auditor", "console.view_auditentry"), "/audit/")
    assert "hidden: you have no permission to see this message" in text
    assert OLD not in text and "south" not in text


def test_changes_that_retention_deleted_are_said_to_be_gone(letter: DeadLetter, job: ReplayJob) -> None:
    job.items.update(state="given_back")
    LetterEdit.objects.update(diff=[], body_deleted_at=timezone.now())
    reader = reports.person("reader", *SEES)
    for path in pages_of(letter, job):
        assert "deleted by retention" in page(reader, path), path


def test_a_diff_that_says_not_what_was_masked_is_judged_as_if_nothing_was() -> None:
    stored = [{"what": "body", "before": "1 bytes", "after": "2 bytes", "lines": ["+a"]}]
    assert visible_changes(stored, frozenset())[0]["lines"] == ["+a"]
    assert visible_changes(stored, frozenset({"pin"}))[0] == {
        "what": "body", "before": "1 bytes", "after": "2 bytes", "hides_lines": True,
    }  # fmt: skip
    kept = stored_changes(stored, frozenset({"pin"}))
    assert visible_changes(kept, frozenset({"pin"})) == stored
    assert visible_changes(kept, frozenset({"pin", "card"}))[0]["hides_lines"]


def test_values_that_name_what_is_masked_are_hidden_and_what_is_absent_stays_absent() -> None:
    stored = [{"what": "/customer", "before": None, "after": '{"card": 7}'}]
    assert visible_changes(stored, frozenset({"card"})) == [
        {"what": "/customer", "before": None, "after": "•••"}
    ]


def test_the_form_shows_json_indented_and_says_so(letter: DeadLetter) -> None:
    chief = User.objects.create_superuser("chief")
    text = page(chief, f"/letters/{letter.pk}/edit/")
    assert '{\n  "sum": 1.10,\n' in text and "The JSON is shown with indentation" in text
    plain = letters.dead("orders", 11, "ID:11", body=Typed("string", "hello"))
    assert "shown with indentation" not in page(chief, f"/letters/{plain.pk}/edit/")
