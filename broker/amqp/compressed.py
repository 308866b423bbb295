"""Bodies that a Core client compressed (`compressLargeMessage`): two properties say so. Pure.

The broker hands an AMQP consumer only the head of such a bytes message, as many bytes as the compressed body
has. Where that is longer than the body, as of bytes that are compressed already, zeros follow it.
"""

import zlib
from collections.abc import Mapping

from contract.typed import Typed

LARGE_COMPRESSED = "_AMQ_LARGE_COMPRESSED"
LARGE_SIZE = "_AMQ_LARGE_SIZE"
# Bytes of the largest body that is inflated here: a thousandth of it is enough to ask for so much memory.
MOST_BYTES = 16 * 1024 * 1024


def declared_size(compressed: object, size: object) -> int | None:
    """How large the body is by the values of the two properties; None: it was not compressed."""
    if compressed is not True or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        return None
    return size


def missing_bytes(body: object, compressed: object, size: object) -> int:
    """How much of a body that came as bytes is missing; 0: nothing."""
    declared = declared_size(compressed, size)
    if declared is None or not isinstance(body, bytes | bytearray | memoryview):
        return 0
    return max(0, declared - len(body))


def without_padding(body: object, compressed: object, size: object) -> object:
    """A body that came as bytes, without what the broker appended to it."""
    declared = declared_size(compressed, size)
    if declared is None or not isinstance(body, bytes) or any(body[declared:]):
        return body
    return body[:declared]


def is_cut(body: object, properties: Mapping[str, Typed]) -> bool:
    """Whether a body that came as bytes is not what its sender wrote: its head only, or compressed still."""
    declared = declared_size(*_said(properties))
    return isinstance(body, bytes) and declared is not None and len(body) != declared


def inflated(body: bytes, properties: Mapping[str, Typed]) -> bytes | None:
    """The body as its sender wrote it: exactly as long as he said. None: it was not compressed, or says
    otherwise."""
    declared = declared_size(*_said(properties))
    if declared is None or declared > MOST_BYTES:
        return None
    engine = zlib.decompressobj()
    try:
        whole = engine.decompress(body, declared + 1)
    except zlib.error:
        return None
    return whole if engine.eof and not engine.unused_data and len(whole) == declared else None


def _said(properties: Mapping[str, Typed]) -> tuple[object, object]:
    items = (properties.get(name) for name in (LARGE_COMPRESSED, LARGE_SIZE))
    compressed, size = (None if item is None else item.value for item in items)
    return compressed, size
