"""What the run knows of a message: cheap looks at its bytes for every one, all of it for those that need a
record; and attempts of it that the broker may not have counted.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from broker.amqp.codec import decode
from broker.amqp.python_values import decode_natural
from broker.amqp.sections import PROPERTIES, sections
from broker.amqp.types import Malformed, read
from broker.port import Message, MessageUndecodable
from contract.message_key import DIGEST_PREFIX, MessageKey, message_key
from contract.names import (
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    DEAD_LETTER_PREFIX,
    LETTER,
    LETTER_ID,
    LETTER_QUEUE,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
)
from contract.records import MessageIdentity
from contract.typed import Typed, storable, text_of
from exposition.trace import TRACEPARENT
from exposition.trace import case_of as contract_case

MASK = "•••"
MOST_PROPERTIES = 100
LONGEST_TEXT = 1000

_HEADER = b"\x00\x53\x70"
_ORIGINS = (ORIG_QUEUE.encode(), ANNOTATED_ORIG_QUEUE.encode(), LETTER_QUEUE.encode())
_NATURAL = frozenset({"boolean", "ubyte", "ushort", "uint", "byte", "short", "int", "ulong", "long"})


def delivery_count(encoded: bytes) -> int:
    """Attempts made before by the broker's count. Nothing but the header is looked at, and few headers are
    distinct."""
    if encoded[:3] != _HEADER:
        return 0
    form = encoded[3]
    if form == 0x45:
        return 0
    if form == 0xC0:
        return _count_in(encoded[: 5 + encoded[4]])
    try:
        return decode_natural(encoded).delivery_count
    except MessageUndecodable:
        return 0


@lru_cache(maxsize=1024)
def _count_in(header: bytes) -> int:
    try:
        return decode_natural(header).delivery_count
    except MessageUndecodable:
        return 0


def key_of(encoded: bytes) -> str:
    """The message key; without decoding the whole message where the producer's id is the key."""
    if LETTER.encode() in encoded:
        return identify(encoded).key.text
    try:
        for code, start, _ in sections(encoded):
            if code == PROPERTIES:
                fields, _ = read(encoded, start)
                if fields.type == "list" and fields.value and fields.value[0].value not in (None, "", b""):
                    return message_key(fields.value[0], b"", {}).text
                break
    except Malformed:
        pass
    return identify(encoded).key.text


def may_be_replayed(encoded: bytes) -> bool:
    """False is certain. True asks for `IdentifiedMessage.replayed`."""
    for name in _ORIGINS:  # noqa: SIM110  # of every message: a generator costs more than the search
        if name in encoded:
            return True
    return False


@dataclass(frozen=True, slots=True)
class IdentifiedMessage:
    """All that records say about a message beside its attempt and its run."""

    key: MessageKey
    digest: str
    size: int
    properties: Mapping[str, Any]
    dead_letter_queue: str
    dead_letter_id: int | None
    traceparent: str
    durable: bool = True

    @property
    def replayed(self) -> bool:
        return bool(self.dead_letter_queue)

    def record(self, *, queue: str, destination: str, count: int, attempt: int) -> MessageIdentity:
        return MessageIdentity(
            key=self.key.text,
            weak=self.key.weak,
            queue=queue,
            destination=destination,
            delivery_count=count,
            attempt=attempt,
            body_digest=self.digest,
            body_size=self.size,
            properties=self.properties,
            replayed=self.replayed,
            dead_letter_queue=self.dead_letter_queue,
            dead_letter_id=self.dead_letter_id,
            durable=self.durable,
        )


# What a standalone agent's run is about.
NO_MESSAGE = IdentifiedMessage(MessageKey("", weak=False), "", 0, {}, "", None, "")


def identify(encoded: bytes, masked: tuple[str, ...] = ()) -> IdentifiedMessage:
    """Never raises: bytes that are no message are identified by their digest."""
    try:
        message = decode(encoded)
    except MessageUndecodable:
        digest = hashlib.sha256(encoded).hexdigest()
        return IdentifiedMessage(
            MessageKey(DIGEST_PREFIX + digest, weak=True), digest, len(encoded), {}, "", None, ""
        )
    section = message.body_section
    queue, dead_letter_id = _letter(message)
    trace = message.properties.get(TRACEPARENT)
    return IdentifiedMessage(
        key=message_key(message.message_id, section, message.properties),
        digest=hashlib.sha256(section).hexdigest(),
        size=_size(message.body, section),
        properties=shown(message.properties, masked),
        dead_letter_queue=queue,
        dead_letter_id=dead_letter_id,
        traceparent=text_of(trace)[:200] if trace is not None else "",
        durable=message.durable,
    )


def shown(properties: Mapping[str, Typed], masked: tuple[str, ...]) -> dict[str, Any]:
    """Application properties as bounded JSON: numbers and booleans as they are, the rest as text."""
    values = {}
    for name in sorted(properties)[:MOST_PROPERTIES]:
        values[storable(name)[:200]] = MASK if name in masked else _shown(properties[name])
    return values


def _shown(item: Typed) -> Any:
    # Large integers as text: a browser's JSON would round them.
    if item.type in _NATURAL and abs(item.value) < 2**53:
        return item.value
    return text_of(item)[:LONGEST_TEXT]


def _letter(message: Message) -> tuple[str, int | None]:
    """The dead-letter queue that the message was given back from, and the letter's id there; empty if it was
    not.

    An edited copy says it itself; once it died and came back, the broker's newer word counts."""
    for names, queue_name, id_name in (
        (message.annotations, ANNOTATED_ORIG_QUEUE, ANNOTATED_ORIG_MESSAGE_ID),
        (message.properties, ORIG_QUEUE, ORIG_MESSAGE_ID),
        (message.properties, LETTER_QUEUE, LETTER_ID),
    ):
        queue = names.get(queue_name)
        if (
            queue is None
            or not isinstance(queue.value, str)
            or not queue.value.startswith(DEAD_LETTER_PREFIX)
        ):
            continue
        letter = names.get(id_name)
        return storable(queue.value)[:300], _number(letter)
    return "", None


def _number(letter: Typed | None) -> int | None:
    """An id of the broker, which is a long, or a text where STOMP carried it."""
    text = "" if letter is None else text_of(letter)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _size(body: Typed, section: bytes) -> int:
    if isinstance(body.value, str):
        return len(body.value.encode("utf-8", "surrogatepass"))
    return len(body.value) if isinstance(body.value, bytes) else len(section)


# Attempts that the broker may not have counted or may have forgotten: those of a KMA that died, and those
# that failed here. From this server's journal and spool, and from the MA.


class KnownAttempts:
    """`here` is by case, because a message that was given back begins anew; the MA's are by message key, and
    the MA leaves out what has ended. Weak keys are left out: equal messages share them, and none may pay for
    another; for those the broker's count is all there is. One thread."""

    def __init__(self, here: Mapping[str, int]) -> None:
        self._here = {case: made for case, made in here.items() if not is_weak(case)}
        self._told: dict[str, int] = {}
        self._ended: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._here or self._told)

    def told(self, attempts: Mapping[str, int]) -> None:
        """What the MA knows now. What ended here stays ended until the MA has noticed."""
        self._ended &= attempts.keys()
        self._told = {
            key: made for key, made in attempts.items() if key not in self._ended and not is_weak(key)
        }

    def of(self, encoded: bytes) -> int:
        if not self:
            return 0
        return max(self._here.get(case_of(encoded), 0), self._told.get(key_of(encoded), 0))

    def made(self, encoded: bytes, attempts: int) -> str:
        """Remembers; answers the case, for the disk."""
        case = case_of(encoded)
        self._here[case] = attempts
        return case

    def ended(self, encoded: bytes) -> str | None:
        """The message was handled or is dead. Answers the case if the disk knows of it too."""
        if not self:
            return None
        key = key_of(encoded)
        if self._told.pop(key, None) is not None:
            self._ended.add(key)
        case = case_of(encoded)
        return case if self._here.pop(case, None) is not None else None


def case_of(encoded: bytes) -> str:
    """The message key; of a message that was given back together with its letter: a new chapter, counted
    anew."""
    return case(identify(encoded)) if may_be_replayed(encoded) else key_of(encoded)


def case(identified: IdentifiedMessage) -> str:
    return contract_case(identified.key.text, replayed=identified.replayed, letter=identified.dead_letter_id)


def is_weak(case: str) -> bool:
    return case.startswith(DIGEST_PREFIX)
