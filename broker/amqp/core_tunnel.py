"""Core messages as they are: how the broker is asked for them, and the parts of one that it tunnels.

Asked by a link capability that Proton cannot set, so its frame is rewritten.

`offered-capabilities` of an attach says to Artemis (2.30 and later) that this receiver takes Core messages
unconverted. Proton knows capabilities of connections and addresses only. A broker that does not know it
converts as ever.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from broker.amqp.types import read, write
from broker.port import NULL
from contract.typed import Typed

CAPABILITY = "AMQ_CORE_MESSAGE_TUNNELING"
_ATTACH = b"\x00\x53\x12"
_OFFERED = 11  # place of the field in an attach (OASIS AMQP 1.0, section 2.7.3)


def offering(frames: bytes) -> bytes:
    """The frames, each attach among them with the capability. They must be whole."""
    done, at = [], 0
    while at < len(frames):
        size = int.from_bytes(frames[at : at + 4])
        done.append(_frame(frames[at : at + size]))
        at += size
    return b"".join(done)


def _frame(frame: bytes) -> bytes:
    start = 4 * frame[4]
    if frame[start : start + 3] != _ATTACH:
        return frame
    fields = list(read(frame, start + 3)[0].value)
    fields += [NULL] * (_OFFERED + 1 - len(fields))
    fields[_OFFERED] = Typed("symbol", CAPABILITY)
    content = frame[4:start] + _ATTACH + write(Typed("list", tuple(fields)))
    return (len(content) + 4).to_bytes(4) + content


# -- head and body -------------------------------------------------------------------------------------------


DATA = b"\x00\x53\x75\xb0"
# Bytes of Core's packets that the end of the body is counted from.
_PACKET = 13
_NUMBERS = {2: ("boolean", ">?"), 3: ("byte", ">b"), 5: ("short", ">h"), 6: ("int", ">i"), 7: ("long", ">q")}
_NUMBERS |= {8: ("float", ">f"), 9: ("double", ">d")}
_FORMS = {
    form: (packed.size, packed.unpack_from)
    for form in (">?", ">b", ">h", ">H", ">i", ">q", ">f", ">d")
    for packed in (struct.Struct(form),)
}
_INT = struct.Struct(">i").unpack_from
_FIXED = {kind: (name, *_FORMS[form]) for kind, (name, form) in _NUMBERS.items()}
_KNOWN_NAME, _KNOWN_NAMES = 128, 1024  # bytes of a name that is kept, and how many
_NULL, _BYTE_ARRAY, _STRING, _CHAR = 0, 4, 10, 11
# What values of producers can make of reading and encoding.
UNREADABLE = (ValueError, TypeError, OverflowError, IndexError, struct.error)


class MalformedCoreMessage(ValueError):
    """It does not say what its kind says."""


@dataclass(frozen=True, slots=True)
class Head:
    broker_id: int
    address: str
    user_id: bytes
    kind: int
    durable: bool
    expires_at: int
    created_at: int
    priority: int
    properties: dict[str, Typed]


def read_parts(encoded: bytes) -> tuple[Head, bytes]:
    sections = _sections(encoded)
    if len(sections) == 1 and (found := _standard(sections[0])) is not None:
        return found
    return _head(sections[0]), b"".join(sections[1:])


def _sections(encoded: bytes) -> list[bytes]:
    sections, at = [], 0
    while at < len(encoded):
        if encoded[at : at + 4] != DATA:
            raise MalformedCoreMessage("a section that is not data")
        end = at + 8 + int.from_bytes(encoded[at + 4 : at + 8])
        if end > len(encoded):
            raise MalformedCoreMessage("a section is truncated")
        sections.append(encoded[at + 8 : end])
        at = end
    return sections


def _standard(section: bytes) -> tuple[Head, bytes] | None:
    """A message that is not large: size, where the body ends, the body, the head."""
    if len(section) < 8 or int.from_bytes(section[:4]) != len(section) - 4:
        return None
    end = 8 + int.from_bytes(section[4:8]) - _PACKET
    if not 8 <= end <= len(section):
        return None
    return _head(section[end:]), section[8:end]


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise MalformedCoreMessage("the message is truncated")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, form: str) -> Any:
        """`form` is one of `_FORMS`."""
        size, unpack = _FORMS[form]
        end = self.at + size
        if end > len(self.data):
            raise MalformedCoreMessage("the message is truncated")
        (value,) = unpack(self.data, self.at)
        self.at = end
        return value

    def text(self) -> str:
        return _text(self.take(self.number(">i")))

    def optional_text(self) -> str | None:
        return self.text() if self.number(">b") else None

    def stream_text(self) -> str | None:
        """Of a stream: short ones in UTF-16 of the other order, those below 4 KB in Java's UTF-8, long ones
        as text."""
        if not self.number(">b"):
            return None
        length = self.number(">i")
        if length < 9:
            return self.take(2 * length).decode("utf-16-be", "surrogatepass")
        if length < 0xFFF:
            return _java_text(self.take(self.number(">H")))
        return self.text()

    def value(self, kind: int, text: Callable[[], str | None]) -> Typed:
        if kind == _NULL:
            return NULL
        if kind == _STRING:
            found = text()
            return NULL if found is None else Typed("string", found)
        if kind == _BYTE_ARRAY:
            return Typed("binary", self.take(self.number(">i")))
        if kind == _CHAR:
            return Typed("char", chr(self.number(">H")))
        if kind not in _NUMBERS:
            raise MalformedCoreMessage(f"there is no type {kind}")
        name, form = _NUMBERS[kind]
        return Typed(name, self.number(form))

    def names(self) -> dict[str, Typed]:
        """Without a call for each number: there are many, and every dead letter is read here."""
        if not self.number(">b"):
            return {}
        found = {}
        data = self.data
        for _ in range(self.number(">i")):
            start = self.at + 4
            self.at = end = start + _INT(data, self.at)[0]
            if not start <= end < len(data):
                raise MalformedCoreMessage("the message is truncated")
            name = _known_name(data[start:end]) if end - start <= _KNOWN_NAME else _text(data[start:end])
            kind = data[end]
            self.at = at = end + 1
            if kind in _FIXED:
                type_name, size, unpack = _FIXED[kind]
                found[name] = Typed(type_name, unpack(data, at)[0])
                self.at = at + size
            else:
                found[name] = self.value(kind, self.text)
        return found

    def end(self) -> None:
        if self.at != len(self.data):
            raise MalformedCoreMessage("the message is longer than declared")


def _text(data: bytes) -> str:
    return data.decode("utf-16-le", "surrogatepass")


@lru_cache(_KNOWN_NAMES)
def _known_name(data: bytes) -> str:
    """Messages of one kind have properties of the same names."""
    return _text(data)


def _java_text(data: bytes) -> str:
    """Java's own UTF-8: surrogates one by one, and no byte 0."""
    text = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _head(data: bytes) -> Head:
    reader = Reader(data)
    broker_id = reader.number(">q")
    address = reader.optional_text() or ""
    user_id = reader.take(16) if reader.number(">b") else b""
    kind, durable = reader.number(">b"), reader.number(">?")
    expires_at, created_at, priority = reader.number(">q"), reader.number(">q"), reader.number(">b")
    properties = reader.names()
    reader.end()
    return Head(broker_id, address, user_id, kind, durable, expires_at, created_at, priority, properties)
