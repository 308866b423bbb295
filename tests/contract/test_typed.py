"""Typed values: their JSON form keeps every type, their digest form is unambiguous."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.text import MARK, REPLACEMENT, head_and_tail, storable
from contract.typed import Typed, canonical, from_json, text_of, to_json

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


def test_what_json_has_no_number_for_is_text() -> None:
    assert to_json(Typed("double", math.inf)) == {"type": "double", "value": "inf"}
    assert math.isnan(from_json(to_json(Typed("float", math.nan))).value)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Typed("boolean", True), "true"),
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


def test_a_broken_surrogate_is_marked() -> None:
    assert storable("a\ud800b") == f"a{REPLACEMENT}b"


@given(st.text(max_size=400), st.integers(3, 100))
def test_a_long_text_keeps_its_head_and_its_tail(text: str, limit: int) -> None:
    kept = head_and_tail(text, limit)

    head, tail, left_out = limit // 3, limit - limit // 3, len(text) - limit
    whole = f"{text[:head]}\n… {left_out} characters left out …\n{text[-tail:]}"
    assert kept == (text if left_out <= 0 else whole)


def test_the_mark_of_what_was_left_out_has_its_room() -> None:
    assert len(head_and_tail("x" * 10_000_000, 99)) <= 99 + MARK == 199
