"""Whatever bytes a letter is made of, a row comes of it, and its size is bounded."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.codec import decode, encode
from broker.port import BodyKind, Message
from contract.typed import Typed
from dlq.dead_letters.rules.parser import HEAD_OF_TEXT, WHOLE_BODY, letter_row
from dlq.models import DeadLetter

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CORE = {
    "_AMQ_ORIG_ADDRESS": Typed("string", "t.orders"),
    "_AMQ_ORIG_QUEUE": Typed("string", "orders"),
    "_AMQ_ORIG_MESSAGE_ID": Typed("long", 42),
}
AMQP = {
    "x-opt-ORIG-ADDRESS": Typed("string", "t.orders"),
    "x-opt-ORIG-QUEUE": Typed("string", "orders"),
    "x-opt-ORIG-MESSAGE-ID": Typed("long", 42),
    "x-opt-jms-msg-type": Typed("byte", 5),
}
LETTER = Message(body=Typed("string", "hi"), message_id=Typed("string", "ID:1"), annotations=AMQP)


def row(message: Message) -> DeadLetter:
    return letter_row(encode(message), "node", NOW)


@pytest.mark.parametrize("origin", [{"annotations": AMQP}, {"annotations": {}, "properties": CORE}])
def test_the_origin_is_found_where_the_producers_protocol_puts_it(origin: dict[str, Any]) -> None:
    read = row(replace(LETTER, **origin))
    assert (read.address, read.orig_queue, read.orig_message_id) == ("t.orders", "orders", 42)
    assert (read.setting_key, read.message_key, read.message_key_weak) == ("orders", "ID:1", False)


def test_an_undecodable_letter_keeps_its_bytes_and_is_the_same_letter_again() -> None:
    read, again = letter_row(b"\0\1garbage", "node", NOW), letter_row(b"\0\1garbage", "node", NOW)
    assert read.problem and bytes(read.encoded) == b"\0\1garbage"
    assert read.orig_message_id == again.orig_message_id < 0


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reading(encoded: bytes) -> None:
    read = letter_row(encoded, "node", NOW)
    assert -(2**63) <= read.orig_message_id < 2**63 and "\0" not in read.body_text


@pytest.mark.parametrize(
    "number", [Typed("string", "7"), Typed("ulong", 2**64 - 1), Typed("long", -3), Typed("null", None)]
)
def test_an_origin_that_is_no_id_of_a_message_is_none(number: Typed) -> None:
    assert row(replace(LETTER, annotations=AMQP | {"x-opt-ORIG-MESSAGE-ID": number})).orig_message_id < 0


@pytest.mark.parametrize(
    ("body", "kind", "text", "size"),
    [
        (Typed("string", "a\0b\ud800"), BodyKind.VALUE, "a\N{SYMBOL FOR NULL}b\N{REPLACEMENT CHARACTER}", 6),
        (Typed("binary", "Привет".encode()), BodyKind.DATA, "Привет", 12),
        (Typed("binary", b"\xff\x00"), BodyKind.DATA, "0xff00", 2),
        (Typed("null", None), BodyKind.VALUE, "", 0),
        (Typed("boolean", True), BodyKind.VALUE, "true", None),
        (Typed("list", (Typed("int", 1),)), BodyKind.SEQUENCE, '[{"type": "int", "value": 1}]', None),
    ],
)
def test_lists_show_the_head_of_every_kind_of_body(
    body: Typed, kind: BodyKind, text: str, size: int | None
) -> None:
    read = row(replace(LETTER, body=body, body_kind=kind))
    assert read.body_text == text
    assert size is None or read.size == size


def test_the_cut_of_a_long_text_goes_through_no_character() -> None:
    raw = ("x" + "ж" * HEAD_OF_TEXT).encode()
    assert row(replace(LETTER, body=Typed("binary", raw), body_kind=BodyKind.DATA)).body_text.startswith(
        "xжж"
    )


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (Typed("string", "x" * (WHOLE_BODY + 1)), BodyKind.VALUE),
        (Typed("binary", b"x" * (WHOLE_BODY + 1)), BodyKind.DATA),
        (Typed("list", (Typed("string", "x" * (WHOLE_BODY + 1)),)), BodyKind.SEQUENCE),
    ],
)
def test_a_body_above_the_bound_is_kept_as_a_decodable_head(body: Typed, kind: BodyKind) -> None:
    properties = {"n": Typed("ubyte", 7)}
    read = row(replace(LETTER, body=body, body_kind=kind, properties=properties))
    assert read.truncated and read.size > WHOLE_BODY and len(read.encoded) < 200_000
    kept = decode(bytes(read.encoded))
    assert kept.properties == properties and kept.message_id == LETTER.message_id


def test_properties_keep_their_types_in_json() -> None:
    found = row(
        replace(LETTER, properties={"n\0": Typed("ulong", 2**64 - 1), "f": Typed("double", float("nan"))})
    )
    assert found.properties == [
        {"name": "n\N{SYMBOL FOR NULL}", "type": "ulong", "value": 2**64 - 1},
        {"name": "f", "type": "double", "value": "nan"},
    ]
    assert found.jms_kind == 5


def test_a_row_is_made_as_the_model_makes_it() -> None:
    row = letter_row(encode(Message(body=Typed("string", "x"))), "node", NOW)
    fields = [field.attname for field in DeadLetter._meta.concrete_fields]
    usual = DeadLetter(**{name: getattr(row, name) for name in fields})
    assert {name: getattr(row, name) for name in fields} == {name: getattr(usual, name) for name in fields}
    assert row._state.adding and row._state.db is None and row.setting is None and not row.pk
    assert DeadLetter().state == row.state and DeadLetter().chapter == row.chapter
