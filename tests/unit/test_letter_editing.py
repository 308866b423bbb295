"""Editing one letter: what changes, what stays, what is refused; the copy; the diff that people see."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from broker.amqp.codec import decode, encode
from broker.port import BodyKind, Message
from contract.message_key import message_key
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.edit.rules.body_text import Form, form_of
from dlq.edit.rules.changes import Changes, changes_of
from dlq.edit.rules.copy import copy_for, edited, message_of
from dlq.edit.rules.diff import changes_between, unified
from dlq.edit.rules.values import TYPES, EditRefused, typed_value, written
from dlq.models import DeadLetter

NOW = datetime(2026, 3, 1, tzinfo=UTC)
EDIT = UUID("12345678-1234-5678-1234-567812345678")
NONE: frozenset[str] = frozenset()
ORDER = Message(
    body=Typed("string", '{"order": 7,\n "sum": 1.10}'),
    properties={
        "region": Typed("string", "north"), "tries": Typed("short", 3), "card": Typed("string", "4111"),
        "_AMQ_ORIG_QUEUE": Typed("string", "orders"), "_AMQ_ORIG_ADDRESS": Typed("string", "t.orders"),
        "_AMQ_ORIG_MESSAGE_ID": Typed("long", 12), "_AMQ_GROUP_ID": Typed("string", "g"),
        "JMSXDeliveryCount": Typed("null", None), "content-length": Typed("string", "27"),
    },
    annotations={"x-opt-jms-msg-type": Typed("byte", 5), "x-opt-ORIG-MESSAGE-ID": Typed("long", 12)},
    message_id=Typed("uuid", str(EDIT)), correlation_id=Typed("ulong", 9), reply_to="answers", priority=7,
    content_type="application/json", group_id="g", created_at=NOW, durable=True, delivery_count=4,
    subject="s",
)  # fmt: skip


def letter(message: Message = ORDER, **fields: Any) -> DeadLetter:
    row = letter_row(encode(message), "node", NOW)
    row.queue = "DLQ.orders"
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def refused(message: Message, changes: Changes, masked: frozenset[str] = NONE, **options: Any) -> str:
    with pytest.raises(EditRefused) as caught:
        edited(message, changes, masked, **options)
    return caught.value.code


def text(body: str, **fields: Any) -> Message:
    return replace(ORDER, body=Typed("string", body), **fields)


def test_what_was_not_named_stays_as_it_was() -> None:
    after = edited(
        ORDER, Changes(text='{"order": 8}', put={"tries": Typed("int", 4)}, removed=("region",)), NONE
    )
    assert after.body == Typed("string", '{"order": 8}') and after.properties["tries"] == Typed("int", 4)
    kept = {name: item for name, item in ORDER.properties.items() if name not in ("tries", "region")}
    assert {**kept, "tries": Typed("int", 4)} == after.properties
    assert replace(after, body=ORDER.body, properties=ORDER.properties) == ORDER


@pytest.mark.parametrize("name", ["_AMQ_ORIG_QUEUE", "JMSXGroupID", "ma_letter", "ma_letter_id", "card"])
def test_locked_properties_are_neither_set_nor_removed(name: str) -> None:
    masked = frozenset({"card"})
    assert refused(ORDER, Changes(put={name: Typed("string", "x")}), masked) == "locked"
    assert refused(ORDER, Changes(removed=(name,)), masked) == "locked"


def test_a_masked_property_stays_for_who_may_not_see_it_and_changes_for_who_may() -> None:
    other = Changes(put={"region": Typed("string", "south")})
    assert edited(ORDER, other, frozenset({"card"})).properties["card"] == Typed("string", "4111")
    change = Changes(put={"card": Typed("string", "5500")})
    assert edited(ORDER, change, NONE).properties["card"] == Typed("string", "5500")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('{"a": 1}', '{"a": }', "no_json"), ('{"a": 1}', '{"a": NaN}', "no_json"), ('{"a": 1}', "hello",
        "no_json"),
        ("[1]", "[" * 5000, "no_json"), ("<a><b/></a>", "<a><b></a>", "no_xml"), ("<a/>", "plain", "no_xml"),
        ("<a/>", '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "no_xml"), ("<a/>", "<a>" * 300 + "</a>" * 300,
        "no_xml"),
        ("plain", "\ud800", "bad_text"), ("plain", "x" * 1_100_000, "too_large"),
    ],
)  # fmt: skip
def test_a_body_stays_of_its_form(old: str, new: str, code: str) -> None:
    assert refused(text(old), Changes(text=new), NONE) == code


def test_unless_the_person_says_otherwise() -> None:
    assert edited(text('{"a": 1}'), Changes(text="hello", other_form=True), NONE).body.value == "hello"
    assert edited(text("hello"), Changes(text='{"a": 1}'), NONE).body.value == '{"a": 1}'


def test_line_ends_of_a_form_are_those_of_the_body() -> None:
    assert edited(text("a\nb"), Changes(text="a\r\nb"), NONE).body.value == "a\nb"
    assert edited(text("a\nb"), Changes(text="a\r\nc"), NONE).body.value == "a\nc"
    assert edited(text("a\r\nb"), Changes(text="a\r\nc"), NONE).body.value == "a\r\nc"
    assert edited(text("a\rb\nc"), Changes(text="a\rb\nc"), NONE).body.value == "a\rb\nc"


def test_bytes_stay_bytes_and_are_edited_as_text_only_where_they_are_text() -> None:
    utf8 = replace(ORDER, body=Typed("binary", "Привет".encode()), body_kind=BodyKind.DATA)
    after = edited(utf8, Changes(text="Пока"), NONE)
    assert (after.body, after.body_kind) == (Typed("binary", "Пока".encode()), BodyKind.DATA)
    raw = replace(utf8, body=Typed("binary", b"\0\xff"))
    assert refused(raw, Changes(text="x"), NONE) == "body_fixed"
    assert edited(raw, Changes(content=b"\1\xff"), NONE).body == Typed("binary", b"\1\xff")
    json_bytes = replace(utf8, body=Typed("binary", b'{"a": 1}'))
    assert refused(json_bytes, Changes(content=b"{"), NONE) == "no_json"
    assert refused(json_bytes, Changes(content=b"\xff"), NONE) == "no_text"
    assert edited(json_bytes, Changes(content=b"\xff", other_form=True), NONE).body.value == b"\xff"


@pytest.mark.parametrize(
    "body", [Typed("map", ()), Typed("list", (Typed("int", 1),)), Typed("int", 7), Typed("null", None)]
)
def test_of_other_bodies_only_properties_change(body: Typed) -> None:
    message = replace(ORDER, body=body)
    assert refused(message, Changes(text="x"), NONE) == "body_fixed"
    assert form_of(message) is Form.FIXED
    assert edited(message, Changes(removed=("region",)), NONE).body == body


def test_a_body_with_hidden_fields_is_not_edited() -> None:
    assert refused(ORDER, Changes(text="{}"), NONE, body_hidden=True) == "body_masked"


def test_the_copy_goes_on_with_the_case_and_says_nothing_of_the_death() -> None:
    row = letter()
    after = edited(ORDER, Changes(text='{"order": 8}'), NONE)
    copy = decode(encode(copy_for(row, ORDER, after, EDIT, NOW)))
    assert set(copy.properties) == {
        "region", "tries", "card", "_AMQ_GROUP_ID", "ma_letter", "ma_letter_queue", "ma_letter_id",
        "_AMQ_DUPL_ID",
    }  # fmt: skip
    assert copy.annotations == {"x-opt-jms-msg-type": Typed("byte", 5)}
    assert message_key(copy.message_id, copy.body_section, copy.properties).text == row.message_key
    assert copy.properties["ma_letter_id"].value == row.orig_message_id + 1 == 13
    assert copy.properties["_AMQ_DUPL_ID"].value == str(EDIT) and copy.delivery_count == 0
    same = replace(
        copy, body=ORDER.body, properties=ORDER.properties, annotations=ORDER.annotations, delivery_count=4
    )
    assert same == ORDER, "ids, priority, reply-to, times and types stay"


def test_the_copy_stays_in_the_trace_of_its_producer() -> None:
    trace = {
        "traceparent": Typed("string", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        "tracestate": Typed("string", "vendor=1"),
    }
    message = replace(ORDER, properties={**ORDER.properties, **trace})
    after = edited(message, Changes(text='{"order": 8}'), NONE)
    copy = decode(encode(copy_for(letter(message), message, after, EDIT, NOW)))
    assert {name: copy.properties[name] for name in trace} == trace


def test_a_weak_key_stays_the_key_of_the_case() -> None:
    message = replace(ORDER, message_id=None)
    row = letter(message)
    after = edited(message, Changes(text='{"order": 8}'), NONE)
    copy = copy_for(row, message, after, EDIT, NOW)
    key = message_key(copy.message_id, copy.body_section, copy.properties)
    assert (key.text, key.weak) == (row.message_key, True)


def test_an_expiry_that_is_over_does_not_delete_the_copy() -> None:
    for expiry, kept in ((NOW - timedelta(1), None), (NOW + timedelta(1), NOW + timedelta(1))):
        message = replace(ORDER, expires_at=expiry)
        assert copy_for(letter(message), message, message, EDIT, NOW).expires_at == kept


def test_what_cannot_be_edited_says_why() -> None:
    for row, code in (
        (letter(truncated=True), "truncated"),
        (letter(encoded=b"\0\1"), "no_message"),
        (letter(orig_message_id=-5), "no_id"),
    ):
        with pytest.raises(EditRefused) as caught:
            message_of(row)
        assert caught.value.code == code


# -- values and their JSON form ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("byte", "128"), ("ubyte", "-1"), ("short", "32768"), ("int", "2147483648"), ("long",
        "9223372036854775808"),
        ("ulong", "-1"), ("int", "1.0"), ("int", "٣"), ("boolean", "yes"), ("char", "ab"), ("uuid", "x"),
        ("binary", "0xz"), ("null", "x"), ("double", "one"), ("float", "1e39"), ("timestamp",
        "2026-03-01T00:00:00"),
        ("map", "{}"), ("", ""), ("symbol", "é"), ("string", "\ud800"), ("uint", ""),
    ],
)  # fmt: skip
def test_values_that_are_none_of_their_type_are_refused(kind: str, value: str) -> None:
    with pytest.raises(EditRefused):
        typed_value(kind, value, "p")


@pytest.mark.parametrize(
    "item",
    [
        Typed("string", " x "), Typed("string", ""), Typed("boolean", False), Typed("byte", -128),
        Typed("ulong", 2**64 - 1),
        Typed("double", 0.1), Typed("double", float("inf")), Typed("float", 0.5), Typed("binary", b"\0\xff"),
        Typed("timestamp", 1_700_000_000_123), Typed("timestamp", 2**62), Typed("char", "ы"), Typed("uuid",
        str(EDIT)),
        Typed("null", None), Typed("symbol", "s"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_form_shows_comes_back_as_it_was(item: Typed) -> None:
    assert item.type in TYPES and typed_value(item.type, written(item), "p") == item


def test_changes_come_through_json_as_they_were() -> None:
    changes = Changes('{"a": 1}\n', None, True, {"n": Typed("long", 7), "d": Typed("double", 0.1)}, ("x",))
    assert changes_of(changes.to_json()) == changes
    assert changes_of({"body": {"base64": "AP8="}}) == Changes(content=b"\0\xff")
    assert changes_of({"set": [{"name": "n", "type": "int", "value": 7}]}).put == {"n": Typed("int", 7)}


@pytest.mark.parametrize(
    "data",
    [
        None, [], {"body": "x"}, {"body": {"base64": "?"}}, {"set": ["x"]}, {"set": [{"name": ""}]},
        {"remove": [1]},
        {"set": [{"name": "a", "type": "int", "value": []}]}, {"set": {"a": 1}},
        {"set": [{"name": "a", "value": "b"}], "remove": ["a"]}, {"remove": ["x" * 301]},
        {"remove": ["\ud800"]},
    ],
)  # fmt: skip
def test_what_is_no_change_is_refused(data: Any) -> None:
    with pytest.raises(EditRefused):
        changes_of(data)


# -- the diff ------------------------------------------------------------------------------------------------


def test_the_diff_tells_types_and_lines() -> None:
    after = edited(
        ORDER, Changes('{"order": 8, "sum": 1.10}', put={"tries": Typed("int", 3)}, removed=("region",)), NONE
    )
    body, region, tries = changes_between(ORDER, after, NONE)
    assert body["what"] == "body" and '-  "order": 7,' in body["lines"] and '+  "order": 8,' in body["lines"]
    assert '   "sum": 1.10' in body["lines"]
    assert region == {"what": "region", "before": "north (string)", "after": None}
    assert tries == {"what": "tries", "before": "3 (short)", "after": "3 (int)"}


def test_masked_values_are_in_no_diff() -> None:
    before = text('{"card": "4111-1111", "deep": [{"card": {"n": "4222"}}], "sum": 1}')
    after = edited(
        before,
        Changes('{"card": "5500", "deep": [{"card": 5511}], "sum": 2}', put={"card": Typed("int", 5522)}),
        NONE,
    )
    told = str(changes_between(before, after, frozenset({"card"})))
    assert "41" not in told and "42" not in told and "55" not in told and '+  "sum": 2' in told


def test_a_diff_is_bounded_and_shows_a_change_at_the_end_of_a_long_line() -> None:
    lines = unified("\n".join(map(str, range(50_000))), "\n".join(map(str, range(7, 90_000))))
    assert len(lines) < 500 and "lines not shown" in lines[-1]
    assert unified("x" * 10_000, "x" * 9_999 + "y")[-1].startswith("+") and len(unified("a", "a\n" * 9)) < 15
    many = replace(ORDER, properties={f"p{n}": Typed("int", n) for n in range(3000)})
    assert len(changes_between(ORDER, many, NONE)) == 201
