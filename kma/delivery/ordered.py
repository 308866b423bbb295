"""The failed message of an ordered subscription: it stays unsettled, so nothing overtakes it, and is tried
again here.

Each attempt is stored before the next one begins. Killed before or after: the broker gives the message to
whoever is next, first of all, and the attempts are known from this server's disk or from the protocols at the
MA. It is never released: closing the link puts it back where it was.

A person may give it up. Killed before that is stored: it blocks on, whoever holds it next, and the person
asks again; stored, but not yet rejected: the same, its attempts begin anew.
"""

import time

from contract.messages import BlockedMessage, DesiredRun, GiveUpRequest
from contract.outcomes import AfterLast
from kma.delivery.in_flight import InFlight
from kma.handling.failure import FailureDetails

FOR_A_PERSON = -1.0


class OrderedRetry:
    """One thread, the run's, but for `blocked`. In other subscriptions nothing is kept here."""

    def __init__(self, desired: DesiredRun) -> None:
        self.on = desired.ordered
        self._seconds = desired.blocked_seconds
        self._asked = desired.retries_requested
        self._wish = desired.give_up_request
        self.stays = False
        self._work: InFlight | None = None
        self._failure: FailureDetails | None = None
        self._since = 0.0
        self._stored = self._now = self._given_up = False
        self.change(desired)

    def change(self, desired: DesiredRun) -> None:
        """`stays`: attempts are without end."""
        self.stays = self.on and desired.after_last is AfterLast.STAY
        self._now = self._now or desired.retries_requested != self._asked
        self._seconds, self._asked = desired.blocked_seconds, desired.retries_requested
        if desired.give_up_request is not None and desired.give_up_request != self._wish:
            self._wish = desired.give_up_request
            self._given_up = self._given_up or self._meant(desired.give_up_request)

    def _meant(self, wish: GiveUpRequest) -> bool:
        """A wish for another message, or for this one after another attempt, is of somebody who saw what is
        over."""
        blocked = self.blocked
        return blocked is not None and (blocked.digest, blocked.attempt) == (wish.digest, wish.attempt)

    def keep(self, work: InFlight, failure: FailureDetails) -> None:
        """It has failed; its records go to the disk with what is pending."""
        self._work, self._failure, self._since = work, failure, time.monotonic()
        self._stored = self._now = self._given_up = False

    def stored(self) -> None:
        """What was pending is on the disk."""
        self._stored = True

    def forget(self) -> None:
        """It goes with its connection."""
        self._work, self._given_up = None, False

    def seconds_until_due(self) -> float:
        """Seconds until it may be tried again."""
        if self._work is None or not self._stored:
            return float("inf")
        if self._now or self._given_up:
            return 0.0
        if self._seconds <= FOR_A_PERSON:
            return float("inf")
        return max(0.0, self._since + self._seconds - time.monotonic())

    @property
    def due(self) -> bool:
        return self.seconds_until_due() <= 0.0

    def take(self) -> InFlight:
        """The message, which is due, as it failed."""
        assert self._work is not None
        work, self._work = self._work, None
        return work

    def take_given_up(self) -> tuple[InFlight, FailureDetails] | None:
        """The message that a person gave up, which is due, and how it failed last; None where nobody did."""
        if not self._given_up or self._failure is None:
            return None
        self._given_up = False
        return self.take(), self._failure

    @property
    def blocked(self) -> BlockedMessage | None:
        """What nothing overtakes until it is tried again. From any thread."""
        work, seconds = self._work, self._seconds
        if work is None:
            return None
        wait = None if seconds <= FOR_A_PERSON else seconds
        return BlockedMessage(work.identified.key.text, work.attempt, wait)
