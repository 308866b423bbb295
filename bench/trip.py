"""From a trip to the last handler that starts on a server that had not given up: 95th percentile over the
rounds.

A real installation with three KMAs and one MANY setting under a steady stream of messages. In each round two
servers begin to fail until both gave up; the MA switches the setting off (`at` of the trip), and the third
must stop. First with Celery, which tells KMAs to look at once; then with Redis stopped, by their poll every 2
s alone. Beside it stands what such a system cannot beat: for Celery the measured round trip of one
heartbeat-sized call, for the poll that and one poll interval. All processes share one machine, so one clock.
"""

import argparse
import json
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import Delay, percentile_95
from bench.installation import Installation, text_messages, throw_away, until
from broker.stomp.client import StompPublisher

KEY, ADDRESS, POOL = "bench-trip", "bench.trip", "bench"
SERVERS = ("srv-1", "srv-2", "srv-3")
FAILING = SERVERS[:2]
POLL_SECONDS = 2.0
CELERY_GOAL, POLL_GOAL = 1.0, 3.0  # seconds
HANDLING_SECONDS = 0.02
PER_SECOND = 100  # messages: less than the servers handle, so that none pile up
# So long after the trip a handler could still begin that should not: longer than any goal.
WATCHED_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Start:
    server: str
    activation: str
    at: float


def run(arguments: Sequence[str]) -> list[Delay]:
    options = _options(arguments)
    with (
        throw_away(SERVERS, "kma.samples.bench") as installation,
        TemporaryDirectory(prefix="bench-trip-") as name,
    ):
        bench = _Bench(installation, Path(name))
        bench.prepare()
        with bench.stream():
            told = bench.measure("trip with Celery", options.rounds, CELERY_GOAL, bench.round_trip())
            installation.runner.stop("redis")
            polled = bench.measure(
                "trip by poll alone", options.rounds, POLL_GOAL, POLL_SECONDS + bench.round_trip()
            )
    return [told, polled]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench trip")
    parser.add_argument("--rounds", type=int, default=20)
    return parser.parse_args(arguments)


class _Bench:
    def __init__(self, installation: Installation, folder: Path) -> None:
        self._call = installation.call
        self._installation = installation
        self._folder = folder
        self._starts = folder / "starts.jsonl"
        self._failing = folder / "failing"

    def prepare(self) -> None:
        self._call("POST", "pools/", {"name": POOL, "servers": list(SERVERS)})
        policy = {"max_attempts": -1, "delay_ms": 200, "multiplier": 1.0}
        self._call("POST", "destinations/", {"name": ADDRESS, **policy})
        setting = {"key": KEY, "agent": "bench.trip", "pool": POOL, "destination": ADDRESS, "spread": "MANY"}
        setting |= {"timing": "ASAP", "mode": "AUTO"}
        parameters = {"folder": str(self._folder), "seconds": HANDLING_SECONDS}
        numbers = {"concurrency": 2, "breaker_m": 9}
        self._call("POST", "settings/", {**setting, **numbers, "parameters": parameters})
        until("it is provisioned", lambda: bool(self._setting()["provision_state"] == "ready"))
        until("all servers offer the agent", self._all_alive)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Messages at a steady rate as long as the block lasts."""
        over = threading.Event()
        publisher = self._installation.publisher()
        thread = threading.Thread(target=_feed, args=(publisher, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            publisher.close()

    def round_trip(self) -> float:
        """Seconds of one small call to the site: the median of twenty."""
        seconds = []
        for _ in range(20):
            began = time.monotonic()
            self._setting()
            seconds.append(time.monotonic() - began)
        return statistics.median(seconds)

    def measure(self, name: str, rounds: int, goal: float, reference: float) -> Delay:
        delays = [self._round() for _ in range(rounds)]
        runs = [{"delay": round(delay, 3)} for delay in delays]
        return Delay(name=name, product=percentile_95(delays), reference=reference, goal=goal, runs=runs)

    def _round(self) -> float:
        """Seconds from the trip to the last start on the server that had not given up; 0 where none came
        after it."""
        activation = self._call("POST", f"settings/{KEY}/enable/")["id"]
        until("every server handles", lambda: {s.server for s in self._of(activation)} == set(SERVERS))
        self._failing.write_text(" ".join(FAILING))
        until("it trips", lambda: not self._setting()["enabled"])
        (trip,) = self._call("GET", f"trips/?setting={KEY}&open=true")["results"]
        at = _seconds(trip["at"])
        time.sleep(max(0.0, at + WATCHED_SECONDS - time.time()))
        self._failing.unlink()
        others = [s for s in self._of(activation) if s.server not in trip["quorum"]["interrupted"]]
        if not any(start.at < at for start in others):
            raise RuntimeError("nobody else was handling when it tripped: the round measured nothing")
        return max(0.0, max(start.at for start in others) - at)

    def _of(self, activation: str) -> list[Start]:
        """What began in this activation."""
        lines = self._starts.read_text().splitlines() if self._starts.exists() else []
        starts = [Start(**json.loads(line)) for line in lines]
        return [start for start in starts if start.activation == activation]

    def _setting(self) -> dict[str, Any]:
        return dict(self._call("GET", f"settings/{KEY}/"))

    def _all_alive(self) -> bool:
        servers = self._call("GET", "servers/")["results"]
        return {row["name"] for row in servers if row["state"] == "alive"} >= set(SERVERS)


def _feed(publisher: StompPublisher, over: threading.Event) -> None:
    while not over.wait(0.1):
        publisher.publish(text_messages(ADDRESS, PER_SECOND // 10))


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
