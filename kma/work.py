"""One delivery on its way through a run."""

import json
from dataclasses import asdict

from kma.identity import NO_MESSAGE, Identified, identify, may_be_given_back
from kma.journal import ENCODED, IDENTITY, ROOM


class Work:
    """`count`: attempts made before by the broker's count; `attempt` the one that begins; `record` the id of the
    protocol if it fails; `life` the connection that delivered it."""

    __slots__ = ("_identified", "_masked", "attempt", "count", "encoded", "life", "record", "slot", "tag")

    def __init__(
        self, tag: int, encoded: bytes, count: int, attempt: int, record: bytes, life: int, masked: tuple[str, ...]
    ) -> None:
        self.tag = tag
        self.encoded = encoded
        self.count = count
        self.attempt = attempt
        self.record = record
        self.life = life
        self.slot = -1
        self._masked = masked
        self._identified: Identified | None = None

    @property
    def identified(self) -> Identified:
        if self._identified is None:
            self._identified = identify(self.encoded, self._masked)
        return self._identified

    @property
    def needs_record(self) -> bool:
        """Whether its success is worth a record. False for nearly all, and cheap."""
        return self.attempt > 1 or (may_be_given_back(self.encoded) and self.identified.given_back)

    def journalled(self) -> tuple[bytes, int]:
        """What the journal keeps: the message itself, or who it is when it is too large for a slot."""
        if len(self.encoded) <= ROOM:
            return self.encoded, ENCODED
        return identity_bytes(self.identified), IDENTITY


def without_message(record: bytes) -> Work:
    """One run of a standalone agent."""
    work = Work(0, b"", 0, 1, record, 0, ())
    work._identified = NO_MESSAGE
    return work


def identity_bytes(identified: Identified) -> bytes:
    """At most ROOM bytes; without the properties if they are too many."""
    whole = asdict(identified)
    data = json.dumps(whole).encode()
    return data if len(data) <= ROOM else json.dumps({**whole, "properties": {}}).encode()
