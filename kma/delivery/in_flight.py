"""One delivery on its way through a run; and the failed message of an ordered subscription: it stays
unsettled, so nothing overtakes it, and is tried again here.

Each attempt is stored before the next one begins. Killed before or after: the broker gives the message to
whoever is next, first of all, and the attempts are known from this server's disk or from the protocols at
the MA. It is never released: closing the link puts it back where it was.

A person may give it up. Killed before that is stored: it blocks on, whoever holds it next, and the person
asks again; stored, but not yet rejected: the same, its attempts begin anew.
"""

import json
import time
from dataclasses import asdict, replace

from broker.amqp.codec import decode, encode
from broker.port import NULL, BodyKind
from contract.messages import BlockedMessage, DesiredRun, GiveUpRequest
from contract.outcomes import AfterLast
from kma.delivery.message_identity import NO_MESSAGE, IdentifiedMessage, identify, may_be_replayed
from kma.handling.failure import FailureDetails
from kma.spool.journal import ENCODED, IDENTITY, ROOM


class InFlight:
    """`count`: attempts made before by the broker's count; `attempt` the one that begins; `record` the id of
    the protocol if it fails; `connection_number` of the one that delivered it; `slot` of the journal, -1 for
    none; `acknowledgement` its id in the mode CLIENT, else empty; `digest` of its key where repeats are
    guarded against."""

    __slots__ = (
        *(
            "_identified",
            "_masked",
            "acknowledgement",
            "attempt",
            "count",
            "digest",
            "encoded",
            "connection_number",
            "record",
            "slot",
        ),
        "tag",
    )

    def __init__(
        self,
        tag: int,
        encoded: bytes,
        count: int,
        attempt: int,
        record: bytes,
        connection_number: int,
        masked: tuple[str, ...],
    ) -> None:
        self.tag = tag
        self.encoded = encoded
        self.count = count
        self.attempt = attempt
        self.record = record
        self.connection_number = connection_number
        self.slot = -1
        self.acknowledgement = ""
        self.digest = b""
        self._masked = masked
        self._identified: IdentifiedMessage | None = None

    @property
    def identified(self) -> IdentifiedMessage:
        if self._identified is None:
            self._identified = identify(self.encoded, self._masked)
        return self._identified

    @property
    def needs_record(self) -> bool:
        """Whether its success is worth a record. False for nearly all, and cheap."""
        return self.attempt > 1 or (may_be_replayed(self.encoded) and self.identified.replayed)

    def again(self, record: bytes, attempt: int) -> "InFlight":
        """The same delivery, for another attempt."""
        work = InFlight(
            self.tag, self.encoded, self.count, attempt, record, self.connection_number, self._masked
        )
        work.digest = self.digest
        return work

    def lighten(self) -> None:
        """It will wait for long: a large body need not. Who it is stays the same."""
        if len(self.encoded) > ROOM:
            self._identified = self.identified
            self.encoded = encode(replace(decode(self.encoded), body=NULL, body_kind=BodyKind.VALUE))

    def journalled(self) -> tuple[bytes, int]:
        """What the journal keeps: the message itself, or who it is when it is too large for a slot."""
        if len(self.encoded) <= ROOM:
            return self.encoded, ENCODED
        return identity_bytes(self.identified), IDENTITY


def standalone_attempt(record: bytes) -> InFlight:
    """One run of a standalone agent."""
    work = InFlight(0, b"", 0, 1, record, 0, ())
    work.slot = 0  # of the one in its journal
    work._identified = NO_MESSAGE
    return work


def identity_bytes(identified: IdentifiedMessage) -> bytes:
    """At most ROOM bytes; without the properties if they are too many."""
    whole = asdict(identified)
    data = json.dumps(whole).encode()
    return data if len(data) <= ROOM else json.dumps({**whole, "properties": {}}).encode()


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
