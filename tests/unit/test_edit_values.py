"""Values, names and changes as people write them: the bounds of each type, and what is refused with which
word."""

import math
from typing import Any

import pytest

from contract.typed import Typed
from dlq.edit.rules.changes import MOST_PROPERTIES, Changes, changes_of, named_value
from dlq.edit.rules.values import (
    LARGEST_FLOAT,
    TYPES,
    EditRefused,
    checked_name,
    editable_value,
    is_locked,
    kept_annotations,
    kept_properties,
    typed_value,
    written,
)

BOUNDS = {
    "byte": (-128, 127), "short": (-32_768, 32_767), "int": (-2_147_483_648, 2_147_483_647),
    "long": (-9_223_372_036_854_775_808, 9_223_372_036_854_775_807), "ushort": (0, 65_535),
    "timestamp": (-9_223_372_036_854_775_808, 9_223_372_036_854_775_807), "uint": (0, 4_294_967_295),
    "ulong": (0, 18_446_744_073_709_551_615), "ubyte": (0, 255),
}  # fmt: skip


def refusal(kind: str, text: str) -> tuple[str, str, str]:
    with pytest.raises(EditRefused) as caught:
        typed_value(kind, text, "p")
    return caught.value.code, caught.value.reason, caught.value.what


@pytest.mark.parametrize("kind", BOUNDS)
def test_an_integer_has_the_bounds_of_its_type(kind: str) -> None:
    least, most = BOUNDS[kind]
    assert [typed_value(kind, str(number), "p") for number in (least, most)] == [
        Typed(kind, least),
        Typed(kind, most),
    ]
    for number in (least - 1, most + 1):
        assert refusal(kind, str(number)) == ("bad_value", f"The value does not match the type {kind}.", "p")


def test_the_types_are_offered_in_this_order() -> None:
    assert TYPES == (
        "string", "boolean", "int", "long", "double", "float", "byte", "short", "ubyte", "ushort", "uint",
        "ulong", "timestamp", "symbol", "char", "uuid", "binary", "null",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", " +5\n", 5), ("int", "0" * 19 + "7", 7), ("string", " x ", " x "), ("symbol", " s", " s"),
        ("char", " ", " "), ("char", "Ж", "Ж"), ("boolean", " TRUE ", True), ("boolean", "False", False),
        ("null", " ", None),
        ("uuid", " 0CE1BF58-4e46-42b1-90a3-389a559e22e6", "0ce1bf58-4e46-42b1-90a3-389a559e22e6"),
        ("binary", " 00ff ", b"\0\xff"), ("binary", "0x", b""), ("string", "x" * 65_536, "x" * 65_536),
        ("timestamp", "7", 7), ("timestamp", "1970-01-01T01:00:01.0015+01:00", 1002), ("double", " 1e39",
        1e39),
        ("float", "3.4028234663852886e38", LARGEST_FLOAT), ("float", "-3.4028234663852886e38",
        -LARGEST_FLOAT),
        ("float", "-inf", -math.inf), ("string", "é", "é"),
    ],
)  # fmt: skip
def test_a_text_is_read_as_its_type_says(kind: str, text: str, value: object) -> None:
    assert typed_value(kind, text, "p") == Typed(kind, value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "0" * 21), ("int", "1 2"), ("int", "٧"), ("char", ""), ("char", "\0"), ("symbol", "é"),
        ("symbol", "\0"), ("float", "3.4028234663852890e38"), ("float", "-1e39"), ("null", "null"),
        ("boolean", ""),
        ("timestamp", "2026-03-01"), ("timestamp", "soon"),
    ],
)  # fmt: skip
def test_a_text_that_is_none_of_its_type_is_refused_with_the_name(kind: str, text: str) -> None:
    assert refusal(kind, text) == ("bad_value", f"The value does not match the type {kind}.", "p")


def test_a_type_that_nobody_sets_and_a_text_that_is_too_long_have_words_of_their_own() -> None:
    assert refusal("m" * 41, "") == ("bad_type", f"The type {'m' * 40} cannot be set.", "p")
    assert refusal("string", "x" * 65_537) == (
        "too_long",
        "The value is too long. The limit is 65536 characters.",
        "p",
    )


def test_a_name_has_signs_and_at_most_300_of_them() -> None:
    assert checked_name("n" * 300) == "n" * 300 and checked_name(" é ") == " é "
    for name, code, what in (
        ("", "no_name", ""), (" \t", "no_name", ""), ("n" * 301, "bad_name", "n" * 40), ("a\0b", "bad_name",
        "a␀b"),
    ):  # fmt: skip
        with pytest.raises(EditRefused) as caught:
            checked_name(name)
        assert (caught.value.code, caught.value.what) == (code, what)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Typed("timestamp", 1_700_000_000_123), "2023-11-14T22:13:20.123+00:00"),
        (Typed("timestamp", 2**62), str(2**62)),
        (Typed("double", 0.1), "0.1"), (Typed("float", 1e400), "inf"), (Typed("long", 7), "7"),
        (Typed("boolean", True), "true"), (Typed("binary", b"\0"), "0x00"), (Typed("string", "a"), "a"),
    ],
)  # fmt: skip
def test_a_value_is_written_as_it_is_read(item: Typed, text: str) -> None:
    assert written(item) == text


@pytest.mark.parametrize(
    ("item", "editable"),
    [
        (Typed("string", "a b"), True), (Typed("string", "a\nb"), False), (Typed("string", "a\rb"), False),
        (Typed("string", "a\0"), False), (Typed("long", 7), True), (Typed("null", None), True),
        (Typed("list", ()), False), (Typed("map", ()), False), (Typed("decimal32", b"\0"), False),
        (Typed("binary", b"x" * 32_767), True), (Typed("binary", b"x" * 32_768), False),
    ],
)  # fmt: skip
def test_what_a_form_brings_back_can_be_edited(item: Typed, editable: bool) -> None:
    assert editable_value(item) is editable


def test_changes_have_their_form() -> None:
    assert Changes() == Changes(None, None, False, {}, ())
    assert Changes().to_json() == {"other_form": False, "remove": [], "set": []}
    whole = Changes("t", b"c", True, {"n": Typed("double", 0.5)}, ("a", "b"))
    assert whole.to_json() == {
        "other_form": True, "remove": ["a", "b"], "set": [{"name": "n", "type": "double", "value": "0.5"}],
        "body": {"text": "t"},
    }  # fmt: skip
    assert Changes(content=b"\0\xff").to_json()["body"] == {"base64": "AP8="}


@pytest.mark.parametrize(
    ("data", "changes"),
    [
        ({}, Changes()), ({"body": None, "set": None, "remove": None}, Changes()),
        ({"body": {"text": "", "base64": "AA=="}}, Changes("")),
        ({"body": {"text": 7, "base64": ""}}, Changes(content=b"")),
        ({"other_form": 1}, Changes()), ({"other_form": True}, Changes(other_form=True)),
        ({"remove": ["b", "a", "b"]}, Changes(removed=("b", "a"))),
        ({"set": [{"name": "n"}]}, Changes(put={"n": Typed("string", "")})),
    ],
)  # fmt: skip
def test_parts_that_are_missing_change_nothing(data: dict[str, Any], changes: Changes) -> None:
    assert changes_of(data) == changes


@pytest.mark.parametrize(
    "data",
    [
        7, [], {"body": []}, {"body": {}}, {"body": {"text": 7}}, {"body": {"base64": 7}},
        {"body": {"base64": "AA"}},
        {"body": {"base64": "A\nA=="}}, {"body": {"base64": "é"}}, {"set": "x"}, {"set": 7}, {"set": [7]},
        {"remove": {"a": 1}}, {"remove": [7]},
        {"set": [{"name": 7}]}, {"set": [{}]}, {"set": [{"name": "n", "type": 7}]},
        {"set": [{"name": "n", "value": {}}]}, {"remove": ["x"] * (MOST_PROPERTIES + 1)},
    ],
)  # fmt: skip
def test_what_is_not_understood_is_called_so(data: Any) -> None:
    with pytest.raises(EditRefused) as caught:
        changes_of(data)
    assert caught.value.code == "unreadable"


def test_why_bytes_cannot_be_read_is_kept_for_the_log() -> None:
    with pytest.raises(EditRefused) as caught:
        changes_of({"body": {"base64": "AA"}})
    assert str(caught.value.__cause__) == "Incorrect padding"


def test_as_many_properties_as_a_message_may_have_are_changed_at_once() -> None:
    half = MOST_PROPERTIES // 2
    sets = [{"name": "n", "value": "v"}] * half
    assert MOST_PROPERTIES == 5000 and changes_of({"set": sets, "remove": ["x"] * half}).removed == ("x",)
    with pytest.raises(EditRefused):
        changes_of({"set": sets, "remove": ["x"] * (half + 1)})


def test_what_is_set_and_removed_at_once_is_named() -> None:
    sets = [{"name": name, "value": ""} for name in "cba"]
    with pytest.raises(EditRefused) as caught:
        changes_of({"set": sets, "remove": ["c", "b", "d"]})
    assert (caught.value.code, caught.value.what) == ("twice", "b")


@pytest.mark.parametrize(
    ("kind", "value", "item"),
    [
        ("boolean", True, Typed("boolean", True)), ("boolean", False, Typed("boolean", False)),
        ("int", 7, Typed("int", 7)), ("double", 0.5, Typed("double", 0.5)), ("null", None, Typed("null",
        None)),
        ("string", None, Typed("string", "")), ("string", "x", Typed("string", "x")),
    ],
)  # fmt: skip
def test_a_value_may_be_one_of_json(kind: str, value: Any, item: Typed) -> None:
    assert named_value({"name": "n", "type": kind, "value": value}) == ("n", item)


def test_a_refusal_says_which_part_it_is_about() -> None:
    assert str(EditRefused("not_a_number", "no number", "body")) == "body: no number"
    assert str(EditRefused("too_many", "too many")) == "too many"


@pytest.mark.parametrize(
    ("name", "locked"),
    [
        ("region", False),
        ("card", True),
        ("ma_letter", True),
        ("ma_letter_queue", True),
        ("_AMQ_SCHED_DELIVERY", True),
        ("JMSXGroupID", True),
        ("x_AMQ_", False),
    ],
)
def test_nobody_edits_what_is_masked_ours_or_the_brokers(name: str, locked: bool) -> None:
    assert is_locked(name, frozenset({"card"})) is locked


def test_a_copy_does_not_say_where_the_dead_letter_died() -> None:
    text = Typed("string", "x")
    going = {"region": text, "JMSXGroupID": text, "_AMQ_GROUP_ID": text}
    staying = dict.fromkeys(
        (
            "ma_letter",
            "ma_letter_queue",
            "ma_letter_id",
            "JMSXDeliveryCount",
            "_AMQ_DUPL_ID",
            "_AMQ_ORIG_QUEUE",
            "_AMQ_ORIG_MESSAGE_ID",
        ),
        text,
    )
    assert kept_properties(going | staying) == going


def test_annotations_of_the_death_do_not_go_with_a_copy() -> None:
    text = Typed("string", "x")
    going = {"x-opt-jms-msg-type": text, "x-opt-to-ORIG-": text}
    assert kept_annotations(going | {"x-opt-ORIG-QUEUE": text, "x-opt-ORIG-ADDRESS": text}) == going
