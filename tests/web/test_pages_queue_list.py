"""The list of dead-letter queues: most first, the empty ones hidden, searched, in pages."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import LaunchSetting
from agents.provisioning import queue_counts
from agents.provisioning.queue_counts import QueueFigures
from dlq.models import DeadLetter, LetterState, ReplayJob, Scope
from dlq.queues import queries
from tests.web.crowd import make_crowd
from tests.web.factories import World
from tests.web.pages import broker_answers, looked_at, signed_in

BROKER: Counter[str] = Counter()


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    def counted(setting: LaunchSetting, now: datetime) -> QueueFigures:
        dead = BROKER[f"DLQ.{setting.key}"]
        return QueueFigures(waiting=0, delayed=0, in_delivery=0, consumers=1, dead=dead, at=now)

    broker_answers(monkeypatch, counted)
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 0)
    counts_as_the_index()
    return signed_in(world, "viewer")


def counts_as_the_index() -> None:
    """The broker is asked in a thread, which does not see the rows of a test."""
    queues = DeadLetter.objects.filter(state=LetterState.DEAD).values_list("queue", flat=True)
    BROKER.clear()
    BROKER.update(queues)
    queue_counts.forget()
    queries.forget_hours()
    queries.forget_facts()


def keys(client: Client, query: str = "") -> list[str]:
    return [row.key for row in client.get(f"/dead-letters/{query}").context["rows"]]


def test_only_queues_with_dead_letters_are_shown_the_largest_first(client: Client) -> None:
    assert keys(client) == ["orders-export", "invoices", "mail-send"]

    page = looked_at(client, "/dead-letters/")
    assert "Show 6 empty queues" in page.text and "?empty=1" in page.links()
    every = keys(client, "?empty=1")
    assert len(every) == 9 and every[:3] == keys(client)
    assert "Hide empty queues" in looked_at(client, "/dead-letters/?empty=1").text


def test_of_two_with_as_many_the_one_that_grew_last_comes_first(client: Client, world: World) -> None:
    make_crowd(world, 10, 0)
    now = timezone.now()
    for minutes, key in ((9, "crowd-003-report"), (5, "crowd-007-sync"), (7, "returns")):
        row = DeadLetter(
            queue=f"DLQ.{key}", orig_message_id=minutes, seen_at=now - timedelta(minutes=minutes)
        )
        row.save()
    counts_as_the_index()

    assert keys(client)[2:] == ["crowd-007-sync", "returns", "crowd-003-report", "mail-send"]


def test_an_empty_queue_that_a_replay_takes_from_is_shown(client: Client, world: World) -> None:
    setting = world.settings["returns"]
    ReplayJob.objects.create(setting=setting, setting_key=setting.key, scope=Scope.ALL, state="running")

    assert keys(client)[-1] == "returns"


def test_without_any_the_page_says_so_and_still_leads_to_the_queues(client: Client) -> None:
    DeadLetter.objects.all().delete()
    ReplayJob.objects.all().delete()
    counts_as_the_index()
    text = looked_at(client, "/dead-letters/").text

    assert "No dead letters." in text and "Show 9 empty queues" in text


def test_a_search_finds_a_part_of_a_key_and_keeps_what_else_was_asked_for(client: Client) -> None:
    assert keys(client, "?q=OR") == ["orders-export"]
    assert keys(client, "?q=or&empty=1&sort=key") == ["orders-archive", "orders-export", "prices-import"]
    page = looked_at(client, "/dead-letters/?q=archive&sort=key")
    assert "No results." in page.text and "Show 1 empty queue" in page.text
    assert "?q=archive&sort=key&empty=1" in page.links()
    assert keys(client, "?sort=key") == ["invoices", "mail-send", "orders-export"]


def test_many_queues_come_in_pages_and_ask_no_more_than_few(client: Client, world: World) -> None:
    def questions() -> int:
        counts_as_the_index()
        with CaptureQueriesContext(connection) as asked:
            client.get("/dead-letters/")
        return len(asked)

    make_crowd(world, 60, 300)
    client.get("/dead-letters/")
    few = questions()
    make_crowd(world, 280, 3000, prefix="hall")
    assert questions() <= few + 2, "what most of them died of is asked in pieces"

    sizes = [row.size for row in client.get("/dead-letters/").context["rows"]]
    assert len(sizes) == 50 and sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1] > 0
    assert "?page=2" in looked_at(client, "/dead-letters/").links()
    assert 0 < len(keys(client, "?page=2")) < 50
