"""Failures by properties of their messages: exactly a value, with or without its name, in every state."""

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from console.database.json_values import WantedValue
from dlq.models import DeadLetter, LetterReport
from failures.models import FailureProtocol, PropertyBackfill, RecoveredMessage
from failures.protocols import properties, search
from failures.protocols.filter import ProtocolFilter
from failures.protocols.messages import LastFailure, state_of
from failures.protocols.properties import INDEX
from failures.protocols.search import newest
from tests.web import reports
from tests.web.reports import AT
from tests.web.rows import api_client

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def stored(number: int, values: Any, setting: str = "orders") -> FailureProtocol:
    return FailureProtocol.objects.create(
        id=UUID(int=number << 64), spool=UUID(int=5), number=number, epoch=1, agent="demo",
        setting_key=setting, server_name="srv-1", outcome="raised", activation_uuid=UUID(int=1),
        exception_type="KeyError", fingerprint="v1:K", message_key=f"ID:{number}",
        occurred_at=AT + timedelta(seconds=number), properties=values,
    )  # fmt: skip


def found(user: Any = None, **query: Any) -> list[int]:
    """Numbers, newest first."""
    filters = ProtocolFilter(QueryDict(urlencode(query, doseq=True)), user=user)
    assert not filters.problem, filters.problem
    return [place.key.int >> 64 for place in newest(filters.asked, 50)[0].places]


@pytest.fixture(params=["by the index", "by looking at each"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both find the same; where more than FEW may match, each is looked at."""
    if request.param == "by looking at each":
        monkeypatch.setattr(search, "FEW", 0)
    return str(request.param)


HOSTILE = ['"', "\\", "' OR 1=1 --", '" || $.*', "%", "Ж", "\U0001f600", "a\tb", "x" * 200, "$.a"]


@pytest.mark.parametrize("value", ["A-123", "12", "1.5", "true", *HOSTILE])
def test_a_value_is_found_with_its_name_and_without(value: str, way: str) -> None:
    stored(1, {"order": value, "tenant": 7})
    stored(2, {"order": f"{value}4", "other": "12 "})
    stored(3, {"other": value})

    assert found(prop=f"order={value}") == [1]
    if value == value.strip():
        assert found(value=value) == [3, 1]


@pytest.mark.parametrize(("typed", "kept"), [("12", 12), ("1.5", 1.5), ("true", True), ("-3", -3)])
def test_numbers_and_booleans_are_found_as_people_write_them(typed: str, kept: Any, way: str) -> None:
    stored(1, {"n": kept})
    stored(2, {"n": typed})
    stored(3, {"n": None})
    stored(4, {"n": f"{typed}0"})

    assert found(prop=f"n={typed}") == [2, 1]
    assert found(value=typed) == [2, 1]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_only_a_name(name: str, way: str) -> None:
    stored(1, {name: "x"})
    stored(2, {"order": "x"})

    assert found(value="x") == [2, 1]
    if "=" not in name:
        assert found(prop=f"{name}=x") == [1]


def test_several_properties_and_the_other_fields_hold_together(way: str) -> None:
    stored(1, {"order": "A", "region": "north"})
    stored(2, {"order": "A", "region": "south"})
    stored(3, {"order": "A", "region": "north"}, setting="mails")

    assert found(prop=["order=A", "region=north"]) == [3, 1]
    assert found(prop=["order=A", "region=north"], setting="orders") == [1]
    assert found(prop="order=A", since=(AT + timedelta(seconds=2)).isoformat()) == [3, 2]


def test_what_is_no_object_has_no_properties(way: str) -> None:
    stored(1, ["A"])
    stored(2, "A")

    assert found(value="A") == []


def test_one_that_was_deleted_or_forgot_its_properties_leaves_the_index() -> None:
    stored(1, {"order": "A", "copy": "A"}).delete()
    stored(2, {"order": "A"})
    stored(3, {"order": "A"})
    FailureProtocol.objects.filter(number=2).update(properties={})
    FailureProtocol.objects.filter(number=3).update(properties={"order": "B"})

    assert found(value="A") == []
    assert found(value="B") == [3]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT value FROM {INDEX.name}")
            assert cursor.fetchall() == [("B",)]


def test_the_index_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every search would look at all of them."""
    for number in range(1, 30):
        stored(number, {"order": f"A-{number}", "all": "x" * 20})
    monkeypatch.setattr(search, "_windows", lambda *_args, **_more: pytest.fail("each was looked at"))

    assert found(value="A-7") == found(prop="order=A-7") == [7]
    wanted = [WantedValue("A-7")]
    sql, given = INDEX.question(wanted)
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{sql}", given)
        plan = str(cursor.fetchall())
    assert INDEX.name in plan and f"SCAN {INDEX.name}" not in plan, plan


# -- what became of its message ------------------------------------------------------------------------------


def recovered(key: str, attempt: int, at: datetime, setting: str = "orders") -> None:
    RecoveredMessage.objects.create(
        id=uuid4(), setting_key=setting, activation_uuid=UUID(int=1), server_name="srv-1", message_key=key,
        attempt=attempt, occurred_at=at,
    )  # fmt: skip


def test_a_result_says_where_its_message_is(client: Client) -> None:
    """The whole way of a message, in every state that it may be in."""
    for number in range(1, 9):
        stored(number, {"order": "A-1"})
    recovered("ID:2", 2, AT + timedelta(minutes=1))
    recovered("ID:1", 2, AT + timedelta(minutes=1), setting="mails")
    FailureProtocol.objects.filter(number=3).update(last_attempt=True, disposition="discarded")
    for number, letter_state in ((4, "dead"), (5, "given_back"), (6, "given_back"), (7, "discarded")):
        DeadLetter.objects.create(
            node_id="n", queue="DLQ.orders", orig_message_id=number, setting_key="orders", seen_at=AT,
            message_key=f"ID:{number}", state=letter_state, state_at=AT + timedelta(minutes=1),
        )  # fmt: skip
    LetterReport.objects.create(
        id=uuid4(), setting_key="orders", message_key="ID:6", result="handled", server_name="srv-1",
        activation_uuid=UUID(int=1), attempt=1, occurred_at=AT,
    )  # fmt: skip
    FailureProtocol.objects.filter(number=8).update(message_key_weak=True)
    viewer = reports.person("viewer", "failures.view_failureprotocol")

    rows = api_client(viewer).get("/api/v1/protocols/", {"prop": "order=A-1"}).json()["results"]

    assert {row["number"]: row["message_state"] for row in rows} == {
        1: "retried", 2: "recovered", 3: "discarded", 4: "dead", 5: "replayed", 6: "recovered",
        7: "discarded", 8: "",
    }  # fmt: skip
    client.force_login(viewer)
    shown = client.get("/protocols/", {"value": "A-1"}).content.decode()
    for words in ("being retried", "processed later", "dead-lettered", "replayed", "discarded"):
        assert f'title="Current message state">{words}<' in shown, words


@pytest.mark.parametrize(
    ("failed", "recovered", "place", "state"),
    [
        (LastFailure(AT, 1), None, None, "retried"),
        (LastFailure(AT, 3, exhausted=True), None, None, "dead"),
        (LastFailure(AT, 3, exhausted=True, disposition="exception"), None, None, "exception"),
        (LastFailure(AT, 1), (2, AT - timedelta(seconds=5)), None, "recovered"),
        (LastFailure(AT, 2), (1, AT - timedelta(seconds=5)), None, "retried"),
        (LastFailure(AT, 3, exhausted=True), None, ("replayed", AT), "replayed"),
        (LastFailure(AT, 3, exhausted=True), (1, AT + timedelta(seconds=5)), ("replayed", AT), "recovered"),
        (LastFailure(AT, 3, exhausted=True), (4, AT - timedelta(seconds=5)), ("dead", AT), "dead"),
    ],
)
def test_the_latest_fact_says_it(failed: LastFailure, recovered: Any, place: Any, state: str) -> None:
    assert state_of(failed, recovered, place).value == state


# -- masks ---------------------------------------------------------------------------------------------------


def test_a_masked_property_is_not_looked_for_by_who_may_not_see_it(way: str) -> None:
    reports.setting("orders", masked_properties=["card"])
    reports.setting("mails")
    stored(1, {"card": "4111"})
    stored(2, {"note": "4111"})
    viewer = reports.person("viewer", "failures.view_failureprotocol")
    officer = reports.person("officer", "failures.view_failureprotocol", "dlq.can_see_masked")

    assert "masked" in ProtocolFilter(QueryDict("prop=card=4111"), user=viewer).problem
    assert "masked" in ProtocolFilter(QueryDict("prop=card=4111&setting=orders"), user=viewer).problem
    assert "masked" in ProtocolFilter(QueryDict("prop=card=4111&setting=gone"), user=viewer).problem
    assert found(viewer, prop="card=4111", setting="mails") == []
    assert found(viewer, value="4111") == [2]
    assert found(officer, prop="card=4111") == [1]
    assert found(officer, value="4111") == [2, 1]


def test_rest_and_files_refuse_it_too(client: Client) -> None:
    reports.setting("orders", masked_properties=["card"])
    stored(1, {"card": "4111", "order": "A-1"})
    viewer = reports.person("viewer", "failures.view_failureprotocol", "failures.can_export_protocols")
    client.force_login(viewer)
    rest = api_client(viewer)

    for address in ("/api/v1/protocols/", "/api/v1/protocols/export/", "/api/v1/protocols/saved/"):
        more = {"name": "cards", "query": "prop=card%3D4111"}
        refused = (
            rest.post(address, more, format="json")
            if "saved" in address
            else rest.get(address, {"prop": "card=4111"})
        )
        assert refused.status_code in (400, 409), (address, refused.content)
    listed = rest.get("/api/v1/protocols/", {"prop": "order=A-1"})
    assert [row["number"] for row in listed.json()["results"]] == [1]
    file = client.get("/protocols/export/", {"prop": "order=A-1", "file": "jsonl"})
    assert json.loads(b"".join(file.streaming_content))["properties"]["order"] == "A-1"  # type: ignore[attr-defined]


# -- what was there before the index -------------------------------------------------------------------------


def unindexed() -> None:
    """Protocols of a site that gets the index now."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"DROP INDEX {INDEX.name}")
    for number in range(1, 8):
        stored(number, {"order": f"A-{number}"})
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {INDEX.name}")
    PropertyBackfill.objects.create()


def test_until_the_index_is_whole_each_is_looked_at() -> None:
    unindexed()

    assert found(value="A-3") == [3]
    assert properties.share() == 0.0


@pytest.mark.django_db(transaction=True)
def test_pieces_make_it_whole_and_say_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    unindexed()
    monkeypatch.setattr(properties, "PIECE", 3)
    shares = [properties.share()]

    while properties.step(timezone.now()):
        shares.append(properties.share())

    known = [share for share in shares if share is not None]
    assert known == sorted(set(known)) and properties.share() is None
    assert INDEX.candidates([WantedValue("A-3")], 9) == [UUID(int=3 << 64)]
    assert not properties.step(timezone.now())
    monkeypatch.setattr(search, "_windows", lambda *_args, **_more: pytest.fail("each was looked at"))
    assert found(prop="order=A-7") == [7]


@pytest.mark.django_db(transaction=True)
def test_what_one_that_was_killed_left_is_made_again() -> None:
    unindexed()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(INDEX.created(filled=True)[0])
        else:
            INDEX.fill(None, UUID(int=2 << 64))

    while properties.step(timezone.now()):
        pass

    assert [found(value=f"A-{number}") for number in (1, 2, 7)] == [[1], [2], [7]]
