"""The message key: joins deliveries, protocols, dead letters and replays of one message (its case file).

One function for both sides, over the AMQP view of a message.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contract.names import LETTER, belongs_to_identity
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


# How a setting names the key by which repeats of its messages are known: "" (no guard), "key" (the message
# key), "property:NAME", or "pointer:/json/pointer" into a JSON body (RFC 6901).


KEY, PROPERTY, POINTER = "key", "property:", "pointer:"
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


def check_key(text: str) -> None:
    """Raises ValueError whose text names the forms."""
    good = text in ("", KEY)
    good = good or (text.startswith(PROPERTY) and len(text) > len(PROPERTY))
    good = good or (text.startswith(POINTER) and _POINTER.fullmatch(text.removeprefix(POINTER)) is not None)
    if not good:
        raise ValueError("one of: key, property:NAME, pointer:/a/b, or nothing")


def found_at(pointer: str, value: Any) -> Any:
    """The text, number or truth value there; None where there is none, or something that is no key."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value if isinstance(value, (str, int, float)) and value != "" else None
