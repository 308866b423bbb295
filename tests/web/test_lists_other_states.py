"""Lists of dead letters: an empty one says what there is in other states, and replays are counted."""

import re
from typing import Any

import pytest
from django.test import Client

from agents.models import LaunchSetting
from dlq.models import DeadLetter, LetterState
from dlq.pages.replay import COLUMNS
from dlq.replay import text as words
from dlq.search import newest as searching
from tests.web import letters, reports
from tests.web.pages import Elements

pytestmark = pytest.mark.django_db


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(reports.person("reader", "dlq.view_deadletter", "dlq.view_replayjob"))
    return client


def looked_at(client: Client, path: str) -> Elements:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return Elements(answer.content.decode())


def ways(page: Elements) -> list[str]:
    return [
        str(each["href"]) for tag, each in page.found if tag == "a" and "state=every" in (each["href"] or "")
    ]


@pytest.mark.parametrize("path", ["/dead-letters/orders/", "/letters/"])
def test_an_empty_list_says_how_many_there_are_in_other_states(
    orders: LaunchSetting, client: Client, path: str
) -> None:
    for number in range(3):
        letters.dead("orders", number + 1, f"ID:{number}")
    DeadLetter.objects.update(state=LetterState.GIVEN_BACK, exception_type="KeyError")
    page = looked_at(client, f"{path}?exception=key")
    assert "No results. 3 in other states: show" in page.text
    [way] = ways(page)
    assert "3 in this list" in looked_at(client, path + way).text
    assert "in other states" not in looked_at(client, f"{path}?exception=zzz").text
    assert "in other states" not in looked_at(client, f"{path}?exception=key&state=every").text
    assert "in other states" not in looked_at(client, f"{path}?exception=key&before=1").text


def test_without_a_filter_it_says_so_too(orders: LaunchSetting, client: Client) -> None:
    letters.dead("orders", 1, "ID:1")
    DeadLetter.objects.update(state=LetterState.DISCARDED)
    assert "No dead letters. 1 in other states: show" in looked_at(client, "/dead-letters/orders/").text


def test_more_than_are_counted_are_said_to_be_more(
    orders: LaunchSetting, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        letters.dead("orders", number + 1, f"ID:{number}")
    DeadLetter.objects.update(state=LetterState.GIVEN_BACK)
    monkeypatch.setattr("console.lists.keyset.COUNTED", 2)
    monkeypatch.setattr("dlq.pages.dead_letters.dead_letter_list.COUNTED", 2)
    assert "At least 2 in other states: show" in looked_at(client, "/dead-letters/orders/").text


def test_what_was_not_looked_through_is_not_said_to_be_none(
    orders: LaunchSetting, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1200):
        DeadLetter.objects.create(
            queue="DLQ.orders", setting_key="orders", orig_message_id=number, node_id="n", seen_at=reports.AT,
            state=LetterState.GIVEN_BACK, delivery_count=1 if number else 9,
        )  # fmt: skip
    monkeypatch.setattr(searching, "BUDGET", -1.0)
    page = looked_at(client, "/dead-letters/orders/?delivered_from=9")
    assert "The search in other states is incomplete. show" in page.text and ways(page)


def test_other_states_are_only_those_of_messages_that_one_may_see(orders: LaunchSetting) -> None:
    letters.dead("orders", 1, "ID:1")
    DeadLetter.objects.update(state=LetterState.GIVEN_BACK)
    outsider = Client()
    outsider.force_login(reports.person("outsider"))
    assert outsider.get("/dead-letters/orders/").status_code == 403


def replays(client: Client, query: str) -> list[str]:
    html = client.get(f"/dead-letters/orders/?{query}").content.decode()
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", html, re.DOTALL)[1:]
    return [re.sub("<[^>]+>", "", re.findall(r"<td.*?</td>", row, re.DOTALL)[5]).strip() for row in rows]


def test_a_message_that_was_replayed_once_has_one_replay(orders: LaunchSetting, client: Client) -> None:
    first = letters.dead("orders", 1, "ID:1")
    letters.given_back(orders, first)
    letters.dead("orders", 2, "ID:2")
    never, again = DeadLetter.objects.get(orig_message_id=2), letters.dead("orders", 3, "ID:1")
    assert (never.chapter, again.chapter) == (1, 2)
    assert replays(client, "state=every") == ["1", "0", "1"], "newest first"
    for query, found in {
        "replays_from=1": ["1", "1"], "replays_to=0": ["0"], "replays_from=1&replays_to=1": ["1", "1"],
        "replays_from=2": [],
    }.items():  # fmt: skip
        assert replays(client, f"state=every&{query}") == found, query


def test_the_columns_of_the_list_of_replays_add_up(orders: LaunchSetting, client: Client) -> None:
    made = [letters.dead("orders", number + 1, f"ID:{number}") for number in range(6)]
    job = letters.given_back(orders, *made)
    left = {"handled": 1, "failed_again": 1, "dead_again": 1, "unknown": 2}
    job.counts = {"given_back": 5, "not_found": 1, **left}
    job.save()
    page = looked_at(client, "/replays/")
    assert "6 5 1 not moved 1 1 1 0 2 unknown" in page.text.replace("\xa0", " "), page.text
    every: Any = {bar.show for bar in words.replay_bars(job, dict.fromkeys([*left, "given_back", "planned",
        "unconfirmed", "taken_elsewhere", "not_found", "cancelled"], 9))}  # fmt: skip
    assert every == {*COLUMNS, *(name for below in COLUMNS.values() for name in below)}
