"""From a failure on a KMA to its protocol on the page: a real installation, one message after the other that
fails at once. The page is asked for without a pause in between, as REST shows it: the list of protocols of
one message."""

import time
from collections.abc import Sequence
from datetime import datetime

from bench import Delay, Line, percentile_95
from bench.installation import Installation, throw_away, until
from bench.protocols import Here
from broker.port import Message, Outgoing
from contract.typed import Typed

KEY, ADDRESS, POOL, SERVER = "bench-visible", "bench.visible", "bench", "srv-1"
GOAL = 1.0  # seconds
ROUNDS = 30
FAILS = '{"do": "raise", "type": "KeyError"}'


def measure(here: Here) -> Sequence[Line]:
    with throw_away([SERVER], "kma.samples.scripted") as installation:
        _prepare(installation)
        call, seen = _round_trip(installation), [_delay(installation, number) for number in range(ROUNDS + 1)]
    name = f"{here.database} · a failure on a KMA is on the page"
    return [Delay(name=name, product=percentile_95(seen[1:]), reference=call, goal=GOAL)]


def _prepare(installation: Installation) -> None:
    call = installation.call
    call("POST", "pools/", {"name": POOL, "servers": [SERVER]})
    call("POST", "destinations/", {"name": ADDRESS, "max_attempts": 1})
    setting = {"key": KEY, "agent": "demo.scripted", "pool": POOL, "destination": ADDRESS, "breaker_m": 1000}
    call("POST", "settings/", setting)
    until("it is provisioned", lambda: bool(call("GET", f"settings/{KEY}/")["provision_state"] == "ready"))
    until("it can be enabled", lambda: _enabled(installation))


def _enabled(installation: Installation) -> bool:
    """Refused until the server offers the agent."""
    try:
        installation.call("POST", f"settings/{KEY}/enable/")
    except RuntimeError:
        return False
    return True


def _round_trip(installation: Installation) -> float:
    """Seconds of one such question where there is nothing: the median."""
    seconds = []
    for _ in range(21):
        began = time.perf_counter()
        installation.call("GET", "protocols/?message_key=nothing")
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[10]


def _delay(installation: Installation, number: int) -> float:
    """Seconds from the instant that the KMA gives the failure to the first answer that holds it. One
    clock."""
    before = _count(installation)
    publisher = installation.publisher()
    publisher.publish([Outgoing(ADDRESS, Message(body=Typed("string", FAILS)))])
    publisher.close()
    deadline = time.monotonic() + 60
    while True:
        found = installation.call("GET", f"protocols/?setting={KEY}")["results"]
        if len(found) > before:
            return time.time() - datetime.fromisoformat(found[0]["occurred_at"]).timestamp()
        if time.monotonic() > deadline:
            raise RuntimeError(f"failure {number} was not seen")


def _count(installation: Installation) -> int:
    return len(installation.call("GET", f"protocols/?setting={KEY}")["results"])
