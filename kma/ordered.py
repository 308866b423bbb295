"""The failed message of an ordered subscription: it stays unsettled, so nothing overtakes it, and is tried again here.

Each attempt is stored before the next one begins. Killed before or after: the broker gives the message to whoever is
next, first of all, and the attempts are known from this server's disk or from the protocols at the MA. It is never
released: closing the link puts it back where it was.
"""

import time

from contract.blocked import Blocked
from contract.messages import DesiredRun
from contract.outcomes import AfterLast
from kma.work import Work

FOR_A_PERSON = -1.0


class Ordered:
    """One thread, the run's. In other subscriptions nothing is kept here."""

    def __init__(self, desired: DesiredRun) -> None:
        self.on = desired.ordered
        self._seconds = desired.blocked_seconds
        self._asked = desired.retries_asked
        self.stays = False
        self._work: Work | None = None
        self._since = 0.0
        self._stored = self._now = False
        self.change(desired)

    def change(self, desired: DesiredRun) -> None:
        """`stays`: attempts are without end."""
        self.stays = self.on and desired.after_last is AfterLast.STAY
        self._now = self._now or desired.retries_asked != self._asked
        self._seconds, self._asked = desired.blocked_seconds, desired.retries_asked

    def keep(self, work: Work) -> None:
        """It has failed; its records are in the batch at hand."""
        self._work, self._since, self._stored, self._now = work, time.monotonic(), False, False

    def stored(self) -> None:
        """The batch at hand is on the disk."""
        self._stored = True

    def forget(self) -> None:
        """It goes with its connection."""
        self._work = None

    def patience(self) -> float:
        """Seconds until it may be tried again."""
        if self._work is None or not self._stored:
            return float("inf")
        if self._now:
            return 0.0
        if self._seconds <= FOR_A_PERSON:
            return float("inf")
        return max(0.0, self._since + self._seconds - time.monotonic())

    @property
    def due(self) -> bool:
        return self.patience() <= 0.0

    def take(self) -> Work:
        """The message, which is due, as it failed."""
        assert self._work is not None
        work, self._work = self._work, None
        return work

    @property
    def problem(self) -> str:
        if self._work is None:
            return ""
        seconds = "" if self._seconds <= FOR_A_PERSON else f"{self._seconds:g}"
        return str(Blocked(self._work.identified.key.text, self._work.attempt, seconds))
