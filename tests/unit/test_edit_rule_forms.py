"""Rules for many letters: their JSON form, what is refused with which word, what is told of them and what is
hidden."""

import math
from dataclasses import replace
from typing import Any

import pytest

from broker.port import Message
from contract.typed import Typed
from dlq.dead_letters.rules.json_masks import HIDDEN
from dlq.edit.rules.bulk_rule import (
    OPERATIONS,
    Applied,
    Operation,
    Rule,
    apply,
    describe_rule,
    is_hidden,
    rule_of,
)
from dlq.edit.rules.values import EditRefused
from dlq.replay.preflight.text import OPERATION_WORDS

NONE: frozenset[str] = frozenset()
CARD = frozenset({"card"})
ORDER = Message(
    body=Typed("string", '{"order": {"sum": 1.10, "card": "4111"}, "lines": [1, 2]}'),
    properties={"region": Typed("string", "north"), "card": Typed("string", "4111")},
)
SET = {"op": "set_property", "name": "n", "type": "int", "value": "7"}
REMOVE = {"op": "remove_property", "name": "n"}
SET_JSON = {"op": "set_json", "pointer": "/a/0", "json": '{"b": 1.0}'}
REMOVE_JSON = {"op": "remove_json", "pointer": "/a"}


def refusal(data: Any, locked: frozenset[str] = NONE) -> tuple[str, str]:
    with pytest.raises(EditRefused) as caught:
        rule_of(data, locked)
    return caught.value.code, caught.value.what


def test_a_rule_goes_through_json_as_it_is() -> None:
    made = rule_of([SET, REMOVE, SET_JSON, REMOVE_JSON], frozenset("zy"))
    data = made.to_json()
    assert data == {"operations": [SET, REMOVE, SET_JSON, REMOVE_JSON], "locked": ["y", "z"]}
    assert rule_of(data) == made
    assert rule_of(data, CARD).locked == frozenset({"y", "z", "card"})
    assert rule_of({"operations": [SET]}) == rule_of({"operations": [SET], "locked": None}) == rule_of([SET])
    assert rule_of([SET]).locked == Rule(()).locked == NONE
    assert rule_of({"operations": [SET], "locked": [7]}).locked == frozenset({"7"})


def test_an_operation_has_what_its_kind_needs() -> None:
    made = rule_of([SET, REMOVE, SET_JSON, REMOVE_JSON]).operations
    assert made == (
        Operation("set_property", "n", Typed("int", 7), (), "", ""),
        Operation("remove_property", "n", None, (), "", ""),
        Operation("set_json", "", None, ("a", "0"), "/a/0", '{"b": 1.0}'),
        Operation("remove_json", "", None, ("a",), "/a", ""),
    )
    assert Operation("x") == Operation("x", "", None, (), "", "")
    assert OPERATIONS == ("set_property", "remove_property", "set_json", "remove_json")
    assert tuple(OPERATION_WORDS) == OPERATIONS
    assert [each.place for each in (*made, Operation("set_json"))] == ["n", "n", "/a/0", "/a", "/"]


@pytest.mark.parametrize(
    ("data", "code", "what"),
    [
        (None, "no_rule", ""), ({}, "no_rule", ""), ({"operations": []}, "no_rule", ""), ("x", "no_rule", ""),
        ([REMOVE] * 21, "too_many", ""), ([SET, {"op": "run"}], "no_operation", "Operation 2"),
        (["x"], "no_operation", "Operation 1"), ([{}], "no_operation", "Operation 1"),
        ([{"op": "remove_property"}], "no_name", "Operation 1"),
        ([{"op": "remove_property", "name": "n" * 301}], "bad_name", f"Operation 1, {'n' * 40}"),
        ([{**SET, "value": "x"}], "bad_value", "Operation 1, n"),
        ([{"op": "remove_property", "name": "_AMQ_X"}], "locked", "Operation 1, _AMQ_X"),
        ([{"op": "set_json", "json": "1"}], "bad_pointer", "Operation 1"),
        ([{"op": "set_json", "pointer": 7, "json": "1"}], "bad_pointer", "Operation 1"),
        ([{"op": "set_json", "pointer": "a", "json": "1"}], "bad_pointer", "Operation 1"),
        ([{"op": "remove_json", "pointer": ""}], "bad_pointer", "Operation 1"),
        ([{"op": "set_json", "pointer": ""}], "bad_value", "Operation 1"),
        ([{"op": "set_json", "pointer": "", "json": 7}], "bad_value", "Operation 1"),
        ([{"op": "set_json", "pointer": "", "json": "{"}], "bad_value", "Operation 1"),
        ([{"op": "set_json", "pointer": "", "json": "7" * (64 * 1024 + 1)}], "bad_value", "Operation 1"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused_with_a_word_and_its_number(data: Any, code: str, what: str) -> None:
    assert refusal(data) == (code, what)


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        ({**SET, "name": "card"}, "card"), ({**REMOVE, "name": "card"}, "card"),
        ({"op": "remove_json", "pointer": "/card"}, "/card"),
        ({"op": "remove_json", "pointer": "/a/card/0"}, "/a/card/0"),
        ({"op": "set_json", "pointer": "/card", "json": "1"}, "/card"),
        ({"op": "set_json", "pointer": "/a", "json": '[{"card": 1}]'}, "/a"),
    ],
)  # fmt: skip
def test_what_its_maker_may_not_see_is_locked_also_within_what_is_set(
    operation: dict[str, Any], what: str
) -> None:
    assert refusal([operation], CARD) == ("locked", f"Operation 1, {what}")
    assert is_hidden(rule_of([operation]).operations[0], CARD)
    assert not is_hidden(rule_of([operation]).operations[0], NONE)


@pytest.mark.parametrize("operation", [SET, REMOVE, SET_JSON, REMOVE_JSON])
def test_what_touches_no_hidden_name_is_not_hidden(operation: dict[str, Any]) -> None:
    assert not is_hidden(rule_of([operation], CARD).operations[0], CARD)


def test_a_value_is_given_as_text_or_as_json() -> None:
    def text_of(**given: Any) -> str:
        return rule_of([{"op": "set_json", "pointer": "", **given}]).operations[0].json

    assert text_of(json=" 1.10\n") == "1.10"
    assert text_of(value=["é", None]) == '["é", null]'
    assert text_of(value=1, json="2") == "2"
    longest = "x" * (64 * 1024 - 2)
    assert text_of(json=f'"{longest}"') == text_of(value=longest) == f'"{longest}"'
    for given, why in (
        ({}, "too long, or missing"),
        ({"json": f'"{longest}x"'}, "too long, or missing"),
        ({"value": f"{longest}x"}, "too long, or missing"),
        ({"json": "{"}, "Expecting property name"),
        ({"json": "NaN"}, "NaN is no JSON"),
        ({"value": math.nan}, "NaN is no JSON"),
        ({"json": None, "value": 1}, "too long, or missing"),
    ):
        with pytest.raises(EditRefused, match=f"The value is not JSON: {why}"):
            text_of(**given)


def test_as_many_operations_as_a_rule_may_have() -> None:
    assert len(rule_of([REMOVE] * 20).operations) == 20


def applied(*operations: dict[str, Any], message: Message = ORDER, masked: frozenset[str] = NONE) -> Applied:
    return apply(rule_of(list(operations)), message, masked)


def refused_by(
    message: Message, *operations: dict[str, Any], locked: frozenset[str] = NONE
) -> tuple[str, str]:
    with pytest.raises(EditRefused) as caught:
        apply(rule_of(list(operations)), message, NONE, locked=locked)
    return caught.value.code, caught.value.what


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        ({**REMOVE, "name": "card"}, "card"), ({"op": "remove_json", "pointer": "/order/card"},
        "/order/card"),
        ({"op": "set_json", "pointer": "", "json": '{"card": 1}'}, "/"),
        ({"op": "remove_json", "pointer": "/order"}, "/order"),
        ({"op": "set_json", "pointer": "/order", "json": "1"}, "/order"),
    ],
)  # fmt: skip
def test_what_is_hidden_in_this_letter_is_left_alone(operation: dict[str, Any], what: str) -> None:
    assert refused_by(ORDER, operation, locked=CARD) == ("locked", what)


def test_beside_what_is_hidden_a_letter_is_edited() -> None:
    done = apply(rule_of([{"op": "remove_json", "pointer": "/lines"}]), ORDER, NONE, locked=CARD)
    assert done.message.body.value == '{"order": {"sum": 1.10, "card": "4111"}}'
    new = apply(rule_of([{"op": "set_json", "pointer": "/new", "json": "1"}]), ORDER, NONE, locked=CARD)
    assert new.message.body.value == '{"order": {"sum": 1.10, "card": "4111"}, "lines": [1, 2], "new": 1}'


def test_operations_that_undo_each_other_change_nothing() -> None:
    there_and_back = [
        {**SET, "name": "region", "type": "string", "value": value} for value in ("south", "north")
    ]
    assert refused_by(ORDER, *there_and_back) == ("unchanged", "")
    assert refused_by(ORDER, REMOVE) == ("unchanged", "")
    kept = applied({**REMOVE, "name": "nope"}, {"op": "set_json", "pointer": "/lines/0", "json": "1"}, SET)
    assert [each["what"] for each in kept.changes] == ["n"]


def test_a_body_may_become_another_json_and_its_place_is_told() -> None:
    done = applied({"op": "set_json", "pointer": "", "json": "7"})
    assert done.message == replace(ORDER, body=Typed("string", "7"))
    assert (done.changes[0]["what"], done.changes[0]["after"]) == ("/", "7")
    text = Message(body=Typed("null", None))
    assert refused_by(text, SET_JSON) == ("no_json", "")


def test_what_is_masked_is_told_without_its_value() -> None:
    done = applied(
        {"op": "set_property", "name": "card", "value": "5500"},
        {"op": "remove_property", "name": "region"},
        {"op": "set_json", "pointer": "/order/card", "json": '"5511"'},
        {"op": "set_json", "pointer": "/order/sum", "json": "2"},
        {"op": "remove_json", "pointer": "/order/card"},
        masked=CARD,
    )
    assert [(each["what"], each["before"], each["after"]) for each in done.changes] == [
        ("card", HIDDEN, HIDDEN), ("region", "north (string)", None), ("/order/card", HIDDEN, HIDDEN),
        ("/order/sum", "1.10", "2"), ("/order/card", HIDDEN, None),
    ]  # fmt: skip


def test_a_rule_is_told_bounded_and_without_what_is_masked() -> None:
    long = "x" * 301
    large = {"op": "set_json", "pointer": f"/{long}", "json": f'"{long}"'}
    made = rule_of([SET, REMOVE, SET_JSON, REMOVE_JSON, large, {**SET, "name": "card"}])
    assert [tuple(each.values()) for each in describe_rule(made, CARD)] == [
        ("set_property", "n", "7 (int)"), ("remove_property", "n", ""), ("set_json", "/a/0", '{"b": 1.0}'),
        ("remove_json", "/a", ""), ("set_json", f"/{long}"[:300], f'"{long}'[:300]), ("set_property", "card",
        HIDDEN),
    ]  # fmt: skip
    assert [*describe_rule(made, NONE)[0]] == ["op", "place", "value"]
