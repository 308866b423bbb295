"""Trips with real KMAs: what begins after it, where the messages are, what a person does next."""

from collections import Counter
from typing import Any

from contract.breaker import same_limit
from contract.names import dead_letter_queue
from tests.product import scripted
from tests.product.three_servers import truth
from tests.product.three_servers.hall import Hall, numbers

MESSAGES = 60
# Attempts that a message may have here: a trip comes long before a message is dead.
ATTEMPTS = {"max_attempts": 10, "delay_ms": 300, "multiplier": 1.0, "max_delay_ms": 300}


def test_an_any_setting_trips_alone_and_goes_on_when_a_person_enables_it(hall: Hall) -> None:
    address = hall.launch("trip-any", spread="ANY", concurrency=2, breaker_m=9, policy=ATTEMPTS)
    hall.publish(address, [scripted.poisoned(n) for n in range(10)])

    trip = hall.only_trip("trip-any")
    assert (trip["quorum"]["rule"], trip["reason"]) == ("any", "same_type")
    assert trip["exception_type"] == "RuntimeError"
    [said] = trip["interruptions"]
    assert said["effective"] and said["same_count"] >= same_limit(9)
    hall.silent("trip-any", address)
    assert same_limit(9) <= len(hall.begun("trip-any")) <= same_limit(9) + 2
    assert {run["state"] for run in hall.runs("trip-any")} == {"interrupted"}
    assert hall.activations("trip-any")[0]["state"] == "interrupted"

    hall.make_good("trip-any")
    hall.enable("trip-any")
    hall.empty("trip-any")
    assert set(range(10)) <= set(numbers(hall.begun("trip-any"))), "they waited, and went on"
    assert hall.count(dead_letter_queue("trip-any")) == [0]
    assert hall.trips("trip-any")[0]["ended_at"]
    assert len(hall.activations("trip-any")) == 2


def test_a_permanent_failure_costs_few_deliveries_on_each_server_and_kills_no_message(hall: Hall) -> None:
    key, concurrency, m = "permanent", 2, 10
    address = hall.launch(key, concurrency=concurrency, breaker_m=m, policy=ATTEMPTS, runs=3)
    before = hall.count("DLQ.unknown")
    hall.publish(address, [scripted.poisoned(n) for n in range(MESSAGES)])

    trip = hall.only_trip(key)
    assert trip["quorum"]["rule"] == "two_servers"
    hall.all_closed(key)
    per_server = Counter(event.server for event in hall.begun(key))
    assert max(per_server.values()) <= same_limit(m) + concurrency, per_server
    assert hall.count(key, dead_letter_queue(key)) == [MESSAGES, 0], "all of them wait, none is dead"
    assert hall.count("DLQ.unknown") == before
    hall.silent(key, address)


def test_many_needs_two_servers_and_one_of_them_is_resumed_alone(hall: Hall) -> None:
    key = "trip-many"
    address = hall.launch(key, breaker_m=9, policy=ATTEMPTS, runs=3)
    hall.break_on(key, "hall-a")
    with hall.trickle(address) as published:
        hall.until("hall-a gave up", lambda: hall.interrupted(key) == {"hall-a"})
        total = published() + 20
        hall.until("the others go on", lambda: max(numbers(hall.begun(key))) > total)
        assert hall.get(key)["enabled"] and not hall.trips(key)
        assert set(hall.running(key)) == {"hall-b", "hall-c"}

        hall.mend_on(key, "hall-a")
        resumed = hall.call("POST", f"settings/{key}/resume/", {"server": "hall-a"})
        assert resumed["epoch"] > 3
        begun = len(truth.of("hall-a", hall.begun(key)))
        hall.until("hall-a works again", lambda: len(truth.of("hall-a", hall.begun(key))) > begun + 3)
        assert not hall.interrupted(key)

        hall.break_on(key, "hall-a", "hall-b")
        trip = hall.only_trip(key)
    assert trip["quorum"] | {"live": []} == {
        "needed": 2, "rule": "two_servers", "interrupted": ["hall-a", "hall-b"], "live": [],
    }  # fmt: skip
    stopped = {effect["name"] for effect in trip["effects"] if effect["what"] == "run_stopped"}
    assert "hall-c" in stopped
    hall.silent(key, address)
    states = {run["server"]: run["state"] for run in hall.runs(key)}
    assert states == {"hall-a": "interrupted", "hall-b": "interrupted", "hall-c": "finished"}


def test_a_member_that_trips_takes_its_whole_group_with_it(hall: Hall) -> None:
    drained: dict[str, Any] = {
        "timing": "DELAYED",
        "drain_idle_seconds": 1.0,
        "spread": "ANY",
        "policy": ATTEMPTS,
        "breaker_m": 3,
    }
    members = ("group-1", "group-2", "group-3")
    for key in members:
        hall.publish(hall.launch(key, enable=False, **drained), [_of(key, n) for n in range(4)])
    hall.call("POST", "groups/", {"name": "nightly", "members": list(members)})
    hall.call("POST", "groups/nightly/enable/", {})
    hall.call("POST", "groups/nightly/run/", {})

    trip = hall.only_trip("group-2")
    assert trip["group"] == "nightly"
    assert [effect["name"] for effect in trip["effects"] if effect["what"] == "member_disabled"] == [
        "group-1",
        "group-3",
    ]
    group = hall.call("GET", "groups/nightly/")
    assert not group["enabled"] and group["activation"] is None
    assert [hall.get(key)["enabled"] for key in members] == [False] * 3
    assert hall.activations("group-1")[0]["state"] == "succeeded"
    hall.all_closed("group-2")
    ended = max(event.at for event in truth.read(hall.truth_folder, "group-1", "end"))
    assert hall.handled("group-1") == set(range(4))
    assert all(event.at > ended for event in hall.begun("group-2")), "one after the other"
    assert hall.begun("group-3") == [] and hall.count("group-3") == [4], "the third waits"
    hall.call("POST", "settings/group-1/enable/", {}, status=409)


def _of(key: str, n: int) -> scripted.Body:
    return scripted.poisoned(n) if key == "group-2" else scripted.ok(n)
