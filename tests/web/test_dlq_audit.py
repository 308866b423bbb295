"""The audit: rows are only added, and what was refused is among them."""

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone
from django.utils.translation import override
from rest_framework.test import APIClient

from console.audit.log import attempt, record, record_refused
from console.audit.models import AuditChanged, AuditEntry, AuditResult
from console.audit.text import ACTIONS, action_words, codes_of, count_words, detail_words, scope_words
from console.audit.web import AuditFilter, AuditSchema
from console.operations.refusals import Refused
from dlq.models import JobState, ReplayJob
from dlq.replay.worker.endings import finish
from tests.web import letters, reports

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return reports.person("anna")


def test_a_row_is_never_changed_and_never_deleted(anna: User) -> None:
    entry = record(
        "dead_letters.discard", by=anna, now=timezone.now(), target="letter:1", letter=1, counts={"moved": 1}
    )
    entry.reason = "another one"
    for change in (entry.save, entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(AuditChanged):
            change()
    with pytest.raises(AuditChanged):
        AuditEntry.objects.update(reason="another one")
    kept = AuditEntry.objects.get()
    assert (kept.by_name, kept.reason, kept.counts, kept.result) == (
        "anna",
        "",
        {"moved": 1},
        AuditResult.DONE,
    )


def test_the_row_of_a_person_who_is_deleted_keeps_the_name(anna: User) -> None:
    record("dead_letters.discard", by=anna, now=timezone.now(), target="letter:1")
    anna.delete()
    kept = AuditEntry.objects.get()
    assert (kept.by, kept.by_name) == (None, "anna")


@pytest.mark.parametrize("error", [PermissionDenied("no"), Refused("outstanding", "no")])
def test_a_refused_attempt_is_recorded_once(anna: User, error: Exception) -> None:
    about: dict[str, Any] = {"by": anna, "target": "letter:1", "setting_key": "orders", "letter": 1}
    twice = (attempt("dead_letters.discard", **about) for _ in range(2))
    with pytest.raises(type(error)), next(twice), next(twice):
        raise error
    entry = AuditEntry.objects.get()
    assert (entry.result, entry.setting_key, entry.letter, entry.detail["why"]) == (
        "refused",
        "orders",
        1,
        "no",
    )


def test_what_simply_breaks_is_no_refusal(anna: User) -> None:
    with pytest.raises(ZeroDivisionError), attempt("dead_letters.discard", by=anna, target="letter:1"):
        raise ZeroDivisionError
    assert not AuditEntry.objects.exists()


def test_hostile_and_long_texts_are_stored(anna: User) -> None:
    record_refused(
        "dead_letters.discard" * 20, by=anna, target="x\0" * 400, setting_key="k" * 99, why="\ud800" * 9000
    )
    assert AuditEntry.objects.get().result == "refused"


# -- searching -----------------------------------------------------------------------------------------------


@pytest.fixture
def some(anna: User) -> list[AuditEntry]:
    now = timezone.now()
    old: dict[str, Any] = {
        "by": anna,
        "now": now - timedelta(days=3),
        "target": "letter:7",
        "letter": 7,
        "setting_key": "orders",
    }
    return [
        record("dead_letters.discard", **old, reason="<b>old</b>"),
        record("dead_letters.replay", by=None, now=now, target="replay:x", setting_key="invoices"),
        record_refused(
            "dead_letters.discard", by=anna, target="page:/x/", setting_key="orders", why="no right"
        ),
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [2, 1, 0]), ("person=anna", [2, 0]), ("action=dead_letters.replay", [1]),
        ("setting=orders", [2, 0]),
        ("result=refused", [2]), ("letter=7", [0]), ("span=1d", [2, 1]), ("target=replay:x", [1]),
        ("person=nobody", []),
    ],
)  # fmt: skip
def test_the_audit_is_searched_over_rest(some: list[AuditEntry], query: str, found: list[int]) -> None:
    client = APIClient()
    auditor = reports.person("auditor", "console.view_auditentry")
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(auditor)["Authorization"])
    rows = client.get(f"/api/v1/audit/?{query}").json()["results"]
    assert [row["id"] for row in rows] == [some[n].pk for n in found]


def test_the_letters_of_a_job_lead_to_its_entries(some: list[AuditEntry]) -> None:
    setting = reports.setting()
    letter = letters.dead("orders", 10, "ID:1")
    job = letters.given_back(setting, letter)
    record("dead_letters.replay", by=None, now=timezone.now(), target=f"replay:{job.pk}", operation=job.pk)
    found = AuditFilter({"letter": str(letter.pk)}, AuditEntry.objects.all()).qs
    assert [entry.operation for entry in found] == [job.pk]


def test_a_filter_that_is_not_understood_is_refused(some: list[AuditEntry]) -> None:
    client = APIClient()
    auditor = reports.person("auditor", "console.view_auditentry")
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(auditor)["Authorization"])
    assert (
        "dead_letters.replay, dead_letters.redirect"
        in client.get("/api/v1/audit/?action=give").json()["detail"]
    )
    for query in (
        "action=give",
        "result=x",
        "operation=x",
        "letter=-1",
        f"letter={2**80}",
        "since=x",
        "span=9y",
    ):
        assert client.get(f"/api/v1/audit/?{query}").status_code == 400, query


def test_the_page_shows_who_did_what_and_is_for_those_who_may(some: list[AuditEntry], client: Client) -> None:
    client.force_login(reports.person("auditor", "console.view_auditentry"))
    shown = client.get("/audit/?person=anna").content.decode()
    assert "no right" in shown and "&lt;b&gt;old&lt;/b&gt;" in shown and "invoices" not in shown
    for nonsense in ("before=x", f"before={2**99}", "letter=x", "operation=1", "span=9y"):
        assert client.get(f"/audit/?{nonsense}").status_code == 200
    client.force_login(reports.person("outsider"))
    assert client.get("/audit/").status_code == 403


def test_stable_words_are_shown_as_people_read_them() -> None:
    assert (
        str(action_words("replay.stopped")) == "replay: stopped automatically"
        and action_words("new_one") == "new_one"
    )
    assert str(scope_words("selection")) == "selected messages"
    counts = {"planned": 0, "given_back": 3, "dead_again": 1, "odd": 1_204}
    assert [(str(name), n) for name, n in count_words(counts)] == [
        ("replayed", "3"),
        ("dead-lettered again", "1"),
        ("odd", "1,204"),
    ]


def test_an_action_is_chosen_by_its_name_and_found_with_its_attempts(
    anna: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, same = "dead_letters.replay", "asked"
    monkeypatch.setitem(ACTIONS, same, ACTIONS[code])
    done = record(same, by=anna, now=timezone.now(), target="replay:x")
    tried = record_refused(code, by=anna, target="replay:x")
    record("dead_letters.discard", by=anna, now=timezone.now(), target="replay:x")
    for named, found in ((code, [done, tried]), (same, [done])):
        assert list(AuditFilter({"action": named}, AuditEntry.objects.order_by("pk")).qs) == found
    client.force_login(reports.person("auditor", "console.view_auditentry"))
    shown = client.get("/audit/").content.decode()
    assert f'<option value="{code}">replay</option>' in shown and "User (exact name)" in shown
    assert f"?action={same}" not in shown and f'href="?action={code}"' in shown
    assert shown.count(">replay</option>") == 1


def test_which_actions_are_one_is_the_same_in_every_language() -> None:
    """They are one by their words: two that a translation does not tell apart would become one."""
    with override("en"):
        wanted = [codes_of(code) for code in ACTIONS]
    with override("ru"):
        assert [codes_of(code) for code in ACTIONS] == wanted


def test_an_entry_leads_to_what_it_was_done_to(anna: User, client: Client) -> None:
    job, action = uuid4(), uuid4()
    entries: list[tuple[str, dict[str, Any]]] = [
        ("page:/letters/7/edit/", {"letter": 7}),
        (f"replay:{job}", {"operation": job}),
        (f"message_action:{action}", {"operation": action}),
        ("erased:0c1f", {"operation": uuid4()}),
        ("letter:8", {"operation": uuid4()}),
    ]
    for target, about in entries:
        record("look", by=anna, now=timezone.now(), target=target, **about)
    client.force_login(reports.person("auditor", "console.view_auditentry"))
    shown = client.get("/audit/").content.decode()
    leads = re.findall(r'<a class="small" href="([^"]*)"', shown)
    assert leads == [f"/waiting-actions/{action}/", f"/replays/{job}/", "/letters/7/"]


@pytest.mark.parametrize("key", ["Orders.v1", "ключ", "a/b", "a b", "x" * 300, ""])
def test_what_cannot_be_hinders_nobody_from_reading_the_audit(anna: User, client: Client, key: str) -> None:
    """Who exports names a setting as they like."""
    record("protocols.export", by=anna, now=timezone.now(), target=f"setting:{key}")
    record("look", by=anna, now=timezone.now(), target="letter:8", letter=8)
    client.force_login(reports.person("auditor", "console.view_auditentry"))
    page = client.get("/audit/")
    assert page.status_code == 200 and "/letters/8/" in page.content.decode()


def test_the_description_of_the_interface_names_every_code() -> None:
    assert get_resolver().url_patterns
    (named,) = [each.enum for each in AuditSchema().get_override_parameters() if each.name == "action"]
    assert named is not None and set(named) == set(ACTIONS)


def test_a_code_is_declared_by_one_app() -> None:
    with pytest.raises(ValueError, match="dead_letters.replay"):
        ACTIONS.declare({"dead_letters.replay": "once more", "new_one": "new"})
    assert "new_one" not in ACTIONS


def test_details_are_words() -> None:
    pairs = {
        "acknowledged": (["same_version", "ordered"],
        "the agent version had not changed since the failure, the subscription is ordered"),
        "bodies": (False, "no"), "settings": ({"orders": 2}, "orders: 2"), "letters": ([7, 8], "7, 8"),
        "kind": ("to_dlq", "move to DLQ"), "odd": ("x", "x"),
        "rule": ([{"op": "remove_property", "place": "region", "value": ""}], "remove a property: region"),
    }  # fmt: skip
    for name, (value, words) in pairs.items():
        assert detail_words(name, value)[1] == words
    assert str(detail_words("bodies", False)[0]) == "with bodies"


def test_the_end_of_a_replay_says_how_many_outcomes_are_open_then(anna: User, client: Client) -> None:
    """Nobody thinks that 29 messages are lost: they were moved, and nothing was heard of them yet."""
    job = ReplayJob.objects.create(
        setting=reports.setting(), setting_key="orders", scope="all", state=JobState.RUNNING, by=anna,
        holder=uuid4(), lease_until=timezone.now() + timedelta(minutes=1),
        planned_at=timezone.now(), total=185, counts={"given_back": 185, "handled": 150, "dead_again": 6},
    )  # fmt: skip
    finish(job, timezone.now())

    entry = AuditEntry.objects.get(action="replay.done")
    assert entry.counts["open_outcomes"] == 29
    client.force_login(reports.person("auditor", "console.view_auditentry"))
    shown = client.get("/audit/").content.decode()
    assert "awaiting outcome: 29" in re.sub(r"<[^>]+>", "", shown)
