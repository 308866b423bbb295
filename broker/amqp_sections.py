"""Where the sections of an encoded AMQP message are. Cheap: nothing is decoded but the descriptors."""

from collections.abc import Iterator

from broker.amqp_types import ARRAYS, COMPOUND, FIXED, VARIABLE, Malformed, read, span

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION = 0x70, 0x71, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE, FOOTER = 0x75, 0x76, 0x77, 0x78
BODY_KINDS = frozenset({DATA, SEQUENCE, VALUE})
_SYMBOLS = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}
_KNOWN = frozenset(_SYMBOLS.values())
_LENGTHS = {code: width for code, (_, width) in (VARIABLE | COMPOUND).items()} | ARRAYS


def sections(encoded: bytes) -> Iterator[tuple[int, int, int]]:
    """(descriptor code, start, end) of the content of each section. Raises Malformed; no bytes are no
    message."""
    at, size = 0, len(encoded)
    if not size:
        raise Malformed("no bytes")
    while at < size:
        if encoded[at] != 0:
            raise Malformed("a section has no descriptor")
        if encoded[at + 1 : at + 2] == b"\x53" and at + 2 < size:
            code, at = encoded[at + 2], at + 3
        else:
            code, at = _descriptor(encoded, at + 1)
        if code not in _KNOWN:
            raise Malformed(f"unknown section 0x{code:02x}")
        end = _end(encoded, at)
        yield code, at, end
        at = end


def _descriptor(encoded: bytes, at: int) -> tuple[int, int]:
    descriptor, at = read(encoded, at)
    if descriptor.type == "ulong":
        return int(descriptor.value), at
    return _SYMBOLS.get(str(descriptor.value), -1), at


def _end(encoded: bytes, at: int) -> int:
    if at >= len(encoded):
        raise Malformed("a section without content")
    code = encoded[at]
    if code in _LENGTHS:
        return span(encoded, at + 1, _LENGTHS[code])[1]
    if code in FIXED:
        end = at + 1 + FIXED[code][1]
        if end > len(encoded):
            raise Malformed("a section is cut off")
        return end
    return read(encoded, at)[1]  # a described value
