"""Every AMQP type both ways, hostile bytes, and the natural view of a child process."""

import math
import struct
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.codec import decode, encode
from broker.amqp.python_values import decode_natural
from broker.port import BodyKind, Message, MessageUndecodable
from contract.typed import Typed, from_json, to_json
from tests.broker.messages import NESTED, SCALARS, VALUES, everything, named


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.type)
def test_a_value_of_every_type_survives(value: Typed) -> None:
    assert decode(encode(Message(body=value))).body == value
    if "\0" not in repr(value.value) and "\\x00" not in repr(value.value):  # JSON replaces NUL
        assert from_json(to_json(value)) == value


def test_every_field_survives() -> None:
    for kind, body in (
        (BodyKind.VALUE, Typed("string", "x")),
        (BodyKind.DATA, Typed("binary", b"\x00\xff")),
        (BodyKind.SEQUENCE, Typed("list", NESTED)),
    ):
        message = replace(everything(body, kind), ttl_ms=5, delivery_count=3)
        assert decode(encode(message)) == message


def test_nan_keeps_being_nan() -> None:
    for kind in ("float", "double"):
        assert math.isnan(decode(encode(Message(body=Typed(kind, math.nan)))).body.value)


def test_the_smallest_message_has_the_defaults_of_amqp() -> None:
    message = decode(b"\x00\x53\x77\x40")
    assert message == Message(durable=False)
    assert decode_natural(b"\x00\x53\x77\x40").body is None


def test_a_client_library_understands_what_is_encoded() -> None:
    message: Any = proton.Message()
    message.decode(encode(everything(Typed("list", SCALARS))))
    assert message.id == UUID("39c33909-fe22-4ad2-b188-e0a9d48305b8")
    assert (message.address, message.priority, message.durable) == ("an.address", 9, True)
    assert message.properties["p7-uint"] == 4294967295
    assert len(message.body) == len(SCALARS)
    message.decode(encode(Message(body=Typed("list", NESTED))))
    assert len(message.body) == len(NESTED)


def test_what_a_client_library_encodes_is_understood() -> None:
    body = {"a": [1, 2.5, None, True], proton.symbol("s"): proton.timestamp(5), "u": UUID(int=7)}
    sent = proton.Message(
        body=body, id=7, durable=True, properties={"c": proton.char("ж"), "b": proton.byte(-1)}
    )
    seen = decode_natural(bytes(sent.encode()))
    assert seen.body == {
        "a": [1, 2.5, None, True],
        "s": datetime(1970, 1, 1, 0, 0, 0, 5000, UTC),
        "u": UUID(int=7),
    }
    assert (seen.message_id, seen.properties) == ("7", {"c": "ж", "b": -1})
    assert decode(bytes(sent.encode())).message_id == Typed("ulong", 7)


def test_when_it_was_sent_is_known_where_the_producer_says_it() -> None:
    def sent_ms(encoded: bytes) -> int | None:
        return decode_natural(encoded).sent_ms

    for milliseconds in (1, 1_700_000_000_123, 1_700_000_000_064, 2**62):
        fields = b"\xa1\x02ab" + b"\x40" * 8 + b"\x83" + milliseconds.to_bytes(8, "big")
        for more in (b"", b"\x40\xa1\x01g\x43"):
            short = fields + more
            count = 10 + (3 if more else 0)
            body = b"\x00\x53\x77\x40"
            assert (
                sent_ms(b"\x00\x53\x73\xc0" + bytes([len(short) + 1, count]) + short + body) == milliseconds
            )
            assert (
                sent_ms(b"\x00\x53\x73\xd0" + struct.pack(">II", len(short) + 4, count) + short + body)
                == milliseconds
            )
    by_proton = proton.Message(body="x", id="ID:1", creation_time=1_700_000_000.5, expiry_time=1.0)
    assert sent_ms(bytes(by_proton.encode())) == 1_700_000_000_500
    for without in (proton.Message(body="x", id="ID:1"), proton.Message(body="x", expiry_time=5.0)):
        assert sent_ms(bytes(without.encode())) is None
    assert sent_ms(b"\x00\x53\x73\x45\x00\x53\x77\x40") is None
    for broken in (b"\xc0\x05\x01\x83\x00\x00\x00", b"\xc0\x00\x00", b"\x40", b"\xc0\x02\x02\x40"):
        with pytest.raises(MessageUndecodable):
            sent_ms(b"\x00\x53\x73" + broken)


def test_descriptors_may_be_symbols_and_sections_may_come_in_parts() -> None:
    symbol = b"\x00\xa3\x10amqp:data:binary"
    encoded = symbol + b"\xa0\x02ab" + b"\x00\x80" + struct.pack(">Q", 0x75) + b"\xb0\x00\x00\x00\x01c"
    assert decode(encoded).body == Typed("binary", b"abc")
    assert decode_natural(encoded).body == b"abc"
    lists = b"\x00\x53\x76\xc0\x03\x01\x54\x07" * 2
    assert decode(lists).body == Typed("list", (Typed("int", 7), Typed("int", 7)))
    assert decode_natural(lists).body == [7, 7]


def test_the_natural_view_has_python_values() -> None:
    values = (
        (Typed("decimal32", bytes.fromhex("32800007")), Decimal(7)),
        (Typed("decimal64", bytes.fromhex("b1a0000000000019")), Decimal("-2.5")),
        (Typed("decimal128", bytes.fromhex("303e000000000000000000000000007b")), Decimal("12.3")),
        (Typed("decimal32", bytes.fromhex("78000000")), Decimal("Infinity")),
        (Typed("timestamp", 1_700_000_000_123), datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)),
        (Typed("timestamp", 2**62), 2**62),
        (Typed("uuid", "39c33909-fe22-4ad2-b188-e0a9d48305b8"), UUID("39c33909-fe22-4ad2-b188-e0a9d48305b8")),
        (Typed("char", "Ж"), "Ж"),
        (Typed("described", (Typed("symbol", "x"), Typed("int", 1))), 1),
        (Typed("array", (Typed("int", 1), Typed("int", 2))), [1, 2]),
        (Typed("map", ((Typed("list", ()), Typed("int", 1)),)), {"[]": 1}),
    )
    for typed, natural in values:
        assert decode_natural(encode(Message(body=typed))).body == natural
    seen = decode_natural(encode(replace(everything(Typed("null", None)), delivery_count=2)))
    assert (seen.delivery_count, seen.subject, seen.reply_to) == (2, "a kind", "a.reply")
    assert (seen.message_id, seen.correlation_id) == ("39c33909-fe22-4ad2-b188-e0a9d48305b8", "0x0001")


def test_bodies_of_nothing_and_of_20_mb() -> None:
    for size in (0, 20_000_000):
        message = Message(body=Typed("binary", b"x" * size), body_kind=BodyKind.DATA)
        encoded = encode(message)
        assert decode(encoded).body == message.body
        assert len(decode_natural(encoded).body) == size
        text = Message(body=Typed("string", "x" * size))
        assert decode_natural(encode(text)).body == text.body.value


@pytest.mark.parametrize(
    "text", ["\0", "a\0b", "\ud83d", "\ud83d x \udc80", "\udcff", "ж\udc80\ud800", "\ud83d\ude00"]
)
def test_odd_texts_survive(text: str) -> None:
    encoded = encode(Message(body=Typed("string", text), properties={text: Typed("symbol", text)}))
    message = decode(encoded)
    again = decode(encode(message))
    assert again == message
    if text != "\ud83d\ude00":  # two halves of one character become it
        assert message.body.value == text
    assert decode_natural(encoded).body == message.body.value


def test_text_that_is_no_utf_8_keeps_its_bytes() -> None:
    encoded = b"\x00\x53\x77\xa1\x04a\xff\xfeb"
    assert encode(decode(encoded)).endswith(encoded)


BROKEN = {
    "nothing": b"",
    "no section": b"hello",
    "unknown section": b"\x00\x53\x79\x40",
    "cut off": b"\x00\x53\x77\xa1\x05ab",
    "no content": b"\x00\x53\x77",
    "a length beyond the end": b"\x00\x53\x77\xb1\x7f\xff\xff\xffab",
    "an unknown format code": b"\x00\x53\x77\x3f",
    "a map with an odd count": b"\x00\x53\x77\xc1\x02\x01\x40",
    "a list longer than it says": b"\x00\x53\x77\xc0\x02\x09\x40",
    "a header that is a map": b"\x00\x53\x70\xc1\x01\x00\x00\x53\x77\x40",
    "properties that are text": b"\x00\x53\x73\xa1\x01a\x00\x53\x77\x40",
    "two values": b"\x00\x53\x77\x40\x00\x53\x77\x40",
    "data and a value": b"\x00\x53\x75\xa0\x00\x00\x53\x77\x40",
    "data that is text": b"\x00\x53\x75\xa1\x01a",
    "an array of a billion nothings": b"\x00\x53\x77\xf0\x00\x00\x00\x05\x3f\xff\xff\xff\x40",
    "a bottomless list": b"\x00\x53\x77"
    + b"\xc0\xff\x01" * 80
    + b"\xd0\x00\x00\x40\x00\x00\x00\x00\x01" * 2000,
    "a character that is none": b"\x00\x53\x77\x73\xff\xff\xff\xff",
}


@pytest.mark.parametrize("encoded", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_message_is_undecodable_both_ways(encoded: bytes) -> None:
    for read in (decode, decode_natural):
        with pytest.raises(MessageUndecodable):
            read(encoded)


def test_deep_nesting_is_undecodable_and_no_crash() -> None:
    value = b"\x45"
    for _ in range(5000):
        value = b"\xd0" + (len(value) + 4).to_bytes(4, "big") + b"\x00\x00\x00\x01" + value
    for read in (decode, decode_natural):
        with pytest.raises(MessageUndecodable):
            read(b"\x00\x53\x77" + value)


@pytest.mark.parametrize("kind", ["list", "array", "described"])
def test_what_could_not_be_read_again_for_its_depth_is_not_encoded(kind: str) -> None:
    def nested(depth: int) -> Message:
        value = Typed("list", ())
        for _ in range(depth):
            value = Typed(kind, (Typed("symbol", "d"), value) if kind == "described" else (value,))
        return Message(body=value)

    assert decode(encode(nested(90))) == nested(90)
    for depth in (101, 200, 300):
        with pytest.raises(ValueError):
            encode(nested(depth))


@pytest.mark.parametrize(
    "value",
    [
        Typed("ubyte", 256),
        Typed("int", "7"),
        Typed("uuid", "no"),
        Typed("char", "ab"),
        Typed("decimal32", b"123"),
        Typed("string", 7),
        Typed("nothing", None),
        Typed("array", (Typed("int", 1), Typed("long", 1))),
    ],
)
def test_a_value_that_is_none_of_its_type_is_not_encoded(value: Typed) -> None:
    with pytest.raises(ValueError):
        encode(Message(body=value))


def test_a_body_of_another_type_than_its_section_is_not_encoded() -> None:
    with pytest.raises(ValueError):
        encode(Message(body=Typed("string", "x"), body_kind=BodyKind.DATA))


leaves = st.one_of(
    st.builds(Typed, st.just("boolean"), st.booleans()),
    st.builds(Typed, st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Typed, st.just("uint"), st.integers(0, 2**32 - 1)),
    st.builds(Typed, st.just("double"), st.floats(allow_nan=False)),
    st.builds(Typed, st.just("string"), st.text()),
    st.builds(Typed, st.just("symbol"), st.text(st.characters(max_codepoint=127))),
    st.builds(Typed, st.just("binary"), st.binary()),
    st.builds(Typed, st.just("timestamp"), st.integers(-(2**63), 2**63 - 1)),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Typed, st.just("list"), st.lists(inner, max_size=4).map(tuple)),
        st.builds(Typed, st.just("map"), st.lists(st.tuples(leaves, inner), max_size=3).map(tuple)),
        st.builds(Typed, st.just("described"), st.tuples(leaves, inner)),
    ),
    max_leaves=12,
)


@given(trees, st.dictionaries(st.text(max_size=8), leaves, max_size=4))
def test_any_message_survives(body: Typed, properties: dict[str, Typed]) -> None:
    message = Message(body=body, properties=properties)
    encoded = encode(message)
    assert decode(encoded) == message
    decode_natural(encoded)


@given(st.data())
def test_damaged_bytes_are_read_or_undecodable_and_nothing_else(data: st.DataObject) -> None:
    encoded = bytearray(encode(everything(Typed("list", NESTED))))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(encoded[: data.draw(st.integers(0, len(encoded)))])
    outcomes = []
    for read in (decode, decode_natural):
        try:
            read(damaged)
            outcomes.append(True)
        except MessageUndecodable:
            outcomes.append(False)
    assert outcomes[0] == outcomes[1]


@pytest.mark.process
def test_a_child_process_decodes_without_the_client_library() -> None:
    code = (
        "import sys; from broker.amqp import codec, python_values;"
        "python_values.decode_natural(b'\\x00\\x53\\x77\\x40');"
        "sys.exit(any(name.split('.')[0] in ('proton', 'cproton', 'stomp') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_properties_of_every_type_have_a_json_form() -> None:
    for value in named(VALUES).values():
        assert to_json(value)["type"] == value.type
