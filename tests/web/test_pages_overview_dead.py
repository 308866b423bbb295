"""The overview of dead letters: what died lately, who works on it, what is known, and how far the index is."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dlq import remarks
from dlq.models import DeadLetter, LetterState
from dlq.pages import hours
from dlq.pages.spark import HEIGHT, spark
from dlq.remarks import About
from tests.web.factories import World
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in

KEY = "orders-export"
QUEUE = f"DLQ.{KEY}"


@pytest.fixture(autouse=True)
def fresh_hours() -> None:
    hours.forget()


def test_it_tells_who_works_on_it_what_is_known_and_what_is_new(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    broker_answers(monkeypatch, broker_figures(dead=1102))
    now = timezone.now()
    DeadLetter.objects.filter(queue=QUEUE, state=LetterState.DEAD).update(seen_at=now - timedelta(minutes=10))
    remarks.take(About(KEY), by=world.people["operator"], now=now)
    remarks.mute(About(KEY, fingerprint="f"), by=world.people["operator"], now=now)
    page = looked_at(signed_in(world, "viewer"), "/dead-letters/")
    dead = DeadLetter.objects.filter(queue=QUEUE, state=LetterState.DEAD).count()

    assert f"+{dead}" in page.text and "operator" in page.text and "1 known fault" in page.text
    assert "off by breaker" in page.text and "catching up" in page.text
    sparks = [attributes for tag, attributes in page.found if tag == "svg" and attributes.get("class") == "spark"]
    assert any("died in the last 24 hours, at most" in (attributes["aria-label"] or "") for attributes in sparks)
    assert not any("style" in attributes for _tag, attributes in page.found)


def test_deaths_are_counted_by_the_hour_whatever_became_of_them(world: World) -> None:
    now = timezone.now().replace(minute=30)
    ids = list(DeadLetter.objects.filter(queue=QUEUE).order_by("pk").values_list("pk", flat=True)[:5])
    DeadLetter.objects.filter(queue=QUEUE).update(seen_at=now - timedelta(days=3))
    DeadLetter.objects.filter(pk__in=ids[:3]).update(seen_at=now - timedelta(hours=2), state=LetterState.GIVEN_BACK)
    DeadLetter.objects.filter(pk__in=ids[3:]).update(seen_at=now, state=LetterState.DEAD)

    counts = hours.deaths_by_hour(QUEUE, now)
    assert len(counts) == hours.HOURS and (counts[-1], counts[-3], sum(counts)) == (2, 3, 5)


def test_an_hour_that_is_over_is_counted_once_and_never_more_than_fits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now().replace(minute=30)
    DeadLetter.objects.filter(queue=QUEUE).update(seen_at=now - timedelta(hours=2), state=LetterState.DEAD)
    monkeypatch.setattr(hours, "MOST", 3)
    with CaptureQueriesContext(connection) as first:
        assert hours.deaths_by_hour(QUEUE, now)[-3] == 3
    DeadLetter.objects.filter(queue=QUEUE).delete()
    with CaptureQueriesContext(connection) as second:
        assert hours.deaths_by_hour(QUEUE, now)[-3] == 3

    assert len(first) == len(second) == 1
    assert second[0]["sql"].count("LIMIT") < first[0]["sql"].count("LIMIT") / 10


def test_a_sparkline_shows_what_is_little_beside_what_is_much() -> None:
    found = spark([0, 1, 1000])

    assert [(bar.x, bar.height, bar.now) for bar in found.bars] == [(4, 2, False), (8, HEIGHT, True)]
    assert spark([]).bars == [] and spark([0, 0]).most == 0
