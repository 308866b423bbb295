"""AMQP 1.0 values on the wire <-> `Typed` (OASIS AMQP 1.0 part 1, sections 1.2 and 1.6).

Written out in Python because the client library's codec loses what this product must keep: it cuts properties
at NUL, joins and guesses sections, and needs a library in every child process that a table of 40 lines
replaces.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from contract.typed import Typed

# Hostile bytes end in an error, not in a deep stack or a huge list: depth of nesting, and the number of
# elements of an array whose elements take no bytes (the only place where a count is not bounded by the bytes
# that are there).
DEEPEST = 100
MOST_EMPTY_ELEMENTS = 65536

Unpack = Callable[[bytes, int], Any]


def _fixed(form: str) -> tuple[int, Unpack]:
    packed = struct.Struct(form)
    return packed.size, lambda data, at: packed.unpack_from(data, at)[0]


def _raw(size: int) -> tuple[int, Unpack]:
    return size, lambda data, at: data[at : at + size]


def _constant(value: Any) -> tuple[int, Unpack]:
    return 0, lambda data, at: value


# Format code -> (type, bytes, how to read them). Codes of variable width are in the tables below.
FIXED: dict[int, tuple[str, int, Unpack]] = {
    0x40: ("null", *_constant(None)),
    0x41: ("boolean", *_constant(True)),
    0x42: ("boolean", *_constant(False)),
    0x56: ("boolean", 1, lambda data, at: data[at] != 0),
    0x50: ("ubyte", *_fixed(">B")),
    0x60: ("ushort", *_fixed(">H")),
    0x70: ("uint", *_fixed(">I")),
    0x52: ("uint", *_fixed(">B")),
    0x43: ("uint", *_constant(0)),
    0x80: ("ulong", *_fixed(">Q")),
    0x53: ("ulong", *_fixed(">B")),
    0x44: ("ulong", *_constant(0)),
    0x51: ("byte", *_fixed(">b")),
    0x61: ("short", *_fixed(">h")),
    0x71: ("int", *_fixed(">i")),
    0x54: ("int", *_fixed(">b")),
    0x81: ("long", *_fixed(">q")),
    0x55: ("long", *_fixed(">b")),
    0x72: ("float", *_fixed(">f")),
    0x82: ("double", *_fixed(">d")),
    0x74: ("decimal32", *_raw(4)),
    0x84: ("decimal64", *_raw(8)),
    0x94: ("decimal128", *_raw(16)),
    0x73: ("char", 4, lambda data, at: chr(int.from_bytes(data[at : at + 4], "big"))),
    0x83: ("timestamp", *_fixed(">q")),
    0x98: ("uuid", 16, lambda data, at: str(UUID(bytes=data[at : at + 16]))),
    0x45: ("list", *_constant(())),
}
_CONSTANT = {code: Typed(kind, unpack(b"", 0)) for code, (kind, size, unpack) in FIXED.items() if not size}
# Format code -> (type, width of the length in front).
VARIABLE = {
    0xA0: ("binary", 1),
    0xB0: ("binary", 4),
    0xA1: ("string", 1),
    0xB1: ("string", 4),
    0xA3: ("symbol", 1),
    0xB3: ("symbol", 4),
}
COMPOUND = {0xC0: ("list", 1), 0xD0: ("list", 4), 0xC1: ("map", 1), 0xD1: ("map", 4)}
ARRAYS = {0xE0: 1, 0xF0: 4}


class Malformed(Exception):
    """The bytes are no AMQP value."""


def text(data: bytes) -> str:
    """Text that need not be good UTF-8: lone surrogates stay such, other bad bytes become escaped ones."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def raw_text(value: str) -> bytes:
    """The bytes that `text` reads as `value`."""
    try:
        return value.encode()
    except UnicodeEncodeError:
        pass
    try:
        escaped = value.encode("utf-8", "surrogateescape")
        if text(escaped) == value:
            return escaped
    except UnicodeEncodeError:
        pass
    return value.encode("utf-8", "surrogatepass")


def span(data: bytes, at: int, width: int) -> tuple[int, int]:
    """(start, end) of the content whose length of `width` bytes is at `at`; refuses one that leaves
    `data`."""
    start = at + width
    end = start + int.from_bytes(data[at:start], "big")
    if end > len(data) or start > len(data):
        raise Malformed("a length goes beyond the end")
    return start, end


def read(data: bytes, at: int = 0, depth: int = 0) -> tuple[Typed, int]:
    """The value at `at` and where the next one begins. Raises Malformed."""
    if at >= len(data):
        raise Malformed("a value is missing")
    code = data[at]
    # Short texts and the frequent constants first: most of a message is made of them.
    if code == 0xA1 or code == 0xA3:
        end = at + 2 + data[at + 1] if at + 1 < len(data) else len(data) + 1
        if end > len(data):
            raise Malformed("a length goes beyond the end")
        return Typed("string" if code == 0xA1 else "symbol", text(data[at + 2 : end])), end
    if code in _CONSTANT:
        return _CONSTANT[code], at + 1
    if code == 0:
        descriptor, at = read(data, at + 1, _deeper(depth))
        value, at = read(data, at, _deeper(depth))
        return Typed("described", (descriptor, value)), at
    return _read_content(code, data, at + 1, depth)


def _deeper(depth: int) -> int:
    if depth >= DEEPEST:
        raise Malformed(f"nested deeper than {DEEPEST}")
    return depth + 1


def _read_content(code: int, data: bytes, at: int, depth: int) -> tuple[Typed, int]:
    if code in FIXED:
        kind, size, unpack = FIXED[code]
        if at + size > len(data):
            raise Malformed(f"{kind} is cut off")
        return Typed(kind, _guarded(unpack, data, at)), at + size
    if code in VARIABLE:
        kind, width = VARIABLE[code]
        start, end = span(data, at, width)
        return Typed(kind, data[start:end] if kind == "binary" else text(data[start:end])), end
    if code in COMPOUND:
        return _read_compound(*COMPOUND[code], data, at, _deeper(depth))
    if code in ARRAYS:
        return _read_array(ARRAYS[code], data, at, _deeper(depth))
    raise Malformed(f"unknown format code 0x{code:02x}")


def _guarded(unpack: Unpack, data: bytes, at: int) -> Any:
    try:
        return unpack(data, at)
    except (ValueError, OverflowError) as error:
        raise Malformed(str(error)) from error


def _read_compound(kind: str, width: int, data: bytes, at: int, depth: int) -> tuple[Typed, int]:
    start, end = span(data, at, width)
    count, at = _count(data, start, end, width)
    parts = []
    for _ in range(count):
        part, at = read(data, at, depth)
        if at > end:
            raise Malformed(f"{kind} is longer than declared")
        parts.append(part)
    if kind == "list":
        return Typed(kind, tuple(parts)), end
    if count % 2:
        raise Malformed("map with a key without a value")
    return Typed(kind, tuple(zip(parts[::2], parts[1::2], strict=True))), end


def _count(data: bytes, start: int, end: int, width: int) -> tuple[int, int]:
    if start + width > end:
        raise Malformed("a count is missing")
    return int.from_bytes(data[start : start + width], "big"), start + width


def _read_array(width: int, data: bytes, at: int, depth: int) -> tuple[Typed, int]:
    start, end = span(data, at, width)
    count, at = _count(data, start, end, width)
    if at >= end:
        raise Malformed("array without a constructor")
    descriptor: Typed | None = None
    if data[at] == 0:
        descriptor, at = read(data, at + 1, depth)
        if at >= end:
            raise Malformed("array without a constructor")
    code = data[at]
    if code in FIXED and FIXED[code][1] == 0 and count > MOST_EMPTY_ELEMENTS:
        raise Malformed("array of too many empty elements")
    elements, at = [], at + 1
    for _ in range(count):
        element, at = _read_content(code, data, at, depth)
        if at > end:
            raise Malformed("array is longer than declared")
        elements.append(element if descriptor is None else Typed("described", (descriptor, element)))
    return Typed("array", tuple(elements)), end


# -- writing -------------------------------------------------------------------------------------------------

_PACK = {
    "ubyte": (0x50, struct.Struct(">B").pack),
    "ushort": (0x60, struct.Struct(">H").pack),
    "uint": (0x70, struct.Struct(">I").pack),
    "ulong": (0x80, struct.Struct(">Q").pack),
    "byte": (0x51, struct.Struct(">b").pack),
    "short": (0x61, struct.Struct(">h").pack),
    "int": (0x71, struct.Struct(">i").pack),
    "long": (0x81, struct.Struct(">q").pack),
    "float": (0x72, struct.Struct(">f").pack),
    "double": (0x82, struct.Struct(">d").pack),
    "timestamp": (0x83, struct.Struct(">q").pack),
}
_SIZED = {"decimal32": (0x74, 4), "decimal64": (0x84, 8), "decimal128": (0x94, 16)}
_WIDE = {"binary": 0xB0, "string": 0xB1, "symbol": 0xB3, "list": 0xD0, "map": 0xD1, "array": 0xF0}


def write(item: Typed, depth: int = 0) -> bytes:
    """The encoding of one value. Raises ValueError when the value is none of its type or could not be read
    again."""
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST}")
    kind = item.type
    if kind in ("string", "symbol"):  # most of what there is
        return _written_text(item)
    if kind == "null":
        return b"\x40"
    if kind == "described":
        descriptor, value = item.value
        return b"\x00" + write(descriptor, depth + 1) + write(value, depth + 1)
    if kind == "boolean":
        return b"\x41" if item.value else b"\x42"
    code, content = _write_content(item, depth + 1)
    if code == 0xB0 and len(content) < 256 + 4:
        return bytes((code - 0x10, len(content) - 4)) + content[4:]
    return bytes((code,)) + content


def _written_text(item: Typed) -> bytes:
    try:
        content = raw_text(item.value)
    except (TypeError, AttributeError) as error:
        raise _none_of_its_type(item, error) from error
    code, size = _WIDE[item.type], len(content)
    return bytes((code - 0x10, size)) + content if size < 256 else bytes((code,)) + _with_length(content)


def _none_of_its_type(item: Typed, error: Exception) -> ValueError:
    return ValueError(f"{item.value!r:.80} is no {item.type}: {error}")


def _write_content(item: Typed, depth: int) -> tuple[int, bytes]:
    """The widest format code of the type, as an array's one constructor needs it, and the content."""
    kind, value = item.type, item.value
    try:
        if kind in _PACK:
            code, pack = _PACK[kind]
            return code, pack(value)
        if kind in _SIZED:
            return _sized(*_SIZED[kind], value)
        if kind in _WIDE:
            return _WIDE[kind], _with_length(_variable(kind, value, depth))
        if kind in ("null", "boolean"):
            return (0x40, b"") if kind == "null" else (0x56, b"\x01" if value else b"\x00")
        if kind == "char":
            return 0x73, ord(value).to_bytes(4, "big")
        if kind == "uuid":
            return 0x98, UUID(value).bytes
    except (struct.error, TypeError, AttributeError, OverflowError) as error:
        raise _none_of_its_type(item, error) from error
    raise ValueError(f"unknown AMQP type {kind!r}")


def _sized(code: int, size: int, value: bytes) -> tuple[int, bytes]:
    if len(value) != size:
        raise ValueError(f"a decimal of {size} bytes cannot hold {len(value)}")
    return code, bytes(value)


def _with_length(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _variable(kind: str, value: Any, depth: int) -> bytes:
    if kind == "binary":
        return bytes(value)
    if kind in ("string", "symbol"):
        return raw_text(value)
    if kind == "list":
        return _counted(value, depth)
    if kind == "map":
        return _counted([part for pair in value for part in pair], depth)
    return _array(value, depth)


def _counted(parts: Iterable[Typed], depth: int) -> bytes:
    written = [write(part, depth) for part in parts]
    return len(written).to_bytes(4, "big") + b"".join(written)


def _array(elements: tuple[Typed, ...], depth: int) -> bytes:
    descriptor, plain = b"", list(elements)
    if elements and elements[0].type == "described":
        descriptor = b"\x00" + write(elements[0].value[0])
        if any(
            element.type != "described" or element.value[0] != elements[0].value[0] for element in elements
        ):
            raise ValueError("the elements of an array share one descriptor")
        plain = [element.value[1] for element in elements]
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST}")
    contents = [_write_content(element, depth + 1) for element in plain]
    codes = {code for code, _ in contents} or {0x40}
    if len(codes) > 1:
        raise ValueError("the elements of an array share one type")
    body = b"".join(content for _, content in contents)
    return len(elements).to_bytes(4, "big") + descriptor + bytes(codes) + body
