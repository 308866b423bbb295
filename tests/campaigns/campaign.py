"""Seeds of the kill campaigns: one in every run of the tests, as many as fit into hours with `./ma test
--long`, of those by mode so many as MODE_SEEDS says.

The results stand in docs/campaigns.md, a line per seed, so that a campaign that was ended goes on where it
was.
"""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent.parent / "docs" / "campaigns.md"
LONG = os.environ.get("MA_TEST_LONG") == "1"
HOURS = float(os.environ.get("MA_TEST_HOURS", "4"))
MODE_SEEDS = 20
MAIN, BY_MODE = "| seed | date | result |", "| mode | seed | date | result |"


@dataclass(frozen=True)
class Figures:
    """What one seed did and found. `attempts` by the agent's own file, the rest by the MA and the broker."""

    kills: int
    messages: int
    attempts: int
    dead: int
    protocols: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills · {self.messages} messages · {self.attempts} attempts began · "
            f"{self.dead} dead letters · {self.protocols} protocols"
        )


@dataclass(frozen=True)
class ModeFigures:
    """One seed of one mode. Effects are what the agent sent, each by its own id, as their receiver counts
    them."""

    kills: int
    messages: int
    attempts: int
    lost: int
    unexpected: int
    duplicates: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills · {self.messages} messages · {self.attempts} attempts began · effects: "
            f"{self.lost} lost, {self.unexpected} unexpected, {self.duplicates} twice"
        )


def seeds() -> Iterator[int]:
    """Seed 1, or those that have no result yet until the hours (MA_TEST_HOURS, 4) are over."""
    if not LONG:
        yield 1
        return
    end = time.monotonic() + HOURS * 3600
    seed = _last(r"^\| (\d+) \|")
    while time.monotonic() < end:
        seed += 1
        yield seed


def seeds_of(mode: str) -> Iterator[int]:
    """Seed 1, or those of MODE_SEEDS that have no result yet, until the hours are over."""
    if not LONG:
        yield 1
        return
    end = time.monotonic() + HOURS * 3600
    for seed in range(_last(rf"^\| `{mode}` \| (\d+) \|") + 1, MODE_SEEDS + 1):
        if time.monotonic() < end:
            yield seed


def keep(seed: int, figures: Figures) -> None:
    print(f"seed {seed}: {figures}")
    if LONG:
        _add(MAIN, f"| {seed} | {_today()} | {figures} |")


def keep_of(mode: str, seed: int, figures: ModeFigures) -> None:
    print(f"{mode}, seed {seed}: {figures}")
    if LONG:
        _add(BY_MODE, f"| `{mode}` | {seed} | {_today()} | {figures} |")


def _last(pattern: str) -> int:
    return max((int(found) for found in re.findall(pattern, RESULTS.read_text(), re.MULTILINE)), default=0)


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _add(head: str, line: str) -> None:
    """At the end of the table with that head."""
    lines = RESULTS.read_text().splitlines()
    at = lines.index(head)
    while at < len(lines) and lines[at].startswith("|"):
        at += 1
    RESULTS.write_text("\n".join([*lines[:at], line, *lines[at:]]) + "\n")
