"""DELAYED: what gathered is drained by one activation, which then ends; with an error where something is
left."""

from typing import Any

from contract.names import dead_letter_queue
from tests.product import scripted
from tests.product.three_servers.hall import POOL, Hall, numbers

PATIENT = {"max_attempts": 10, "delay_ms": 700, "multiplier": 1.0}


def gather(hall: Hall, key: str, bodies: list[dict[str, Any]], **fields: Any) -> str:
    """A setting started by people, enabled, with these messages waiting; its address."""
    wish: dict[str, Any] = {"timing": "DELAYED", "drain_idle_seconds": 2.0, "drain_wait_seconds": 6.0}
    address = hall.launch(key, enable=False, **(wish | fields))
    hall.enable(key)
    assert hall.get(key)["activation"] is None, "enabling begins nothing"
    hall.publish(address, bodies)
    return address


def drained(hall: Hall, key: str) -> dict[str, Any]:
    """The activation that a person starts, when it has ended."""
    hall.call("POST", f"settings/{key}/run/", {})
    hall.until(f"{key} ends", lambda: hall.activations(key)[0]["ended_at"] is not None)
    activation = hall.activations(key)[0]
    assert not [run for run in activation["runs"] if run["wanted"] and run["closed_at"] is None]
    return activation


def failing_first(n: int, attempts: int = 2) -> dict[str, Any]:
    return scripted.poisoned(n) | {"first": attempts}


def test_thirty_messages_some_of_them_delayed_are_drained_well_and_it_can_be_run_again(hall: Hall) -> None:
    bodies = [failing_first(n) if n % 5 == 0 else scripted.ok(n) for n in range(30)]
    address = gather(hall, "drain-any", bodies, spread="ANY", policy=PATIENT, breaker_m=1000)
    activation = drained(hall, "drain-any")

    assert (activation["state"], len(activation["runs"])) == ("succeeded", 1)
    assert hall.handled("drain-any") == set(range(30))
    assert len(hall.begun("drain-any")) == 30 + 2 * 6, "each attempt once"
    hall.publish(address, [scripted.ok(30)])
    assert drained(hall, "drain-any")["id"] != activation["id"]
    assert hall.handled("drain-any") == set(range(31))


def test_many_servers_end_at_their_limit_exactly_and_leave_the_rest(hall: Hall) -> None:
    gather(
        hall,
        "drain-many",
        [scripted.slow(n, 0.02) for n in range(100)],
        drain_limit_messages=7,
        concurrency=3,
    )
    activation = drained(hall, "drain-many")

    assert (activation["state"], activation["ending"]) == ("succeeded", "limit")
    assert [run["handled"] for run in activation["runs"]] == [7, 7, 7]
    assert (len(hall.begun("drain-many")), hall.count("drain-many")) == (21, [79])


def test_a_message_that_stays_delayed_too_long_is_an_error_and_is_kept(hall: Hall) -> None:
    slow = {"max_attempts": 4, "delay_ms": 600_000, "max_delay_ms": 600_000}
    gather(
        hall, "drain-late", [scripted.poisoned(0), scripted.ok(1)], policy=slow, spread="ANY", breaker_m=1000
    )
    activation = drained(hall, "drain-late")

    assert (activation["state"], activation["ending"]) == ("failed", "waited")
    assert hall.count("drain-late", dead_letter_queue("drain-late")) == [1, 0]
    assert numbers(hall.begun("drain-late")).count(0) == 1


def test_a_message_that_dies_is_an_error(hall: Hall) -> None:
    gather(hall, "drain-dead", [scripted.poisoned(0), scripted.ok(1)], spread="ANY", breaker_m=1000)
    activation = drained(hall, "drain-dead")

    assert (activation["state"], activation["ending"]) == ("failed", "drained")
    assert hall.count("drain-dead", dead_letter_queue("drain-dead")) == [0, 1]


def test_a_stop_by_a_person_gives_back_what_was_not_begun(hall: Hall) -> None:
    gather(hall, "drain-stopped", [scripted.slow(n, 0.5) for n in range(200)], spread="ANY")
    hall.call("POST", "settings/drain-stopped/run/", {})
    hall.until("it works", lambda: len(hall.begun("drain-stopped")) >= 3)
    hall.call("POST", "settings/drain-stopped/stop/", {"reason": "wrong day"})
    hall.until("it ends", lambda: hall.activations("drain-stopped")[0]["ended_at"] is not None)
    begun = len(hall.begun("drain-stopped"))

    assert hall.activations("drain-stopped")[0]["state"] == "stopped"
    assert hall.get("drain-stopped")["enabled"]
    assert hall.count("drain-stopped") == [200 - begun]


# -- standalone ----------------------------------------------------------------------------------------------


def standalone(hall: Hall, key: str, script: dict[str, Any], **fields: Any) -> None:
    """An enabled setting of an agent that does what its parameter says."""
    parameters = {"script": script, "truth_file": str(hall.data / f"truth-{key}.jsonl")}
    wish = {"key": key, "agent": "demo.scripted-standalone", "kind": "standalone", "pool": POOL}
    hall.call(
        "POST", "settings/", wish | {"timing": "DELAYED", "spread": "ANY", "parameters": parameters} | fields
    )
    hall.until(f"{key} is ready", lambda: hall.get(key)["provision_state"] == "ready")
    hall.enable(key)


def starts(hall: Hall, key: str) -> int:
    file = hall.data / f"truth-{key}.jsonl"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_standalone_agent_that_returns_has_succeeded_and_one_that_raises_has_failed(hall: Hall) -> None:
    standalone(hall, "alone-well", {"do": "ok"})
    standalone(hall, "alone-ill", {"do": "raise", "type": "KeyError", "text": "sku"})

    assert drained(hall, "alone-well")["state"] == "succeeded"
    assert drained(hall, "alone-ill")["state"] == "failed"
    assert (starts(hall, "alone-well"), starts(hall, "alone-ill")) == (1, 1)
    assert [protocol["exception_type"] for protocol in hall.protocols("alone-ill")] == ["KeyError"]


def test_one_that_runs_on_every_server_ends_when_all_have_ended(hall: Hall) -> None:
    standalone(hall, "alone-many", {"do": "sleep", "seconds": 1}, spread="MANY")
    activation = drained(hall, "alone-many")

    assert (activation["state"], activation["ending"]) == ("succeeded", "finished")
    assert (len(activation["runs"]), starts(hall, "alone-many")) == (3, 3)


def test_a_stop_of_a_standalone_agent_is_no_failure(hall: Hall) -> None:
    standalone(hall, "alone-stopped", {"do": "wait", "seconds": 60})
    hall.call("POST", "settings/alone-stopped/run/", {})
    hall.until("it runs", lambda: starts(hall, "alone-stopped") == 1)
    hall.call("POST", "settings/alone-stopped/stop/", {"reason": "enough"})
    hall.until("it ends", lambda: hall.activations("alone-stopped")[0]["ended_at"] is not None)

    assert hall.activations("alone-stopped")[0]["state"] == "stopped"
    assert hall.protocols("alone-stopped") == []
