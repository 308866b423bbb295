"""Seeds of the kill campaign: one in every run of the tests, as many as fit into hours with `./ma test --long`.

The results stand in docs/campaigns.md, a line per seed, so that a campaign that was ended goes on where it was.
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


def seeds() -> Iterator[int]:
    """Seed 1, or those that have no result yet until the hours (MA_TEST_HOURS, 4) are over."""
    if not LONG:
        yield 1
        return
    end = time.monotonic() + HOURS * 3600
    seed = max((int(found) for found in re.findall(r"^\| (\d+) \|", RESULTS.read_text(), re.MULTILINE)), default=0)
    while time.monotonic() < end:
        seed += 1
        yield seed


def keep(seed: int, figures: Figures) -> None:
    print(f"seed {seed}: {figures}")
    if LONG:
        with RESULTS.open("a") as results:
            results.write(f"| {seed} | {datetime.now(UTC):%Y-%m-%d} | {figures} |\n")
