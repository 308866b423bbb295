"""Editing many letters by a rule, on its pages: what is tried, what is shown, who may, what is written
down."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.models import DeadLetter, ReplayJob
from dlq.replay.preflight.rules import CODES
from tests.web import letters, reports
from tests.web.test_pages_edit_letter import fields

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

SUM = {"o-0-op": "set_json", "o-0-place": "/sum", "o-0-value": "2.50"}
CARD = {"region": Typed("string", "north"), "card": Typed("string", "4111-secret")}


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting(masked_properties=["card"])


@pytest.fixture
def some(orders: LaunchSetting) -> list[DeadLetter]:
    """Two that a rule for the sum fits, one that it does not."""
    rows = [
        letters.dead(
            "orders",
            10 + n,
            f"ID:{n}",
            body=Typed("string", f'{{"sum": {n}, "card": "4111-secret"}}'),
            properties=CARD,
        )
        for n in range(2)
    ]
    return [*rows, letters.dead("orders", 20, "ID:plain", body=Typed("string", "hello"), properties=CARD)]


@pytest.fixture
def editor() -> User:
    return reports.person("editor", "dlq.view_deadletter", "dlq.edit_letters")


@pytest.fixture
def client(editor: User) -> Client:
    client = Client()
    client.force_login(editor)
    return client


def look(client: Client, **data: Any) -> Any:
    return client.post("/dead-letters/orders/edit/", {"step": "look", "all": "1", **data})


def confirm(client: Client, shown: Any, **data: Any) -> Any:
    confirmed = fields(shown.content.decode()) | {"step": "confirm", "acknowledge": CODES} | data
    return client.post("/dead-letters/orders/edit/", confirmed)


@pytest.mark.parametrize("scope", ["all", "match", "letters"])
def test_from_the_rule_over_the_trial_to_the_job(
    client: Client, some: list[DeadLetter], editor: User, scope: str
) -> None:
    ways: dict[str, dict[str, Any]] = {
        "all": {"all": "1"}, "match": {"match": "1", "group": "1"},
        "letters": {"letter": [row.pk for row in some]},
    }  # fmt: skip
    chosen = ways[scope]
    found = fields(client.get("/dead-letters/orders/edit/", chosen).content.decode())
    form = {name: value for name, value in found.items() if not name.startswith("o-")}
    shown = client.post("/dead-letters/orders/edit/", form | SUM)
    text = unescape(shown.content.decode())
    assert "2 of 3" in text and "The body is not JSON." in text and "2.50" in text and "4111" not in text
    assert f'href="/letters/{some[2].pk}/"' in text and not ReplayJob.objects.exists()
    answer = confirm(client, shown, reason="wrong sums", ladder="1", per_second="5")
    job = ReplayJob.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/replays/{job.pk}/")
    assert job.scope == {"all": "all", "match": "group", "letters": "selection"}[scope]
    assert (job.action, job.by, job.ladder, job.per_second, job.reason) == (
        "edit",
        editor,
        True,
        5,
        "wrong sums",
    )
    assert job.edit_rule == {
        "operations": [{"op": "set_json", "pointer": "/sum", "json": "2.50"}], "locked": ["card"],
    }  # fmt: skip
    assert "/sum = 2.50" in client.get(f"/replays/{job.pk}/").content.decode()
    entry = AuditEntry.objects.get(operation=job.pk)
    assert entry.action == "dead_letters.edit"
    assert entry.detail["rule"] == [{"op": "set_json", "place": "/sum", "value": "2.50"}]


def test_what_is_masked_is_neither_shown_nor_set(client: Client, some: list[DeadLetter]) -> None:
    for rule in (
        {"o-0-op": "set_property", "o-0-place": "card", "o-0-value": "x"},
        {"o-0-op": "remove_property", "o-0-place": "card"},
        {"o-0-op": "set_json", "o-0-place": "/card", "o-0-value": "1"},
        {"o-0-op": "set_json", "o-0-place": "/sum", "o-0-value": '{"card": 1}'},
        {"o-0-op": "remove_json", "o-0-place": "/card"},
    ):
        assert "cannot be changed" in look(client, **rule).content.decode()
    over_it = look(client, **{"o-0-op": "set_json", "o-0-place": "", "o-0-value": "{}"}).content.decode()
    assert "cannot be changed" in over_it and "4111" not in over_it
    assert "The rule applies to none of these messages: nothing would change." in over_it


def test_who_may_see_it_sets_it_and_the_audit_does_not_tell(some: list[DeadLetter]) -> None:
    chief = Client()
    chief.force_login(User.objects.create_superuser("chief"))
    shown = look(chief, **{"o-0-op": "set_property", "o-0-place": "card", "o-0-value": "5500-secret"})
    assert "5500-secret" in shown.content.decode()
    assert confirm(chief, shown).status_code == 302
    told = AuditEntry.objects.get().detail
    assert "5500" not in json.dumps(told) and "•••" in told["rule"][0]["value"]


def test_the_form_keeps_what_was_written_and_says_what_is_wrong(
    client: Client, some: list[DeadLetter]
) -> None:
    answer = look(client, **{"o-3-op": "set_json", "o-3-place": "/sum", "o-3-value": "two"})
    text = answer.content.decode()
    assert "Operation 1" in text and "The value is not JSON:" in text
    assert fields(text)["o-0-value"] == "two", "its row is the first one now"
    assert "The rule has no operations. Add at least one." in look(client).content.decode()
    shown = look(client, **SUM)
    again = fields(confirm(client, shown, step="again").content.decode())
    assert (again["o-0-place"], again["o-0-value"]) == ("/sum", "2.50")


def test_a_warning_has_to_be_ticked_and_a_great_number_to_be_typed(
    client: Client, some: list[DeadLetter], monkeypatch: pytest.MonkeyPatch
) -> None:
    LaunchSetting.objects.update(enabled=False)
    monkeypatch.setattr("dlq.replay.preflight.rules.TYPED_ABOVE", 2)
    shown = look(client, **SUM)
    refused = confirm(client, shown, acknowledge=[], confirm="3")
    assert "The job was not started: acknowledge the warnings below first." in refused.content.decode()
    assert "Type the number" in confirm(client, shown, confirm="2").content.decode()
    assert not ReplayJob.objects.exists()
    assert confirm(client, shown, confirm="3").status_code == 302


def test_a_group_begins_with_the_ladder_that_is_recommended(
    client: Client, some: list[DeadLetter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.replay.preflight.rules.MANY", 3)
    DeadLetter.objects.update(fingerprint="v1:a")
    shown = client.post(
        "/dead-letters/orders/edit/",
        {"step": "look", "match": "1", "group": "1", "query": "fingerprint=v1:a", **SUM},
    )
    text = shown.content.decode()
    assert re.search(r'name="ladder"[^>]* checked', text) and "messages (recommended)" in text


def test_above_the_limit_a_second_person_decides(
    client: Client, some: list[DeadLetter], settings: Any
) -> None:
    settings.MA_SECOND_PERSON_ABOVE = 2
    shown = look(client, **SUM)
    assert (
        "A job with more than 2 messages needs approval from a second person before it starts."
    ) in shown.content.decode()
    confirm(client, shown)
    assert ReplayJob.objects.get().state == "awaiting"


def test_a_trial_is_bounded(client: Client, some: list[DeadLetter], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlq.edit.operations.TRIED", 2)
    monkeypatch.setattr("dlq.edit.operations.SHOWN", 0)
    text = look(client, **SUM).content.decode()
    assert "1 of 2" in text and "Only the newest messages were tested. The job tests every message." in text


def test_who_may_not_edit_gets_nothing(some: list[DeadLetter]) -> None:
    client = Client()
    client.force_login(reports.person("looker", "dlq.view_deadletter", "dlq.give_back"))
    assert client.get("/dead-letters/orders/edit/?all=1").status_code == 403
    answer = client.post("/dead-letters/orders/edit/", {"step": "confirm", "all": "1", "rule": "[]"})
    assert answer.status_code == 403 and AuditEntry.objects.get().result == "refused"


@pytest.mark.parametrize(
    "rule", ["", "{", "[]", "{}", '[{"op": "eval"}]', "[" * 100_000, '[{"op": "set_json"}]']
)
def test_hostile_rules_are_refused(client: Client, some: list[DeadLetter], rule: str) -> None:
    answer = client.post("/dead-letters/orders/edit/", {"step": "confirm", "all": "1", "rule": rule})
    assert answer.status_code == 200 and not ReplayJob.objects.exists()
