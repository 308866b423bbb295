"""Rules for many letters: operations in order, JSON pointers over the text itself, and why one does not
apply."""

import json
from dataclasses import replace
from typing import Any

import pytest

from broker.port import Message
from contract.typed import Typed
from dlq.edit.rules import json_pointer
from dlq.edit.rules.bulk_rule import apply, rule_of
from dlq.edit.rules.values import EditRefused

DOC = '{ "a": {"b~/c": [10, 1.10, {"x": null}]}, "": 0,\n  "last": "é\\u00e9" , "twice": 1, "twice": 2 }'
NONE: frozenset[str] = frozenset()
ORDER = Message(
    body=Typed("string", '{"order": {"sum": 1.10, "card": "4111"}, "lines": [1, 2]}'),
    properties={"region": Typed("string", "north"), "card": Typed("string", "4111")},
)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("", json.loads(DOC)), ("/a/b~0~1c/0", 10), ("/a/b~0~1c/1", 1.10), ("/a/b~0~1c/2/x", None), ("/", 0),
        ("/last", "éé"), ("/twice", 2),
    ],
)  # fmt: skip
def test_a_pointer_finds_what_readers_see(place: str, value: Any) -> None:
    start, end = json_pointer.locate(DOC, json_pointer.parse(place))
    assert json.loads(DOC[start:end]) == value


@pytest.mark.parametrize(
    "place", ["/b", "/a/b~0~1c/3", "/a/b~0~1c/01", "/a/b~0~1c/-", "/a/b~0~1c/0/x", "/last/0"]
)
def test_a_pointer_to_nothing_is_refused(place: str) -> None:
    with pytest.raises(EditRefused) as caught:
        json_pointer.locate(DOC, json_pointer.parse(place))
    assert caught.value.code == "pointer_missing"


@pytest.mark.parametrize("place", ["a", "/~2", "/~", "/" + "x" * 1000])
def test_what_is_no_pointer_is_refused(place: str) -> None:
    with pytest.raises(EditRefused) as caught:
        json_pointer.parse(place)
    assert caught.value.code == "bad_pointer"


@pytest.mark.parametrize(
    ("text", "place", "value", "result"),
    [
        ('{"a": 1.10 , "b": 1e400}', "/a", "2", '{"a": 2 , "b": 1e400}'),
        ('{"a": 1}', "/b/", "2", None), ('{"a": 1}', "/b", "2", '{"a": 1, "b": 2}'), ("{ }", "/b", "[]",
        '{"b": [] }'),
        ("[1 , 2]", "/-", "3", "[1 , 2, 3]"), ("[]", "/-", "3", "[3]"), ("[1]", "/0", "7", "[7]"),
        ("[1]", "/1", "7", None),
        (' {"a": [{"b": 1}]}\n', "/a/0/b", '"x"', ' {"a": [{"b": "x"}]}\n'), ('{"a": 1}', "", "[]", "[]"),
        ('{"a": 1, "a": 2}', "/a", "3", '{"a": 1, "a": 3}'), ("7", "/a", "3", None),
    ],
)  # fmt: skip
def test_setting_changes_that_place_alone(text: str, place: str, value: str, result: str | None) -> None:
    if result is None:
        with pytest.raises(EditRefused):
            json_pointer.put(text, json_pointer.parse(place), value)
    else:
        assert json_pointer.put(text, json_pointer.parse(place), value) == result


@pytest.mark.parametrize(
    ("text", "place", "result"),
    [
        ('{"a": 1, "b": 2, "c": 3}', "/a", '{"b": 2, "c": 3}'), ('{"a": 1, "b": 2, "c": 3}', "/b",
        '{"a": 1, "c": 3}'),
        ('{"a": 1, "b": 2 }', "/b", '{"a": 1 }'), ('{"a": 1}', "/a", "{}"), ("[1, 2]", "/0", "[2]"),
        ("[1, [2, 3]]", "/1/1", "[1, [2]]"), ('{"a": 1}', "/b", None), ('{"a": 1}', "/a/b", None),
    ],
)  # fmt: skip
def test_removing_takes_the_comma_with_it(text: str, place: str, result: str | None) -> None:
    if result is None:
        with pytest.raises(EditRefused):
            json_pointer.remove(text, json_pointer.parse(place))
    else:
        assert json_pointer.remove(text, json_pointer.parse(place)) == result


def rule(*operations: dict[str, Any], locked: frozenset[str] = NONE) -> Any:
    return rule_of(list(operations), locked)


def test_operations_apply_in_order_and_are_told() -> None:
    done = apply(
        rule(
            {"op": "set_property", "name": "tries", "type": "short", "value": 3},
            {"op": "remove_property", "name": "region"},
            {"op": "set_json", "pointer": "/order/sum", "json": "2.50"},
            {"op": "set_json", "pointer": "/order/sum2", "value": {"é": 1}},
            {"op": "remove_json", "pointer": "/lines/0"},
        ),
        ORDER,
        NONE,
    )
    assert done.message.properties == {"card": ORDER.properties["card"], "tries": Typed("short", 3)}
    assert (
        done.message.body.value == '{"order": {"sum": 2.50, "card": "4111", "sum2": {"é": 1}}, "lines": [2]}'
    )
    assert done.changes[:3] == [
        {"what": "tries", "before": None, "after": "3 (short)"},
        {"what": "region", "before": "north (string)", "after": None},
        {"what": "/order/sum", "before": "1.10", "after": "2.50"},
    ]


@pytest.mark.parametrize(
    ("operation", "message", "code"),
    [
        ({"op": "set_json", "pointer": "/a", "json": "1"}, replace(ORDER, body=Typed("string", "hi")),
        "no_json"),
        ({"op": "set_json", "pointer": "/a", "json": "1"}, replace(ORDER, body=Typed("map", ())), "no_json"),
        ({"op": "set_json", "pointer": "/a/b", "json": "1"}, ORDER, "pointer_missing"),
        ({"op": "remove_json", "pointer": "/nope"}, ORDER, "pointer_missing"),
        ({"op": "remove_property", "name": "nope"}, ORDER, "unchanged"),
        ({"op": "set_property", "name": "region", "type": "string", "value": "north"}, ORDER, "unchanged"),
        ({"op": "set_json", "pointer": "/lines/0", "json": "1"}, ORDER, "unchanged"),
    ],
)  # fmt: skip
def test_a_letter_to_which_a_rule_does_not_apply_says_why(
    operation: dict[str, Any], message: Message, code: str
) -> None:
    with pytest.raises(EditRefused) as caught:
        apply(rule(operation), message, NONE)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "set_property", "name": "card", "type": "string", "value": "x"},
        {"op": "remove_property", "name": "card"}, {"op": "set_property", "name": "_AMQ_X", "value": "x"},
        {"op": "set_json", "pointer": "/order/card", "json": "1"}, {"op": "remove_json",
        "pointer": "/card/number"},
    ],
)  # fmt: skip
def test_a_rule_leaves_alone_what_its_maker_may_not_see(operation: dict[str, Any]) -> None:
    with pytest.raises(EditRefused) as caught:
        rule(operation, locked=frozenset({"card"}))
    assert caught.value.code == "locked"


@pytest.mark.parametrize(
    "operation", [{"op": "remove_json", "pointer": "/order"}, {"op": "set_json", "pointer": "", "json": "{}"}]
)
def test_nor_does_it_take_away_what_holds_such_a_field(operation: dict[str, Any]) -> None:
    made = rule_of(rule(operation, locked=frozenset({"card"})).to_json())
    with pytest.raises(EditRefused) as caught:
        apply(made, ORDER, NONE)
    assert caught.value.code == "locked"


def test_changes_of_masked_fields_are_not_told() -> None:
    made = rule(
        {"op": "set_property", "name": "card", "type": "string", "value": "5500"},
        {"op": "set_json", "pointer": "/order/card", "json": '"5511"'},
        {"op": "set_json", "pointer": "/order", "json": '{"card": "5522"}'},
    )
    told = str(apply(made, ORDER, frozenset({"card"})).changes)
    assert "4111" not in told and "55" not in told


@pytest.mark.parametrize(
    "data",
    [
        [], {}, "x", [{"op": "run"}], ["x"], [{"op": "set_json", "pointer": "/a"}], [{"op": "set_json",
        "json": "1"}],
        [{"op": "set_json", "pointer": "/a", "json": "hello"}], [{"op": "set_json", "pointer": "/a",
        "json": "NaN"}],
        [{"op": "remove_json", "pointer": ""}], [{"op": "set_property", "name": "a", "type": "int",
        "value": "x"}],
        [{"op": "remove_property", "name": "a"}] * 21, [{"op": "remove_property"}],
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(data: Any) -> None:
    with pytest.raises(EditRefused):
        rule_of(data)
