"""What people ask of dead letters that is out of date, a program, or as large as can be."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dlq.models import DeadLetter, ItemState, JobState, LetterState, ReplayJob, Scope
from tests.web.factories import World, make_letter
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in
from tests.web.test_pages_flight import hidden, ticks

KEY = "mail-send"
LIST, BACK = f"/dead-letters/{KEY}/", f"/dead-letters/{KEY}/give-back/"


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    broker_answers(monkeypatch, broker_figures(waiting=0, delayed=0, in_delivery=0))
    DeadLetter.objects.filter(queue=f"DLQ.{KEY}").delete()
    return signed_in(world, "operator")


def letters(world: World, count: int, **values: Any) -> list[int]:
    return [make_letter(world, KEY, "x", **values).pk for _ in range(count)]


def confirm(client: Client, page: Elements, typed: str = "") -> ReplayJob:
    answer = client.post(BACK, {**hidden(page), "acknowledge": ticks(page), "confirm": typed})
    assert answer.status_code == 302, Elements(answer.content.decode()).text
    return ReplayJob.objects.get(setting_key=KEY)


def test_a_letter_that_expired_between_page_and_click_is_left_out_and_said(
    world: World, client: Client
) -> None:
    stays, expires = letters(world, 2)
    page = looked_at(client, f"{BACK}?letters={stays},{expires}")
    assert "Will be moved 2" in page.text
    DeadLetter.objects.filter(pk=expires).update(state=LetterState.GONE)

    job = confirm(client, page)

    assert (job.total, job.skipped) == (1, {"gone": 1})
    assert job.items.get(letter=expires).state == ItemState.SKIPPED
    assert "no longer in the queue" in looked_at(client, f"/replays/{job.pk}/").text


def test_a_selection_of_which_nothing_is_left_begins_nothing_and_says_why(
    world: World, client: Client
) -> None:
    ids = letters(world, 2)
    page = looked_at(client, f"{BACK}?letters={ids[0]},{ids[1]}")
    DeadLetter.objects.filter(pk__in=ids).update(state=LetterState.GONE)

    answer = client.post(BACK, {**hidden(page), "acknowledge": ticks(page)}, follow=True)

    assert "are gone" in answer.content.decode() or "no longer in the queue" in answer.content.decode()
    assert not ReplayJob.objects.filter(setting_key=KEY).exists()


def test_a_question_for_everything_costs_as_much_as_one_for_little(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is listed in the request: a worker does that, piece by piece."""
    monkeypatch.setattr("dlq.replay.requests.COUNTED", 20)
    path = f"{BACK}?match=1&exception=Timeout"
    letters(world, 5, exception_type="Timeout", fingerprint="v1:t")
    few = _queries(client, path)
    letters(world, 120, exception_type="Timeout", fingerprint="v1:t")
    assert _queries(client, path) <= few

    job = confirm(client, looked_at(client, path), "20")

    assert (job.scope, job.state) == (Scope.MATCHING, JobState.PLANNED)
    assert job.total == 20 and not job.items.exists()
    assert job.letters_up_to == DeadLetter.objects.filter(queue=f"DLQ.{KEY}").latest("pk").pk


def _queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        looked_at(client, path)
    return len(asked)


def test_a_pattern_or_a_selector_is_only_text(world: World, client: Client) -> None:
    """What it would find as a program is not found. A matching machine would be busy with `aaaa…b` for
    ever."""
    letters(world, 1, body_text="a" * 40 + "b", exception_type="a" * 40 + "b", fingerprint="v1:" + "a" * 40)
    assert "<td" in client.get(LIST).content.decode()
    for program in ("(a+)+$", ".*", "a' OR '1'='1", "_AMQ_ORIG_MESSAGE_ID >= 0", "%", "__import__('os')"):
        for field in ("exception", "text", "server", "fingerprint"):
            answer = client.get(LIST, {field: program})
            assert answer.status_code == 200 and "<td" not in answer.content.decode(), (field, program)
