"""The overview of dead letters: what died lately, who works on it, what is known, and how far the index
is."""

from datetime import datetime, timedelta
from typing import cast

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import LaunchSetting
from agents.provisioning import queue_counts as figures
from agents.provisioning.queue_counts import QueueFigures
from broker.port import ManagementFailed
from console.operations.operation import perform
from dlq.annotations import MuteLetters, Take
from dlq.models import DeadLetter, KnownFault, LetterQueue, LetterState, Taking
from dlq.queues import queries as hours
from dlq.queues import queries as queues_queries
from dlq.queues.queries import QueueRow, queue_rows, with_facts
from tests.web.factories import World, make_letter
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in
from tests.web.rows import make_setting

KEY = "orders-export"
QUEUE = f"DLQ.{KEY}"


@pytest.fixture(autouse=True)
def fresh() -> None:
    hours.forget_hours()
    queues_queries.forget_facts()


def test_it_tells_who_works_on_it_what_is_known_and_what_is_new(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_answers(monkeypatch, broker_figures(dead=1102))
    now = timezone.now()
    DeadLetter.objects.filter(queue=QUEUE, state=LetterState.DEAD).update(seen_at=now - timedelta(minutes=10))
    operator = world.people["operator"]
    perform(Take, Taking(setting_key=KEY), operator, now)
    perform(MuteLetters, KnownFault(setting_key=KEY, fingerprint="f"), operator, now)
    page = looked_at(signed_in(world, "viewer"), "/dead-letters/")
    dead = DeadLetter.objects.filter(queue=QUEUE, state=LetterState.DEAD).count()

    assert f"+{dead}" in page.text and "operator" in page.text and "1 known error" in page.text
    assert "disabled by breaker" in page.text and "catching up" in page.text
    sparks = [
        attributes
        for tag, attributes in page.found
        if tag == "svg" and attributes.get("class") == "spark bad"
    ]
    assert any(
        "dead-lettered in the last 24 hours, peak:" in (attributes["aria-label"] or "")
        for attributes in sparks
    )
    assert not any("style" in attributes for _tag, attributes in page.found)


def test_a_queue_that_the_broker_does_not_count_is_shown_with_why(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, known = broker_figures(dead=9), broker_figures(dead=0)

    def answer(setting: LaunchSetting, now: datetime) -> QueueFigures:
        if setting.key == "mail-send":
            raise ManagementFailed("there is no <queue>\u202e DLQ.mail-send")
        return cast(QueueFigures, (full if setting.key == KEY else known)(setting, now))

    broker_answers(monkeypatch, answer)
    DeadLetter.objects.exclude(queue=QUEUE).delete()
    client = signed_in(world, "viewer")
    page = looked_at(client, "/dead-letters/")
    rows = [
        attributes["id"] for _tag, attributes in page.found if (attributes.get("id") or "").startswith("row-")
    ]
    assert rows[:2] == [f"row-{KEY}", "row-mail-send"], "before those that are empty for certain"
    assert "? index: 0" in page.text
    assert "there is no" not in page.text, "what the broker says is for the log"

    monkeypatch.setattr(figures, "_away_until", float("inf"))
    monkeypatch.setattr(figures, "_away_since", timezone.now())
    figures._known.clear()
    text = looked_at(client, "/dead-letters/").text
    assert "? index: 0 0" in text and "The broker is not responding: the counts below" in text, (
        "said once, above"
    )
    alone = looked_at(client, f"/settings/{KEY}/").text
    assert "the broker is not responding" in alone


def test_of_many_queues_each_is_counted_a_little_and_the_sweep_knows_the_rest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_answers(monkeypatch, broker_figures(dead=1102))
    monkeypatch.setattr(queues_queries, "FEW", 0)
    monkeypatch.setattr(queues_queries, "COUNTED_OF_MANY", 2)
    now, setting = timezone.now(), LaunchSetting.objects.get(key=KEY)

    def row() -> QueueRow:
        return with_facts(queue_rows([setting]), now)[0]

    assert row().indexed == "2+"
    LetterQueue.objects.update_or_create(queue=QUEUE, defaults={"broker_count": 1102, "indexed": 1098})
    assert (row().indexed, row().indexed_count, row().differs) == ("1,098", 1098, "1,098")


def test_deaths_are_counted_by_the_hour_whatever_became_of_them(world: World) -> None:
    now = timezone.now().replace(minute=30)
    ids = list(DeadLetter.objects.filter(queue=QUEUE).order_by("pk").values_list("pk", flat=True)[:5])
    DeadLetter.objects.filter(queue=QUEUE).update(seen_at=now - timedelta(days=3))
    DeadLetter.objects.filter(pk__in=ids[:3]).update(
        seen_at=now - timedelta(hours=2), state=LetterState.GIVEN_BACK
    )
    DeadLetter.objects.filter(pk__in=ids[3:]).update(seen_at=now, state=LetterState.DEAD)

    counts = hours.deaths_by_hour([QUEUE], now)[QUEUE]
    assert len(counts) == hours.HOURS and (counts[-1], counts[-3], sum(counts)) == (2, 3, 5)


def test_an_hour_that_is_over_is_counted_once_and_never_more_than_fits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now().replace(minute=30)
    DeadLetter.objects.filter(queue=QUEUE).update(seen_at=now - timedelta(hours=2), state=LetterState.DEAD)
    monkeypatch.setattr(hours, "MOST", 3)
    with CaptureQueriesContext(connection) as first:
        assert hours.deaths_by_hour([QUEUE], now)[QUEUE][-3] == 3
    DeadLetter.objects.filter(queue=QUEUE).delete()
    with CaptureQueriesContext(connection) as second:
        assert hours.deaths_by_hour([QUEUE], now)[QUEUE][-3] == 3

    assert len(first) == len(second) == 1
    assert (first[0]["sql"].count(QUEUE), second[0]["sql"].count(QUEUE)) == (hours.HOURS, 1)


def test_many_settings_with_letters_take_hardly_more_queries_than_few(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_answers(monkeypatch, broker_figures(dead=1))
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 0)
    client = signed_in(world, "viewer")

    def asked() -> int:
        hours.forget_hours()
        queues_queries.forget_facts()
        with CaptureQueriesContext(connection) as queries:
            looked_at(client, "/dead-letters/")
        return len(queries)

    few = asked()
    for number in range(30):
        key = f"more-{number}"
        world.settings[key] = make_setting(world.settings[KEY].pool, key)
        make_letter(world, key, "x")
    assert asked() < few + 10
