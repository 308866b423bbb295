"""The page of a trip: where in the code it happened, equal failures in one row, and who else was there."""

from typing import Any

import pytest

from agents.models import BreakerTrip
from failures.models import FailureProtocol
from failures.pages import breaker
from tests.web.factories import World
from tests.web.launches import TRIPPED
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in
from tests.web.test_pages_breaker import fail


def test_equal_failures_of_a_trip_are_one_row_with_their_place(world: World) -> None:
    made = fail(world, TRIPPED, "srv-2", *["IndexError"] * 3, "KeyError")
    FailureProtocol.objects.update(place="scripted.py:_raise", exception_text="list index")
    FailureProtocol.objects.filter(pk=made[1].pk).update(attempt=4)
    FailureProtocol.objects.filter(pk=made[3].pk).update(fingerprint="v1:2", place="other.py:go")
    trip = BreakerTrip.objects.get()
    found = trip.interruptions.filter(server__name="srv-2", effective=True)
    found.update(evidence=[str(each.pk) for each in made])
    page = looked_at(signed_in(world, "viewer"), f"/trips/{trip.pk}/")

    assert "3 × IndexError list index at scripted.py:_raise , attempts 1–4" in page.text
    assert "1 × KeyError list index at other.py:go , attempt 1" in page.text
    assert "Location scripted.py:_raise · Latest failure · Error group" in page.text
    assert page.links().count(f"/protocols/{made[2].pk}/") == 2, "in its row, and as the latest one"


def test_of_many_equal_failures_the_latest_are_shown_and_all_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "SHOWN_OF_EQUAL", 2)
    made = fail(world, TRIPPED, "srv-2", *["IndexError"] * 3)
    [equal] = breaker.equal_failures(made)

    assert (equal.count, equal.left_out, list(equal.protocols)) == (3, 1, made[1:])


def test_a_trip_leads_to_the_waiting_messages_and_counts_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_answers(monkeypatch, broker_figures(waiting=8, delayed=2))
    trip = BreakerTrip.objects.get()
    page = looked_at(signed_in(world, "viewer"), f"/trips/{trip.pk}/")

    assert "View waiting messages (10)" in page.text and f"/settings/{TRIPPED}/waiting/" in page.links()
    BreakerTrip.objects.update(ended_at=trip.at)
    ended = looked_at(signed_in(world, "viewer"), f"/trips/{trip.pk}/")
    assert "View waiting messages" in ended.text and "messages (10)" not in ended.text


@pytest.mark.parametrize(
    ("quorum", "said"),
    [
        ({"live": ["srv-1", "srv-4"]}, "Other servers online srv-1, srv-4"),
        ({"live": []}, "Other servers online no servers that could run the setting"),
        ({}, "Other servers online —"),
    ],
)
def test_which_other_servers_were_online_is_said_in_words(
    world: World, quorum: dict[str, Any], said: str
) -> None:
    BreakerTrip.objects.update(quorum=quorum)
    trip = BreakerTrip.objects.get()

    assert said in looked_at(signed_in(world, "viewer"), f"/trips/{trip.pk}/").text
