"""A property as a person writes it: its AMQP type and a text -> a typed value, or why it is none. Pure."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from contract.names import (
    ANNOTATED_ORIG_ADDRESS,
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    BROKER_PREFIXES,
    BROKERS_OWN,
    DUPLICATE_ID,
    LETTER,
    LETTER_ID,
    LETTER_QUEUE,
)
from contract.typed import Typed, storable, text_of

# -- why an edit cannot be made ------------------------------------------------------------------------------


class EditRefused(Exception):
    """Nothing was changed. `code` is a stable word, `what` names the part that it is about: `body`, a
    property, or `rule 2`. The words say neither a value nor a part of the body."""

    def __init__(self, code: str, reason: str, what: str = "") -> None:
        super().__init__(f"{what}: {reason}" if what else reason)
        self.code, self.reason, self.what = code, reason, what


# Bits and sign of each kind of integer.
_INTEGERS = {
    "byte": (-(2**7), 2**7 - 1), "short": (-(2**15), 2**15 - 1), "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1), "ubyte": (0, 2**8 - 1), "ushort": (0, 2**16 - 1), "uint": (0, 2**32 - 1),
    "ulong": (0, 2**64 - 1),
}  # fmt: skip
TYPES = (
    "string", "boolean", "int", "long", "double", "float", "byte", "short", "ubyte", "ushort", "uint",
    "ulong",
    "timestamp", "symbol", "char", "uuid", "binary", "null",
)  # fmt: skip
LONGEST_NAME = 300
LONGEST_VALUE = 64 * 1024
LARGEST_FLOAT = (2 - 2**-23) * 2.0**127

_WHOLE = re.compile(r"[+-]?\d{1,20}\Z", re.ASCII)


def typed_value(kind: str, text: str, what: str) -> Typed:
    """`text` as `written` gives it. Raises EditRefused, which names `what`."""
    if kind not in TYPES:
        raise EditRefused("bad_type", _("The type %(type)s cannot be set.") % {"type": kind[:40]}, what)
    if len(text) > LONGEST_VALUE:
        reason = _("The value is too long. The limit is %(n)s characters.") % {"n": LONGEST_VALUE}
        raise EditRefused("too_long", reason, what)
    try:
        return Typed(kind, _value(kind, text))
    except (ValueError, OverflowError) as error:
        reason = _("The value does not match the type %(type)s.") % {"type": kind}
        raise EditRefused("bad_value", reason, what) from error


def checked_name(name: str) -> str:
    """Raises EditRefused."""
    if not name.strip():
        raise EditRefused("no_name", _("Enter a property name."))
    if len(name) > LONGEST_NAME or storable(name) != name:
        raise EditRefused(
            "bad_name",
            _("The property name is too long or contains invalid characters. Enter another name."),
            storable(name[:40]),
        )
    return name


def written(item: Typed) -> str:
    """The text that `typed_value` reads as `item`, for the types that it knows."""
    if item.type == "timestamp":
        try:
            return datetime.fromtimestamp(item.value / 1000, UTC).isoformat(timespec="milliseconds")
        except (ValueError, OverflowError, OSError):
            return str(item.value)
    return text_of(item)


def editable_value(item: Typed) -> bool:
    """Returns whether people can write such a value: not a list, a map, or a text that no form brings back as
    it was."""
    if item.type not in TYPES:
        return False
    if isinstance(item.value, str):
        return storable(item.value) == item.value and "\r" not in item.value and "\n" not in item.value
    return not isinstance(item.value, bytes) or len(item.value) * 2 < LONGEST_VALUE


def _value(kind: str, text: str) -> Any:
    if kind in ("string", "symbol"):
        return _text(text, ascii_only=kind == "symbol")
    stripped = text.strip()
    if kind in _INTEGERS:
        return _whole(stripped, *_INTEGERS[kind])
    if kind == "timestamp":
        return _instant(stripped)
    if kind in ("float", "double"):
        return _float(stripped, kind)
    return _VALUES[kind](text if kind == "char" else stripped)


def _text(text: str, *, ascii_only: bool) -> str:
    if storable(text) != text or (ascii_only and not text.isascii()):
        raise ValueError("invalid text")
    return text


def _whole(text: str, least: int, most: int) -> int:
    if not _WHOLE.match(text) or not least <= int(text) <= most:
        raise ValueError("out of range")
    return int(text)


def _float(text: str, kind: str) -> float:
    number = float(text)
    if kind == "float" and math.isfinite(number) and abs(number) > LARGEST_FLOAT:
        raise ValueError("out of range")
    return number


def _instant(text: str) -> int:
    """Milliseconds since 1970, or an ISO 8601 instant with its zone."""
    if _WHOLE.match(text):
        return _whole(text, *_INTEGERS["long"])
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return round(moment.timestamp() * 1000)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"


def _char(text: str) -> str:
    if len(text) != 1:
        raise ValueError("not one character")
    return _text(text, ascii_only=False)


def _binary(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _null(text: str) -> None:
    if text:
        raise ValueError("a null has no value")


_VALUES: dict[str, Any] = {
    "boolean": _boolean, "char": _char, "uuid": lambda text: str(UUID(text)), "binary": _binary,
    "null": _null,
}  # fmt: skip


# -- what of a dead letter nobody edits, and what of it does not go with a copy ------------------------------


# Ours: they tie a copy to its case.
OWN = frozenset({LETTER, LETTER_QUEUE, LETTER_ID})
# Where it died, and how often it was delivered: true of the dead letter, not of a new message.
_ORIGIN_PREFIX = "_AMQ_ORIG_"
_ORIGIN_ANNOTATIONS = "x-opt-ORIG-"
assert all(
    name.startswith(_ORIGIN_ANNOTATIONS)
    for name in (ANNOTATED_ORIG_ADDRESS, ANNOTATED_ORIG_QUEUE, ANNOTATED_ORIG_MESSAGE_ID)
)


def is_locked(name: str, masked: frozenset[str]) -> bool:
    """`masked`: names that the person who edits may not see."""
    return name in OWN or name.startswith(BROKER_PREFIXES) or name in masked


def kept_properties(properties: Mapping[str, Typed]) -> dict[str, Typed]:
    """Those that go with the copy."""
    left_out = OWN | BROKERS_OWN | {DUPLICATE_ID}
    return {
        name: item
        for name, item in properties.items()
        if name not in left_out and not name.startswith(_ORIGIN_PREFIX)
    }


def kept_annotations(annotations: Mapping[str, Typed]) -> dict[str, Typed]:
    return {name: item for name, item in annotations.items() if not name.startswith(_ORIGIN_ANNOTATIONS)}
