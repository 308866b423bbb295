"""Random histories of activations, and what the breaker itself makes of them, one outcome after the other."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from contract.breaker import Counts, count, may_repeat, trips
from contract.outcomes import Outcome
from tests.pipeline.rows import START, at

TYPES = ("KeyError", "ValueError", "OSError", "exit:1")
FALSE_WITHIN = timedelta(minutes=10)


@dataclass
class Run:
    """`trips`: by M, at which of its failures it tripped first."""

    server: str
    epoch: int
    counts: Counts = field(default_factory=Counts)
    successes: int = 0
    trips: dict[int, dict[str, Any]] = field(default_factory=dict)


@dataclass
class History:
    """One activation: `rows` of protocols and `recovered` of messages, in the order in which they
    occurred."""

    activation: str
    once: bool
    runs: dict[tuple[str, int], Run] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    recovered: list[dict[str, Any]] = field(default_factory=list)

    def expected(self, m: int, mode: str) -> tuple[datetime, int, bool] | None:
        """When, deliveries saved, false."""
        first: dict[str, dict[str, Any]] = {}
        for run in self.runs.values():
            if m in run.trips:
                row = run.trips[m]
                best = first.get(run.server)
                first[run.server] = row if best is None or row["number"] < best["number"] else best
        servers = {run.server for run in self.runs.values()}
        needed = 1 if mode == "any" else min(2, len(servers))
        given_up = sorted(first.values(), key=lambda row: row["number"])
        if len(given_up) < needed:
            return None
        row = given_up[needed - 1]
        saved = sum(each["number"] > row["number"] for each in self.rows)
        return row["occurred_at"], saved, self._false(row)

    def _false(self, row: dict[str, Any]) -> bool:
        of_run = [
            each for each in self.rows if (each["server"], each["epoch"]) == (row["server"], row["epoch"])
        ]
        again = [
            each["occurred_at"]
            for each in of_run
            if each["number"] > row["number"] and each["successes_before"]
        ]
        again += [each["occurred_at"] for each in self.recovered if each["occurred_at"] > row["occurred_at"]]
        return any(each <= row["occurred_at"] + FALSE_WITHIN for each in again)


def history(number: int, chance: random.Random) -> History:
    made = History(f"a{number}", once=chance.random() < 0.3)
    servers = [f"srv-{each}" for each in range(1, chance.randint(1, 4))] + ["srv-9"]
    success, pace = chance.choice((0.02, 0.1, 0.3)), chance.choice((5, 200, 900))
    kinds, now = TYPES[: chance.randint(1, len(TYPES))], 0
    for server in servers:
        made.runs[server, 1] = Run(server, 1)
    for turn in range(chance.randint(0, 90)):
        now += chance.randint(0, pace) if chance.random() < 0.9 else 0
        run = made.runs.setdefault(
            (server := chance.choice(servers), epoch := 1 + (turn > 60)), Run(server, epoch)
        )
        if chance.random() < success:
            run.counts, run.successes = count(run.counts, Outcome.RETURNED), run.successes + 1
            if chance.random() < 0.3:
                made.recovered.append(
                    {"activation": made.activation, "server": server, "occurred_at": at(now)}
                )
            continue
        _failure(made, run, at(now), chance.choice(kinds), chance)
    return made


def _failure(made: History, run: Run, now: datetime, kind: str, chance: random.Random) -> None:
    ignored = chance.random() < 0.15
    temporary = ignored and chance.random() < 0.5
    key, weak = chance.choice(("", "m1", "m2", "m3", "m4", "m5")), chance.random() < 0.3
    attempt = chance.randint(1, 3)
    row = {
        "activation": made.activation, "server": run.server, "epoch": run.epoch, "number": len(made.rows),
        "occurred_at": now, "exception_type": kind, "temporary": temporary, "counted": not ignored,
        "successes_before": run.successes, "message_key": key, "message_key_weak": weak, "attempt": attempt,
    }  # fmt: skip
    made.rows.append(row)
    if ignored:
        outcome = Outcome.TEMPORARY if temporary else Outcome.KMA_DIED
        run.counts = count(run.counts, outcome, kind)
        return
    run.successes, before = 0, run.counts
    run.counts = count(
        before,
        Outcome.RAISED,
        kind,
        message_key=key if made.once else "",
        repeats=may_repeat(weak=weak, attempt=attempt),
    )
    if run.counts.any > before.any:
        for m in range(3, 31):
            if m not in run.trips and trips(run.counts, m):
                run.trips[m] = row


def histories(number: int, seed: int) -> list[History]:
    chance = random.Random(seed)
    return [history(each, chance) for each in range(number)]


__all__ = ["START", "History", "histories"]
