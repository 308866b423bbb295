"""Dead letters over REST: lists, one letter whole, and who may."""

import base64
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from broker.port import BodyKind, BrokerUnavailable
from contract.typed import Typed
from dlq.models import DeadLetter
from dlq.pages.dead_letters.case import case_of
from failures.intake.batch import accept_batch
from tests.web import letters, reports
from tests.web.reports import AT, Spool

pytestmark = pytest.mark.django_db
LETTERS = "/api/v1/dead-letters/"


class Broker:
    """Answers counts, or is away."""

    count: int | None = 7

    def attribute(self, resource: str, name: str) -> int:
        if self.count is None:
            raise BrokerUnavailable("no connection")
        assert (resource, name) == ("queue.DLQ.orders", "MessageCount")
        return self.count


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr("dlq.api.dead_letters.management", lambda: broker)
    return broker


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def three(orders: LaunchSetting) -> list[DeadLetter]:
    return [letters.dead("orders", number, f"ID:{number}") for number in (10, 11, 12)]


def client(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    return client


@pytest.fixture
def viewer() -> APIClient:
    return client(reports.person("viewer", "dlq.view_deadletter", "dlq.view_replayjob"))


@pytest.fixture
def outsider() -> APIClient:
    return client(reports.person("outsider"))


# -- letters -------------------------------------------------------------------------------------------------


def test_the_list_of_a_setting_says_what_the_broker_counts(
    viewer: APIClient, three: list[DeadLetter]
) -> None:
    letters.dead("invoices", 10, "ID:x")
    answer = viewer.get(f"{LETTERS}?setting=orders").json()
    assert [row["id"] for row in answer["results"]] == [row.pk for row in reversed(three)]
    assert (answer["indexed"], answer["broker_count"], answer["broker_problem"]) == (3, 7, "")
    assert "encoded" not in answer["results"][0]


def test_without_the_broker_the_index_still_answers(
    viewer: APIClient, three: list[DeadLetter], broker: Broker
) -> None:
    broker.count = None
    answer = viewer.get(f"{LETTERS}?setting=orders").json()
    assert (len(answer["results"]), answer["indexed"], answer["broker_count"]) == (3, 3, None)
    assert answer["broker_problem"] == "no connection"


def test_pages_follow_each_other_without_gap(viewer: APIClient, three: list[DeadLetter]) -> None:
    seen, url = [], f"{LETTERS}?page_size=2"
    while url:
        answer = viewer.get(url).json()
        seen += [row["id"] for row in answer["results"]]
        url = answer["next"]
    assert seen == [row.pk for row in reversed(three)]


@pytest.mark.parametrize(
    ("query", "found"),
    [("message_key=ID:11", [1]), ("state=gone", []), ("state=every", [0, 1, 2]), ("queue=DLQ.orders", [0, 1,
    2]),
     ("since=2026-03-01T12:00:11Z&until=2026-03-01T12:00:12Z", [1]), ("setting=unknown", [])],
)  # fmt: skip
def test_filters_narrow_the_list(
    viewer: APIClient, three: list[DeadLetter], query: str, found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "attribute", lambda *_: 0)
    ids = [row["id"] for row in viewer.get(f"{LETTERS}?{query}").json()["results"]]
    assert sorted(ids) == [three[n].pk for n in found]


def test_a_state_that_does_not_exist_is_400(viewer: APIClient) -> None:
    assert viewer.get(f"{LETTERS}?state=undead").status_code == 400


@pytest.mark.parametrize("query", ["message_key=", "exception=%20", "prop=a%3D1&prop=", "text=a&text=b"])
def test_what_a_script_left_empty_or_says_twice_finds_nothing_at_all(viewer: APIClient, query: str) -> None:
    """Of a page people see what it finds."""
    name = query.partition("=")[0]
    for url in (f"{LETTERS}?{query}", f"{LETTERS}export/?{query}"):
        answer = viewer.get(url)
        assert answer.status_code == 400 and name in answer.content.decode()


@pytest.mark.parametrize(
    ("body", "kind", "shown"),
    [
        (Typed("string", "a\0b"), BodyKind.VALUE, {"text": "a\N{SYMBOL FOR NULL}b"}),
        (Typed("binary", b"<script>"), BodyKind.DATA, {"text": "<script>"}),
        (Typed("binary", b"\xff\0"), BodyKind.DATA, {"base64": base64.b64encode(b"\xff\0").decode()}),
        (Typed("int", 7), BodyKind.VALUE, {"typed": {"type": "int", "value": 7}}),
    ],
)
def test_one_letter_comes_whole(
    viewer: APIClient, orders: LaunchSetting, body: Typed, kind: BodyKind, shown: dict[str, Any]
) -> None:
    properties = {"n": Typed("ulong", 2**64 - 1)}
    row = letters.dead("orders", 10, "ID:1", body, body_kind=kind, properties=properties)
    answer = viewer.get(f"{LETTERS}{row.pk}/").json()
    assert answer["body"] == shown
    assert answer["properties"] == [{"name": "n", "type": "ulong", "value": 2**64 - 1}]
    assert (answer["orig_queue"], answer["orig_message_id"], answer["setting_key"]) == (
        "orders",
        10,
        "orders",
    )


def test_a_letter_that_is_no_message_comes_as_bytes(viewer: APIClient, orders: LaunchSetting) -> None:
    from dlq.dead_letters.rules.parser import letter_row
    from dlq.index import store

    row = letter_row(b"\0garbage", letters.NODE, AT)
    row.queue = "DLQ.unknown"
    store.store([row], AT)
    answer = viewer.get(f"{LETTERS}{row.pk}/").json()
    assert answer["body"] == {"base64": base64.b64encode(b"\0garbage").decode()} and answer["problem"]


def test_the_case_tells_failures_deaths_and_returns(viewer: APIClient, orders: LaunchSetting) -> None:
    run = reports.run(orders, reports.server())
    spool, of = Spool(), reports.run_of(run)
    accept_batch(run.server, spool.batch(reports.protocol(of, reports.message("ID:1"))), AT)
    first = letters.dead("orders", 10, "ID:1")
    job = letters.given_back(orders, first)
    about = reports.message("ID:1", replayed=True, dead_letter_queue="DLQ.orders", dead_letter_id=15)
    accept_batch(run.server, spool.batch(reports.replay_outcome(of, about, "failed")), AT)
    second = letters.dead("orders", 100, "ID:1")
    case = viewer.get(f"{LETTERS}{second.pk}/").json()["case"]
    assert [row["exception_type"] for row in case["protocols"]] == ["builtins.KeyError"]
    assert [(row["id"], row["chapter"]) for row in case["chapters"]] == [(second.pk, 2), (first.pk, 1)]
    assert [(row["replay"], row["outcome"], row["died_as"]) for row in case["replays"]] == [
        (str(job.pk), "dead_again", second.pk)
    ]
    assert [row["result"] for row in case["reports"]] == ["failed"]


def test_a_case_counts_deaths_and_returns_to_agents_alone(orders: LaunchSetting) -> None:
    """What was thrown away and fetched out of the bin died once and was given back never."""
    first = letters.dead("orders", 10, "ID:1")
    job = letters.given_back(orders, first)
    job.action = "discard"
    job.save()
    binned = letters.dead("orders", 20, "ID:1")
    DeadLetter.objects.filter(pk=binned.pk).update(queue="DLQ.bin", orig_queue="DLQ.orders")
    case = case_of("ID:1", "orders", User.objects.create_superuser("root"), binned)
    assert (case.deaths, case.replays) == (1, 0)
    said = [event.what for event in case.events]
    assert "Dead-lettered to DLQ.orders" in said and "Moved to DLQ.bin" in said


# -- who may -------------------------------------------------------------------------------------------------


def test_who_may_look(viewer: APIClient, outsider: APIClient, three: list[DeadLetter]) -> None:
    pages = [f"{LETTERS}?setting=orders", f"{LETTERS}{three[0].pk}/"]
    assert [viewer.get(page).status_code for page in pages] == [200] * 2
    assert [outsider.get(page).status_code for page in pages] == [403] * 2
    assert [APIClient().get(page).status_code for page in pages] == [401] * 2
