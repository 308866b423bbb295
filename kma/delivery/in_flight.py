"""One delivery on its way through a run."""

import json
from dataclasses import asdict, replace

from broker.amqp.codec import decode, encode
from broker.port import NULL, BodyKind
from kma.delivery.message_identity import NO_MESSAGE, IdentifiedMessage, identify, may_be_replayed
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
