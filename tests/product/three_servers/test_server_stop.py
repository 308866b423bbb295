"""A setting that is stopped on one server of three: it drains there, the others go on."""

from contract.names import dead_letter_queue
from tests.product.three_servers import truth
from tests.product.three_servers.hall import Hall, numbers


def test_one_server_of_three_stops_and_starts_again_and_no_message_is_lost(hall: Hall) -> None:
    key = "stopped-there"
    address = hall.launch(key, runs=3)
    with hall.trickle(address) as published:
        hall.until("hall-a works", lambda: bool(truth.of("hall-a", hall.begun(key))))
        stopped = hall.call("POST", f"settings/{key}/stop-on/", {"server": "hall-a", "reason": "new disk"})
        assert [stop["server"] for stop in stopped["stopped_on"]] == ["hall-a"]
        hall.until("hall-a gave it back", lambda: all(
            run["closed_at"] for run in hall.runs(key) if run["server"] == "hall-a"
        ))  # fmt: skip
        ended = len(truth.of("hall-a", hall.begun(key)))
        total = published() + 20
        hall.until("the others go on", lambda: max(numbers(hall.begun(key))) > total)
        assert set(hall.running(key)) == {"hall-b", "hall-c"}
        assert len(truth.of("hall-a", hall.begun(key))) == ended, "nothing begins where it is stopped"
        assert hall.get(key)["enabled"]

        hall.call("POST", f"settings/{key}/start-on/", {"server": "hall-a"})
        hall.until("hall-a works again", lambda: len(truth.of("hall-a", hall.begun(key))) > ended + 3)
        total = published()
    hall.empty(key)
    assert set(range(total)) <= set(numbers(hall.begun(key))), "every message was handled"
    assert hall.count(dead_letter_queue(key)) == [0]
    [first] = [run for run in hall.runs(key) if run["server"] == "hall-a" and not run["wanted"]]
    assert first["state"] == "finished"
