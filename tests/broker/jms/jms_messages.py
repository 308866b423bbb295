"""JMS messages of every kind, sent by the broker's own command line over Core and AMQP.

It makes text, bytes and object messages; map and stream messages of a Core client come by way of the broker's
management, their bodies written here in that client's encoding.
"""

import base64
import struct

from tests.broker.houses import RealHouse, Setting

PROPERTIES = (
    '[{"type":"byte","key":"b","value":"3"},{"type":"short","key":"h","value":"-3"},'
    '{"type":"int","key":"i","value":"7"},{"type":"long","key":"l","value":"9000000000"},'
    '{"type":"double","key":"d","value":"0.5"},{"type":"float","key":"f","value":"1.5"},'
    '{"type":"boolean","key":"t","value":"true"},{"type":"string","key":"s","value":"текст"}]'
)

MAP, STREAM = 5, 6


def send_core(house: RealHouse, setting: Setting, kind: int, body: bytes) -> None:
    """A Core message with that body, put on the queue by the broker's management."""
    account = house.service.publisher
    arguments = ({"s": "x"}, kind, base64.b64encode(body).decode(), True, account.user, account.password)
    house.management.call(f"queue.{setting.key}", "sendMessage", *arguments)


# -- the Core client's encoding of values: a type byte, then the value ---------------------------------------


def simple_string(text: str) -> bytes:
    data = text.encode("utf-16-le")
    return struct.pack(">i", len(data)) + data


def map_body() -> bytes:
    entries = {
        "flag": b"\x02\x01",
        "byte": b"\x03\xfd",
        "bytes": b"\x04" + struct.pack(">i", 3) + b"\x00\x01\xff",
        "short": b"\x05" + struct.pack(">h", -3),
        "int": b"\x06" + struct.pack(">i", 7),
        "long": b"\x07" + struct.pack(">q", 2**40),
        "float": b"\x08" + struct.pack(">f", 1.5),
        "double": b"\x09" + struct.pack(">d", 0.1),
        "text": b"\x0a" + simple_string("текст"),
        "char": b"\x0b" + "Ж".encode("utf-16-be"),
    }
    body = b"".join(simple_string(name) + value for name, value in entries.items())
    return b"\x01" + struct.pack(">i", len(entries)) + body


def stream_body() -> bytes:
    return b"".join(
        (
            b"\x02\x01",
            b"\x06" + struct.pack(">i", 7),
            b"\x07" + struct.pack(">q", 2**40),
            b"\x09" + struct.pack(">d", 0.1),
            b"\x0a\x01" + struct.pack(">i", 5) + "текст".encode("utf-16-be"),
        )
    )


def stream_body_of_long_texts() -> bytes:
    """Texts from 9 characters on are Java's UTF-8, and from 4095 bytes of it on UTF-16."""
    middle, long = "grüße \N{SNOWMAN} äöü", "ж" * 5000
    encoded = middle.encode()
    return b"".join(
        (
            b"\x0a\x01" + struct.pack(">i", len(middle)) + struct.pack(">H", len(encoded)) + encoded,
            b"\x0a\x01" + struct.pack(">i", len(long)) + simple_string(long),
            b"\x0a\x00",
            b"\x0b" + "Ж".encode("utf-16-be"),
        )
    )


def stream_body_with_bytes() -> bytes:
    """Legal JMS, and yet the broker cannot turn it into AMQP (2.56: a ClassCastException)."""
    return b"\x04" + struct.pack(">i", 2) + b"\x00\xff"
