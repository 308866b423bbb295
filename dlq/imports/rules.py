"""JSON lines -> messages for a test of one setting. All lines are understood before anything is sent. Pure.

A line is one of an export of whole dead letters (`body`, `message`), or written by hand: `{"body": {"text":
"…"}}`, with `"message": {"properties": [{"name", "type", "value"}], …}` where they are wanted. What told of
the dead letter's death, and its message id, does not come along: these are new messages.
"""

import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid5

from django.utils.translation import gettext as _

from broker.amqp.codec import decode, encode_outgoing
from broker.port import BodyKind, Message, MessageUndecodable
from console.operations.refusals import WronglyAsked
from contract.names import DUPLICATE_ID, JMS_KIND
from contract.typed import Typed, from_json
from dlq.edit.rules.values import (
    TYPES,
    EditRefused,
    checked_name,
    is_locked,
    kept_properties,
    typed_value,
    written,
)
from dlq.exports import TEXTS

# Lines of one import, and bytes of all of them. The broker knows the last 20,000 duplicate ids of an address.
MOST, LARGEST = 1000, 16 * 1024 * 1024
SHOWN_PROBLEMS = 20
MARK = b"\xef\xbb\xbf"
_SPACE = UUID("6f1c8f0e-6a52-4e0b-9a57-6f6d61696d70")
_WRONG = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, struct.error)


@dataclass(frozen=True, slots=True)
class ImportFile:
    """`digest` is the same for the same lines, however they are laid out."""

    messages: tuple[Message, ...]
    digest: str

    @property
    def size(self) -> int:
        return sum(len(encode_outgoing(message)) for message in self.messages)


def parcel_of(content: bytes) -> ImportFile:
    """Nothing of it is taken when one line is wrong. Raises WronglyAsked; its `problems` are lines of text
    for people, each names its line of the file."""
    if len(content) > LARGEST:
        raise WronglyAsked(
            "too_large", _("The file is too large. The limit is %(n)s bytes.") % {"n": LARGEST}
        )
    numbered = enumerate(content.removeprefix(MARK).splitlines(), 1)
    lines = [(number, line) for number, line in numbered if line.strip()]
    if not lines:
        raise WronglyAsked("empty", _("The file has no lines."))
    if len(lines) > MOST:
        raise WronglyAsked("too_many", _("At most %(n)s messages at a time.") % {"n": MOST})
    messages, problems, digest = [], [], hashlib.sha256()
    for number, line in lines:
        try:
            data = json.loads(line)
            messages.append(parse_message(data))
            digest.update(json.dumps(data, sort_keys=True).encode() + b"\n")
        except (_Wrong, EditRefused) as wrong:
            problems.append(_("Line %(n)s: %(why)s") % {"n": number, "why": wrong})
        except _WRONG:
            problems.append(_("Line %(n)s: %(why)s") % {"n": number, "why": _("not a valid message")})
    if problems:
        shown = problems[:SHOWN_PROBLEMS]
        text = _("Nothing was imported. Invalid lines: %(n)s.") % {"n": len(problems)}
        raise WronglyAsked("bad_lines", text, problems=shown)
    return ImportFile(tuple(messages), digest.hexdigest())


def import_id(setting_key: str, digest: str, again: int) -> UUID:
    """Returns the same id for the same lines and the same setting; `again`: how often they were sent before
    on purpose."""
    return uuid5(_SPACE, f"{setting_key}:{digest}:{again}")


def stamped(parcel: ImportFile, operation: UUID) -> list[Message]:
    """Returns them as they are sent: the broker drops a second one with the same duplicate id, and none is
    the message of a case."""
    stamped_ones = []
    for number, message in enumerate(parcel.messages):
        id_ = str(uuid5(operation, str(number)))
        properties = {**message.properties, DUPLICATE_ID: Typed("string", id_)}
        stamped_ones.append(
            replace(message, properties=properties, message_id=Typed("string", f"import-{id_}"))
        )
    return stamped_ones


# -- one line ------------------------------------------------------------------------------------------------


class _Wrong(Exception):
    """A problem with text for people."""


def parse_message(data: Any) -> Message:
    """Raises _Wrong, or one of _WRONG."""
    body, said = data.get("body"), data.get("message") or {}
    if said.get("masked") or (isinstance(body, dict) and "masked" in body):
        raise _Wrong(_("contains masked values; ask someone who can view them to export the message"))
    if body is None and "body" not in said:
        raise _Wrong(_("no body"))
    value = _body(body or {}, said)
    kind = BodyKind(said.get("body_kind", "data" if value.type == "binary" else "value"))
    if (kind is BodyKind.DATA and value.type != "binary") or (
        kind is BodyKind.SEQUENCE and value.type != "list"
    ):
        raise _Wrong(_("the body does not match its type"))
    message = Message(
        body=value,
        body_kind=kind,
        properties=kept_properties(_items(said.get("properties") or [])),
        annotations={
            name: item for name, item in _items(said.get("annotations") or []).items() if name == JMS_KIND
        },
        correlation_id=from_json(said["correlation_id"]) if said.get("correlation_id") else None,
        durable=said.get("durable", True) is True,
        priority=_priority(said.get("priority", 4)),
    )
    texts: dict[str, Any] = {name: _text(said[name]) for name in TEXTS if name in said}
    return _sendable(replace(message, **texts))


def _body(body: Mapping[str, Any], said: Mapping[str, Any]) -> Typed:
    if "body" in said:
        return from_json(said["body"])
    kind = said.get("body_type", "binary" if "base64" in body else "string")
    if kind == "null":
        return Typed("null", None)
    if kind not in ("string", "binary"):
        raise _Wrong(_("the body does not match its type"))
    if "base64" in body:
        content = base64.b64decode(body["base64"], validate=True)
        return Typed("binary", content) if kind == "binary" else Typed("string", content.decode())
    text = _text(body["text"])
    return Typed("binary", text.encode()) if kind == "binary" else Typed("string", text)


def _items(items: list[Mapping[str, Any]]) -> dict[str, Typed]:
    """Leaves out what the broker and we set ourselves."""
    found = {}
    for each in items:
        name = checked_name(_text(each["name"]))
        item = from_json(dict(each))
        if not is_locked(name, frozenset()):
            found[name] = _checked(item, name)
    return found


def _checked(item: Typed, name: str) -> Typed:
    """Checks, for plain types, that the value is one of its type."""
    if item.type not in TYPES or isinstance(item.value, bytes):
        return item
    try:
        return typed_value(item.type, written(item), name)
    except EditRefused as refused:
        raise _Wrong(str(refused)) from refused


def _priority(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 9:
        raise _Wrong(_("the priority must be from 0 to 9"))
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _sendable(message: Message) -> Message:
    """The broker gets what can be read again."""
    try:
        decode(encode_outgoing(message))
    except (ValueError, MessageUndecodable) as error:
        raise _Wrong(_("cannot be sent: %(why)s") % {"why": str(error)[:200]}) from error
    return message
