"""Says so when a handling has used most of its time, before its process is killed for it."""

from collections.abc import Iterable
from typing import Any

from contract import reasons
from contract.reasons import Reason
from kma.work import Work

SHARE = 0.8  # of the limit
LONGEST_PAUSE = 0.5  # seconds between two looks


class Slow:
    """One thread, the run's. `problem`: what is slow now, for whoever looks at the run."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._told: set[bytes] = set()
        self._look_at = 0.0
        self.problem: Reason | None = None

    def look(self, under_way: Iterable[tuple[Work, float]], limit_seconds: float, now: float) -> None:
        """`under_way` with the seconds of each; `limit_seconds` 0 = none, `now` monotonic."""
        if now < self._look_at:
            return
        self._look_at = now + min(LONGEST_PAUSE, limit_seconds / 10 or LONGEST_PAUSE)
        slow = [each for each in under_way if 0 < SHARE * limit_seconds <= each[1]]
        for work, seconds in slow:
            if work.record not in self._told:
                self._log.warning(
                    "handling slow",
                    message_key=work.identified.key.text,
                    attempt=work.attempt,
                    seconds=round(seconds, 1),
                    limit_seconds=limit_seconds,
                )
        self._told = {work.record for work, _ in slow}
        self.problem = None
        if slow:
            longest = max(seconds for _, seconds in slow)
            self.problem = reasons.HANDLING_SLOW(seconds=float(f"{longest:.3g}"), limit=limit_seconds)
