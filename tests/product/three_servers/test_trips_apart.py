"""Trips while the two sides do not hear each other, or hear each other twice."""

import time
from typing import Any

from contract.breaker import same_limit
from tests.product import scripted
from tests.product.three_servers.hall import Hall
from tests.product.three_servers.second import second_beat, second_web

ATTEMPTS = {"max_attempts": 10, "delay_ms": 300, "multiplier": 1.0, "max_delay_ms": 300}


def test_a_kma_trips_while_the_site_is_down_and_the_interruption_arrives_later(hall: Hall) -> None:
    key = "trip-away"
    address = hall.launch(key, spread="ANY", breaker_m=9, policy=ATTEMPTS)
    hall.runner.stop("web")
    hall.publish(address, [scripted.poisoned(n) for n in range(10)])
    hall.until("it failed", lambda: len(hall.begun(key)) >= same_limit(9))
    time.sleep(5)
    begun = len(hall.begun(key))
    assert begun <= same_limit(9) + 1, "it gave up without being told"
    hall.runner.start("web")
    trip = hall.only_trip(key)
    # A heartbeat may have told of it first; its record follows.
    hall.until("its evidence", lambda: hall.only_trip(key)["interruptions"])
    trip = hall.only_trip(key)
    assert len(trip["interruptions"]) == 1
    hall.all_closed(key)
    assert len(hall.begun(key)) == begun
    assert hall.count(key) == [10]


def test_two_interruptions_in_one_instant_through_two_sites_are_one_trip(hall: Hall) -> None:
    key = "trip-twice"
    address = hall.launch(key, breaker_m=9, policy=ATTEMPTS, runs=3)
    with second_web(hall) as other:
        kmas = hall.kmas
        for kma in kmas.values():
            kma.to_ma.cut()
        hall.publish(address, [scripted.poisoned(n) for n in range(30)])
        hall.until("all gave up unheard", lambda: hall.given_back(key))
        assert hall.get(key)["enabled"]
        kmas["hall-b"].to_ma.lead_to(other)
        for kma in kmas.values():
            kma.to_ma.mend()
        trip = hall.only_trip(key)
        assert trip["quorum"]["rule"] == "two_servers"
        hall.all_closed(key)
        kmas["hall-b"].to_ma.lead_to(hall.ma_port)
    hall.silent(key, address)
    assert len(hall.trips(key)) == 1, "also when the third was heard"
    assert hall.interrupted(key) == {"hall-a", "hall-b", "hall-c"}


def test_two_beats_and_two_sites_make_one_activation_of_each_window(hall: Hall) -> None:
    key = "windows"
    fields: dict[str, Any] = {
        "timing": "DELAYED",
        "drain_idle_seconds": 1.0,
        "spread": "ANY",
        "schedule": {"every_seconds": 10},
    }
    address = hall.launch(key, enable=False, **fields)
    with second_web(hall), second_beat(hall):
        hall.publish(address, [scripted.ok(n) for n in range(5)])
        hall.enable(key)
        hall.until("three windows were decided", lambda: len(hall.windows(key)) >= 3)
    windows = hall.windows(key)
    assert len({row["due_at"] for row in windows}) == len(windows), "each instant once"
    started = [row["activation"] for row in windows if row["activation"]]
    assert len(set(started)) == len(started)
    hall.disable(key)
    hall.all_closed(key)
    assert {row["id"] for row in hall.activations(key)} >= set(started)
    assert len(hall.activations(key)) <= len(hall.windows(key)), "no activation without a window"
    assert sorted(event.note for event in hall.begun(key)) == list(range(5))
