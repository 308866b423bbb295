"""What a test of each kind may cost and what it may reach for. tests/costs.py measures both.

Judged are seconds of processors: of this process and of its children that have ended. Seconds on the wall
depend on what else the machine does; they are only shown and kept. Counted are the fixtures of the test
itself and its body. What a module or a session shares would fall on whoever comes first, and ends with
whoever comes last.

The seconds are those of a reference: a fixed piece of work is measured when a session begins and when it
ends, and the slower one counts. So a slow machine has the same bounds, and a busy one has about the same. The
same test still varies by a factor of two. Above its bound it is therefore only named. The run fails above
four times the bound, and only for `pure` and `db`: whoever changes something waits for them. What programs
take at their start varies too much.
"""

import math
import statistics
import time
from collections.abc import Mapping
from typing import Any

# In seconds of the reference.
SECONDS = {
    "pure": 0.3,
    "db": 1.0,
    "broker": 5.0,
    "process": 5.0,
    "browser": 20.0,
    "kill": 20.0,
    "night": math.inf,
}
ON_BOTH_DATABASES = 2.0
TOLERATED = 4
FAILING = ("pure", "db")

# A page asks a broker and a Redis that are not there, so sockets are left to `db`. pytest-django keeps the
# database from all others.
FORBIDDEN: dict[str, frozenset[str]] = {
    "pure": frozenset({"process", "socket"}),
    "db": frozenset({"process"}),
}

# Audit events of Python. What a program in C does by itself, as the driver of PostgreSQL, raises none.
EVENTS = {
    "subprocess.Popen": "process",
    "os.posix_spawn": "process",
    "os.fork": "process",
    "os.forkpty": "process",
    "os.exec": "process",
    "os.system": "process",
    "socket.connect": "socket",
    "socket.bind": "socket",
    "socket.sendto": "socket",
}

# Of the work below, on the machine on which the bounds were set, when nothing else ran there.
REFERENCE_SECONDS = 0.025
ENTRIES, TIMES = 30_000, 5


def bound(kind: str, *, both_databases: bool) -> float:
    return max(SECONDS[kind], ON_BOTH_DATABASES) if both_databases else SECONDS[kind]


def is_dear(cost: Mapping[str, Any]) -> bool:
    return bool(cost.get("own", 0) > cost.get("bound", math.inf))


def fails(cost: Mapping[str, Any]) -> bool:
    return cost["kind"] in FAILING and bool(cost["own"] > TOLERATED * cost["bound"])


def line(test: str, cost: Mapping[str, Any]) -> str:
    """For the summary: ./ma test repeats at its end what begins with ERROR."""
    if not is_dear(cost):
        return ""
    said = f"{test}: {cost['own']:.1f} s, the bound of {cost['kind']} is {cost['bound']:g} s"
    return f"ERROR {said}" if fails(cost) else f"dear: {said}"


def slowness() -> float:
    """How many seconds of processors this machine takes for one of the reference, at this moment."""
    return statistics.median(_work() for _ in range(TIMES)) / REFERENCE_SECONDS


def _work() -> float:
    """More than the caches of a core hold: as tests do, it suffers from what runs beside it."""
    started = time.process_time()
    known: dict[str, list[object]] = {}
    for number in range(ENTRIES):
        text = f"{number * 7919 % ENTRIES:x}"
        known[text] = [text, known.get(text[1:])]
    assert sum(len(known[f"{number:x}"]) for number in range(ENTRIES)) == 2 * ENTRIES
    return time.process_time() - started
