"""A pool's list of agents is narrowed while KMAs are at work: what may not run stops, without losing a
message."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from contract.names import dead_letter_queue
from tests.product import scripted
from tests.product.three_servers import truth
from tests.product.three_servers.hall import POOL, Hall, numbers


@pytest.fixture
def narrow(hall: Hall) -> Iterator[Hall]:
    yield hall
    allow(hall, None)


def allow(hall: Hall, agents: list[str] | None) -> None:
    hall.call("PATCH", f"pools/{POOL}/", {"allowed_agents": agents})


def test_the_message_in_the_agent_is_finished_the_rest_waits_and_others_go_on(narrow: Hall) -> None:
    hall = narrow
    address = hall.launch("narrowed", spread="ANY")
    beside = hall.launch("beside", agent="test.also-written", spread="ANY")
    hall.publish(address, [scripted.slow(0, 4.0), *(scripted.ok(n) for n in range(1, 40))])
    hall.until("the first is in the agent", lambda: numbers(hall.begun("narrowed")) == [0])
    allow(hall, ["test.also-written"])
    hall.until("its consumers are gone", lambda: hall.consumers("narrowed") == 0)
    assert hall.handled("narrowed") == {0}, "what was at hand was finished, and nothing after it was begun"
    hall.until("39 wait", lambda: hall.count("narrowed") == [39])
    hall.publish(beside, [scripted.ok(n) for n in range(20)])
    hall.until("the other setting goes on", lambda: hall.handled("beside") == set(range(20)))
    assert hall.get("narrowed")["enabled"], "nobody switched it off"
    hall.until("an alert tells", lambda: "narrowed" in _alerted(hall))
    assert numbers(hall.begun("narrowed")) == [0] and hall.consumers("narrowed") == 0

    allow(hall, None)
    hall.until("it goes on", lambda: hall.handled("narrowed") == set(range(40)))
    hall.empty("narrowed")
    assert sorted(numbers(hall.begun("narrowed"))) == list(range(40)), "each message once"
    assert hall.count(dead_letter_queue("narrowed")) == [0]
    hall.until("the alert is over", lambda: "narrowed" not in _alerted(hall))


def test_what_does_not_finish_in_its_grace_goes_back_without_an_attempt_spent(narrow: Hall) -> None:
    hall = narrow
    address = hall.launch("narrowed-hard", spread="ANY", grace_seconds=0.5)
    hall.publish(address, [scripted.slow(0, 8.0), *(scripted.ok(n) for n in range(1, 5))])
    hall.until("the first is in the agent", lambda: numbers(hall.begun("narrowed-hard")) == [0])
    allow(hall, ["test.also-written"])
    hall.until("all wait", lambda: hall.given_back("narrowed-hard") and hall.count("narrowed-hard") == [5])
    assert hall.handled("narrowed-hard") == set(), "its process was ended"
    hall.make_good("narrowed-hard")
    allow(hall, ["test.written"])
    hall.until("all were handled", lambda: hall.handled("narrowed-hard") == set(range(5)))
    hall.empty("narrowed-hard")
    again = [event for event in hall.begun("narrowed-hard") if event.note == 0]
    assert [event.attempt for event in again] == [1, 1] and hall.count(
        dead_letter_queue("narrowed-hard")
    ) == [0]


def test_the_list_may_be_narrowed_and_widened_while_messages_come(narrow: Hall) -> None:
    hall = narrow
    address = hall.launch("narrowed-often", spread="MANY", runs=3)
    with hall.trickle(address) as published:
        for _turn in range(4):
            allow(hall, [])
            hall.until("messages came meanwhile", partial(_more_than, published, published() + 10))
            allow(hall, None)
            hall.until(
                "it goes on", partial(_more_than, lambda: _newest(hall, "narrowed-often"), published())
            )
    total = published()
    hall.empty("narrowed-often")
    hall.until("all were handled", lambda: hall.handled("narrowed-often") >= set(range(total)))
    assert sorted(numbers(hall.begun("narrowed-often"))) == list(range(total)), "each message once"
    assert hall.count(dead_letter_queue("narrowed-often")) == [0]


def test_a_standalone_agent_stops_and_does_not_pass_for_done(narrow: Hall) -> None:
    hall = narrow
    hall.standalone("narrowed-alone")
    hall.until("it is at work", lambda: bool(truth.read(hall.truth_folder, "narrowed-alone", "beat")))
    allow(hall, ["test.written"])
    hall.all_closed("narrowed-alone")
    hall.until("its activation has ended", lambda: bool(hall.activations("narrowed-alone")[0]["ended_at"]))
    assert hall.activations("narrowed-alone")[0]["state"] == "stopped"
    beats = len(truth.read(hall.truth_folder, "narrowed-alone", "beat"))
    hall.until("an alert tells", lambda: "narrowed-alone" in _alerted(hall))
    assert len(truth.read(hall.truth_folder, "narrowed-alone", "beat")) == beats
    refused = hall.call("POST", "settings/narrowed-alone/run/", status=409)
    assert refused["error"] == "agent_not_allowed"


def _more_than(count: Callable[[], int], number: int) -> bool:
    return count() > number


def _newest(hall: Hall, key: str) -> int:
    return max(numbers(hall.begun(key)), default=-1)


def _alerted(hall: Hall) -> set[str]:
    open_ones = [row for row in hall.pages("alerts/") if row["state"] == "open"]
    return {row["setting"] for row in open_ones if row["kind"] == "setting_withheld"}
