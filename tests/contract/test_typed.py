"""Typed values: their JSON form keeps every type, their digest form is unambiguous."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.typed import (
    BYTES,
    FLOATS,
    MARK,
    REPLACEMENT,
    TEXTS,
    Typed,
    canonical,
    from_json,
    head_and_tail,
    storable,
    text_of,
    to_json,
)

scalars = st.one_of(
    st.just(Typed("null", None)),
    st.booleans().map(lambda value: Typed("boolean", value)),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: Typed("long", value)),
    st.integers(0, 255).map(lambda value: Typed("ubyte", value)),
    st.floats(allow_nan=False).map(lambda value: Typed("double", value)),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(
        lambda value: Typed("string", value)
    ),
    st.binary().map(lambda value: Typed("binary", value)),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: Typed("list", tuple(items))),
        st.lists(st.tuples(scalars, inner), max_size=4).map(lambda pairs: Typed("map", tuple(pairs))),
    ),
    max_leaves=12,
)


@given(values)
def test_the_json_form_keeps_type_and_value(item: Typed) -> None:
    assert from_json(json.loads(json.dumps(to_json(item), allow_nan=False))) == item


@given(values, values)
def test_the_canonical_form_is_equal_for_equal_values_only(one: Typed, other: Typed) -> None:
    def in_order(item: Typed) -> Any:
        if item.type == "map":
            return "map", sorted((repr(in_order(key)), repr(in_order(value))) for key, value in item.value)
        if item.type == "list":
            return "list", [in_order(part) for part in item.value]
        return item.type, repr(item.value)

    assert (canonical(one) == canonical(other)) == (in_order(one) == in_order(other))


def test_every_type_of_amqp_has_its_kind_of_value() -> None:
    """OASIS AMQP 1.0, part 1, section 1.6; of the rest integers are numbers, and
    null, boolean, list, map, array and described are their own."""
    assert {"float", "double"} == FLOATS
    assert {"string", "symbol", "uuid", "char"} == TEXTS
    assert {"binary", "decimal32", "decimal64", "decimal128"} == BYTES


@pytest.mark.parametrize("kind", ["list", "array", "described"])
def test_a_value_of_values_keeps_its_kind(kind: str) -> None:
    item = Typed(kind, (Typed("int", 1), Typed("string", "a")))
    assert to_json(item) == {
        "type": kind,
        "value": [{"type": "int", "value": 1}, {"type": "string", "value": "a"}],
    }
    assert from_json(to_json(item)) == item
    assert canonical(item) == b"%s:17:int:1:1string:1:a" % kind.encode()


def test_the_form_for_digests_stays_what_keys_were_made_of() -> None:
    pairs = (Typed("string", "b"), Typed("double", 0.5)), (Typed("string", "a"), Typed("binary", b"\x00"))
    mixed = Typed("map", pairs)
    assert canonical(mixed) == canonical(Typed("map", pairs[::-1]))
    assert canonical(mixed) == b"map:60:string:1:abinary:1:\x00string:1:bdouble:20:0x1.0000000000000p-1"
    assert canonical(Typed("string", "\ud800")) == b"string:3:\xed\xa0\x80"
    assert canonical(Typed("null", None)) == b"null:4:None"


def test_what_json_has_no_number_for_is_text() -> None:
    assert to_json(Typed("double", math.inf)) == {"type": "double", "value": "inf"}
    assert to_json(Typed("double", 0.5)) == {"type": "double", "value": 0.5}
    assert math.isnan(from_json(to_json(Typed("float", math.nan))).value)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Typed("boolean", True), "true"),
        (Typed("boolean", False), "false"),
        (Typed("long", -7), "-7"),
        (
            Typed("map", ((Typed("string", "ж"), Typed("null", None)),)),
            '[[{"type": "string", "value": "ж"}, {"type": "null", "value": null}]]',
        ),
        (Typed("array", ()), "[]"),
        (Typed("described", (Typed("ulong", 1),)), '[{"type": "ulong", "value": 1}]'),
        (Typed("binary", b"\x00\xff"), "0x00ff"),
        (Typed("null", None), ""),
        (Typed("list", (Typed("int", 1),)), '[{"type": "int", "value": 1}]'),
        (Typed("string", "a\0b"), "a␀b"),
    ],
)
def test_a_value_has_a_short_text_for_people(item: Typed, text: str) -> None:
    assert text_of(item) == text


@given(st.text(st.characters()))
def test_storable_text_is_what_every_store_takes(text: str) -> None:
    kept = storable(text)

    kept.encode("utf-8")
    assert "\0" not in kept
    assert storable(kept) == kept


@pytest.mark.parametrize("kind", ["string", "symbol", "char"])
def test_a_text_in_json_is_storable_and_its_digest_is_of_what_was_sent(kind: str) -> None:
    assert to_json(Typed(kind, "\0")) == {"type": kind, "value": "␀"}
    assert canonical(Typed(kind, "\0")) == b"%s:1:\0" % kind.encode()


def test_a_broken_surrogate_is_marked() -> None:
    assert storable("a\ud800b") == f"a{REPLACEMENT}b"


@given(st.text(max_size=400), st.integers(3, 100))
def test_a_long_text_keeps_its_head_and_its_tail(text: str, limit: int) -> None:
    kept = head_and_tail(text, limit)

    head, tail, left_out = limit // 3, limit - limit // 3, len(text) - limit
    whole = f"{text[:head]}\n… {left_out} characters omitted …\n{text[-tail:]}"
    assert kept == (text if left_out <= 0 else whole)


def test_the_mark_of_what_was_left_out_has_its_room() -> None:
    assert len(head_and_tail("x" * 10_000_000, 99)) <= 99 + MARK == 199
