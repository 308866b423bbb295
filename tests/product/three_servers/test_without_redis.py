"""Redis stopped before anything is enabled: what is wanted, what is lost and what trips is learnt by poll
alone."""

from collections.abc import Iterator

import pytest

from tests.product import scripted
from tests.product.three_servers.hall import Hall, numbers

ATTEMPTS = {"max_attempts": 10, "delay_ms": 300, "multiplier": 1.0, "max_delay_ms": 300}
# How long the site waits for beat before heartbeats do its work, then some ticks
# (agents/reconciler.py).
STAND_IN_SECONDS = 90


@pytest.fixture
def dark(hall: Hall) -> Iterator[Hall]:
    """Settings are made on the broker while Redis is there; from then on it is away."""
    hall.launch("dark-many", enable=False, breaker_m=9, policy=ATTEMPTS)
    hall.launch("dark-any", enable=False, spread="ANY")
    hall.launch("dark-drain", enable=False, spread="ANY", timing="DELAYED", drain_idle_seconds=2.0)
    hall.runner.stop("redis")
    yield hall
    hall.runner.start("redis")


def test_start_takeover_trip_drain_and_stop_without_redis(dark: Hall) -> None:
    for key in ("dark-many", "dark-any", "dark-drain"):
        dark.enable(key)
    dark.publish("t.dark-drain", [scripted.ok(n) for n in range(10)])
    dark.call("POST", "settings/dark-drain/run/", {})
    dark.until("it runs everywhere", lambda: len(dark.running("dark-many")) == 3)
    holder = dark.holder("dark-any")
    with dark.trickle("t.dark-any") as published:
        dark.until("it is fed", lambda: len(dark.begun("dark-any")) >= 10)
        holder.kill()
        elsewhere = {name for name in dark.names if name != holder.server}
        dark.until(
            "taken over", lambda: set(dark.running("dark-any")) <= elsewhere != set(), STAND_IN_SECONDS
        )
        total = published()
        dark.until("it goes on", lambda: max(numbers(dark.begun("dark-any"))) > total)
        total = published()
    dark.empty("dark-any")
    assert set(range(total)) <= set(numbers(dark.begun("dark-any")))

    dark.publish("t.dark-many", [scripted.poisoned(n) for n in range(30)])
    trip = dark.only_trip("dark-many")
    assert trip["quorum"]["rule"] == "two_servers"
    assert holder.server not in trip["quorum"]["interrupted"], "it is dead"
    dark.silent("dark-many", "t.dark-many")

    dark.until(
        "it has drained", lambda: dark.activations("dark-drain")[0]["ended_at"] is not None, STAND_IN_SECONDS
    )
    assert dark.activations("dark-drain")[0]["state"] == "succeeded"
    assert dark.handled("dark-drain") == set(range(10))
