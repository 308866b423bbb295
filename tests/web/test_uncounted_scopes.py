"""A scope that is too large for its pre-flight: no number is guessed, and the job counts exactly."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from console.audit.models import AuditEntry
from dlq.cli import terminal
from dlq.models import DeadLetter, ReplayJob
from dlq.replay import counts
from dlq.replay.preflight.rules import CODES
from dlq.replay.worker.planner import Planner
from tests.web.factories import NODE, World, make_letter
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in

KEY = "mail-send"
BACK = f"/dead-letters/{KEY}/give-back/"
MATCH = {"match": "1", "query": "exception=Timeout"}


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Seven dead letters of one error, of which a pre-flight looks at four: one of these is not moved."""
    broker_answers(monkeypatch, broker_figures(waiting=0, delayed=0, in_delivery=0))
    monkeypatch.setattr("dlq.replay.requests.COUNTED", 4)
    DeadLetter.objects.filter(queue=f"DLQ.{KEY}").delete()
    for number in range(7):
        make_letter(
            world, KEY, "x", exception_type="Timeout", orig_message_id=-1 if number == 5 else number + 1
        )
    return signed_in(world, "chief")


def begun(client: Client, **more: str) -> ReplayJob:
    answer = client.post(BACK, {**MATCH, "acknowledge": CODES, "confirm": "3", **more})
    assert answer.status_code == 302, answer.content.decode()
    return ReplayJob.objects.get(setting_key=KEY, query="exception=Timeout")


def guesses(text: str) -> list[str]:
    return re.findall(r"\babout \d", text)


def test_the_preflight_says_at_least_how_many_and_asks_for_that_number(client: Client) -> None:
    page = looked_at(client, f"{BACK}?match=1&exception=Timeout")
    assert "Will be moved at least 3 Only the latest 4 messages were checked." in page.text
    assert "Replay: 3+" in page.text and "Type 3 to confirm" in page.text and not guesses(page.text)
    assert (
        client.post(BACK, MATCH).status_code == 200 and not ReplayJob.objects.filter(setting_key=KEY).exists()
    )


def test_what_is_all_looked_at_is_exact(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlq.replay.requests.COUNTED", 7)
    page = looked_at(client, f"{BACK}?match=1&exception=Timeout")
    assert "Will be moved 6" in page.text and "at least" not in page.text and "Type" not in page.text
    job = begun(client)
    assert (job.total, job.is_counted, job.counts) == (6, True, {})


def test_the_job_says_at_least_and_how_far_its_count_is(client: Client) -> None:
    job = begun(client)
    assert (job.total, job.is_counted) == (3, False)
    counts.add_counts(job.pk, {"planned": 2, "skipped": 1})
    text = looked_at(client, f"/replays/{job.pk}/").text
    assert "At least 3 messages exact count in progress: 3 so far" in text and not guesses(text)
    assert "3+" in looked_at(client, "/replays/").text
    assert "messages, at least: 3" in looked_at(client, "/audit/").text
    assert AuditEntry.objects.get(operation=job.pk).counts == {"letters_at_least": 3}


def test_planning_ends_with_the_exact_number(client: Client) -> None:
    job = begun(client)
    while Planner(job, NODE).step(timezone.now()):
        pass
    job.refresh_from_db()
    node = DeadLetter.objects.filter(queue=f"DLQ.{KEY}", node_id=NODE, orig_message_id__gt=0).count()
    assert job.is_counted and job.total == node and "at_least" not in job.counts
    text = looked_at(client, f"/replays/{job.pk}/").text
    assert "exact count in progress" not in text and "At least" not in text


def test_a_job_that_ended_before_it_was_counted_never_says_an_exact_number(client: Client) -> None:
    job = begun(client)
    ReplayJob.objects.filter(pk=job.pk).update(state="cancelled", finished_at=timezone.now())
    text = looked_at(client, f"/replays/{job.pk}/").text
    assert "At least 3 messages" in text and "exact count in progress" not in text


@pytest.mark.parametrize(
    ("about", "told"), [(True, "at least 3, others were not checked"), (False, "3 of 7")]
)
def test_the_command_says_the_same(about: bool, told: str) -> None:
    answer: dict[str, Any] = {
        "about": about, "going": 3, "total": 7, "skipped": {}, "differences": [], "warnings": [],
    }  # fmt: skip
    assert list(terminal.verdict(answer)) == [f"included   {told}"]
