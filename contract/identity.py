"""The message key: joins deliveries, protocols, dead letters and replays of one message (its case file).

One function for both sides, over the AMQP view of a message.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from contract.properties import LETTER, belongs_to_identity
from contract.typed import Typed, canonical, text_of

DIGEST_PREFIX = "sha256:"
LONGEST_ID = 200


@dataclass(frozen=True, slots=True)
class MessageKey:
    """`text` is at most 255 characters. A `weak` key has no producer's id behind it: equal messages share
    it."""

    text: str
    weak: bool


def message_key(message_id: Typed | None, body: bytes, properties: Mapping[str, Typed]) -> MessageKey:
    """The key of a message from its producer's id, else from its body section and application properties.

    `body` is the canonical form of the body section (`broker.port.Message.body_section`). `ma_letter` on our
    own copies wins over both. An id is prefixed with its type unless it is text, so that ulong 7 and "7" stay
    two.
    """
    letter = properties.get(LETTER)
    if letter is not None and isinstance(letter.value, str) and letter.value:
        return MessageKey(letter.value[:255], weak=letter.value.startswith(DIGEST_PREFIX))
    if message_id is not None and message_id.type != "null" and message_id.value not in ("", b""):
        return MessageKey(_canonical_id(message_id), weak=False)
    return MessageKey(DIGEST_PREFIX + _digest(body, properties), weak=True)


def _canonical_id(message_id: Typed) -> str:
    text = text_of(message_id)
    if message_id.type != "string":
        text = f"{message_id.type}:{text}"
    if len(text) > LONGEST_ID:
        return f"id-sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    return text


def _digest(body: bytes, properties: Mapping[str, Typed]) -> str:
    digest = hashlib.sha256(b"%d:" % len(body))
    digest.update(body)
    for name in sorted(filter(belongs_to_identity, properties)):
        encoded = name.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%s" % (len(encoded), encoded))
        digest.update(canonical(properties[name]))
    return digest.hexdigest()
