"""Dead letters and replays over REST: lists, one letter whole, giving back, and who may."""

import base64
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from broker.errors import BrokerUnavailable
from broker.port import BodyKind
from contract.typed import Typed
from dlq.models import AuditEntry, DeadLetter, ReplayItem, ReplayJob
from dlq.replay.jobs import LARGEST_SELECTION, give_back_letters
from failures.intake import accept_batch
from tests.web import letters, reports
from tests.web.reports import AT, Spool
from tests.web.test_failures_intake_at_once import at_once

pytestmark = pytest.mark.django_db
LETTERS, REPLAYS = "/api/v1/dead-letters/", "/api/v1/replays/"


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
    monkeypatch.setattr("dlq.api.letters.management", lambda: broker)
    return broker


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that a worker was told of."""
    told: list[str] = []
    monkeypatch.setattr("dlq.replay.jobs.send", lambda task, job, **_: told.append(job))
    return told


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
def operator() -> APIClient:
    return client(reports.person("operator", "dlq.view_deadletter", "dlq.view_replayjob", "dlq.give_back"))


@pytest.fixture
def outsider() -> APIClient:
    return client(reports.person("outsider"))


# -- letters --------------------------------------------------------------------------------------------------------


def test_the_list_of_a_setting_says_what_the_broker_counts(viewer: APIClient, three: list[DeadLetter]) -> None:
    letters.dead("invoices", 10, "ID:x")
    answer = viewer.get(f"{LETTERS}?setting=orders").json()
    assert [row["id"] for row in answer["results"]] == [row.pk for row in reversed(three)]
    assert (answer["indexed"], answer["broker_count"], answer["broker_problem"]) == (3, 7, "")
    assert "encoded" not in answer["results"][0]


def test_without_the_broker_the_index_still_answers(viewer: APIClient, three: list[DeadLetter], broker: Broker) -> None:
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
    [("message_key=ID:11", [1]), ("state=gone", []), ("state=every", [0, 1, 2]), ("queue=DLQ.orders", [0, 1, 2]),
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
    assert (answer["orig_queue"], answer["orig_message_id"], answer["setting_key"]) == ("orders", 10, "orders")


def test_a_letter_that_is_no_message_comes_as_bytes(viewer: APIClient, orders: LaunchSetting) -> None:
    from dlq import index
    from dlq.reading import letter_row

    row = letter_row(b"\0garbage", letters.NODE, AT)
    row.queue = "DLQ.unknown"
    index.store([row], AT)
    answer = viewer.get(f"{LETTERS}{row.pk}/").json()
    assert answer["body"] == {"base64": base64.b64encode(b"\0garbage").decode()} and answer["problem"]


def test_the_case_tells_failures_deaths_and_returns(viewer: APIClient, orders: LaunchSetting) -> None:
    run = reports.run(orders, reports.server())
    spool, of = Spool(), reports.run_of(run)
    accept_batch(run.server, spool.batch(reports.protocol(of, reports.message("ID:1"))), AT)
    first = letters.dead("orders", 10, "ID:1")
    job = letters.given_back(orders, first)
    about = reports.message("ID:1", given_back=True, letter_queue="DLQ.orders", letter_id=15)
    accept_batch(run.server, spool.batch(reports.letter_outcome(of, about, "failed")), AT)
    second = letters.dead("orders", 100, "ID:1")
    case = viewer.get(f"{LETTERS}{second.pk}/").json()["case"]
    assert [row["exception_type"] for row in case["protocols"]] == ["builtins.KeyError"]
    assert [(row["id"], row["chapter"]) for row in case["chapters"]] == [(second.pk, 2), (first.pk, 1)]
    assert [(row["replay"], row["outcome"], row["died_as"]) for row in case["replays"]] == [
        (str(job.pk), "dead_again", second.pk)
    ]
    assert [row["result"] for row in case["reports"]] == ["failed"]


# -- giving back ----------------------------------------------------------------------------------------------------


def test_an_operator_gives_chosen_letters_back(
    operator: APIClient, three: list[DeadLetter], sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    ask = {"setting": "orders", "letters": [three[0].pk, three[2].pk], "reason": "mended in 1.4"}
    with django_capture_on_commit_callbacks(execute=True):
        answer = operator.post(REPLAYS, ask)
    job = answer.json()
    assert (answer.status_code, job["state"], job["scope"], job["total"]) == (201, "planned", "selection", 2)
    assert (job["by"], job["reason"], job["setting"]) == ("operator", "mended in 1.4", "orders")
    assert sent == [job["id"]]
    shown = operator.get(f"{REPLAYS}{job['id']}/").json()
    assert shown["letters"]["planned"] == 2 and sum(shown["letters"].values()) == 2
    assert shown["outcomes"] == {"waiting": 0, "handled": 0, "failed_again": 0, "dead_again": 0}
    assert AuditEntry.objects.get().reason == "mended in 1.4"


def test_all_of_a_setting_is_frozen_at_the_question(operator: APIClient, three: list[DeadLetter]) -> None:
    job = operator.post(REPLAYS, {"setting": "orders", "all": True}).json()
    letters.dead("orders", 50, "ID:50")
    stored = ReplayJob.objects.get()
    assert (job["scope"], job["total"], stored.letters_up_to) == ("all", 3, three[-1].pk)
    again = operator.post(REPLAYS, {"setting": "orders", "all": True})
    assert (again.status_code, again.json()["error"], again.json()["replay"]) == (409, "already_running", job["id"])


def test_a_job_tells_its_outcomes(viewer: APIClient, orders: LaunchSetting, three: list[DeadLetter]) -> None:
    job = letters.given_back(orders, *three)
    run = reports.run(orders, reports.server())
    about = reports.message("ID:10", given_back=True, letter_queue="DLQ.orders", letter_id=15)
    accept_batch(run.server, Spool().batch(reports.letter_outcome(reports.run_of(run), about)), AT)
    listed = viewer.get(f"{REPLAYS}?setting=orders").json()["results"]
    assert [row["id"] for row in listed] == [str(job.pk)]
    assert listed[0]["outcomes"] == {"waiting": 2, "handled": 1, "failed_again": 0, "dead_again": 0}
    assert viewer.get(f"{REPLAYS}?setting=other").json()["results"] == []


@pytest.mark.parametrize("state", ["given_back", "gone"])
def test_what_is_not_dead_is_refused_with_its_ids(operator: APIClient, three: list[DeadLetter], state: str) -> None:
    DeadLetter.objects.filter(pk=three[1].pk).update(state=state)
    answer = operator.post(REPLAYS, {"setting": "orders", "letters": [row.pk for row in three]})
    assert (answer.status_code, answer.json()["error"]) == (409, "outstanding")
    assert answer.json()["letters"] == [three[1].pk]
    assert not ReplayJob.objects.exists() and not ReplayItem.objects.exists()


def test_letters_of_another_setting_are_refused(operator: APIClient, three: list[DeadLetter]) -> None:
    other = letters.dead("invoices", 10, "ID:x")
    answer = operator.post(REPLAYS, {"setting": "orders", "letters": [three[0].pk, other.pk, 10**15]})
    assert (answer.status_code, answer.json()["error"]) == (409, "not_of_setting")
    assert answer.json()["letters"] == [other.pk, 10**15]


def test_nothing_to_give_back_is_409(operator: APIClient, orders: LaunchSetting) -> None:
    answer = operator.post(REPLAYS, {"setting": "orders", "all": True})
    assert (answer.status_code, answer.json()["error"]) == (409, "nothing_to_give_back")


@pytest.mark.parametrize(
    "ask",
    [{}, {"setting": "orders"}, {"setting": "orders", "all": False}, {"setting": "orders", "letters": ["x"]},
     {"setting": "orders", "letters": [1], "all": True}, {"setting": "orders", "letters": [0]}, [],
     {"setting": "orders", "letters": list(range(1, LARGEST_SELECTION + 2))}, {"setting": "o\0", "all": True}],
)  # fmt: skip
def test_a_question_that_means_nothing_is_400(operator: APIClient, orders: LaunchSetting, ask: Any) -> None:
    assert operator.post(REPLAYS, ask).status_code == 400


def test_an_unknown_setting_is_404(operator: APIClient) -> None:
    assert operator.post(REPLAYS, {"setting": "nowhere", "all": True}).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_two_operators_at_once_give_a_letter_back_once() -> None:
    orders = reports.setting()
    row = letters.dead("orders", 10, "ID:1")
    operator = reports.person("operator")

    def ask() -> str:
        from dlq.replay.jobs import ReplayRefused

        try:
            give_back_letters(orders, [row.pk], by=operator, now=AT)
        except ReplayRefused as refused:
            return refused.code
        return "begun"

    assert sorted(at_once(*[ask] * 4)) == ["begun", "outstanding", "outstanding", "outstanding"]
    assert ReplayItem.objects.count() == ReplayJob.objects.count() == 1


# -- who may --------------------------------------------------------------------------------------------------------


def test_who_may_look_and_who_may_give_back(
    operator: APIClient, viewer: APIClient, outsider: APIClient, three: list[DeadLetter]
) -> None:
    ask = {"setting": "orders", "letters": [three[0].pk]}
    pages = [f"{LETTERS}?setting=orders", f"{LETTERS}{three[0].pk}/", REPLAYS]
    assert [viewer.get(page).status_code for page in pages] == [200] * 3
    assert [operator.get(page).status_code for page in pages] == [200] * 3
    assert [outsider.get(page).status_code for page in pages] == [403] * 3
    assert [APIClient().get(page).status_code for page in pages] == [401] * 3
    assert [who.post(REPLAYS, ask).status_code for who in (outsider, viewer, APIClient())] == [403, 403, 401]
    assert not ReplayJob.objects.exists()
    assert operator.post(REPLAYS, ask).status_code == 201
