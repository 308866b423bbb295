"""JSON pointers over the text of a document: each sign of RFC 6901, every layout, the edges of lists and
objects."""

import pytest

from dlq.edit.rules import json_pointer
from dlq.edit.rules.json_pointer import Member
from dlq.edit.rules.values import EditRefused


@pytest.mark.parametrize(
    ("place", "tokens"),
    [
        ("", ()), ("/", ("",)), ("/a/b", ("a", "b")), ("/a//b/", ("a", "", "b", "")),
        ("/~0", ("~",)), ("/~1", ("/",)), ("/~01", ("~1",)), ("/~10", ("/0",)), ("/" + "x" * 999,
        ("x" * 999,)),
    ],
)  # fmt: skip
def test_a_pointer_has_its_tokens(place: str, tokens: tuple[str, ...]) -> None:
    assert json_pointer.parse(place) == tokens


@pytest.mark.parametrize("place", ["a", "a/b", "/~", "/~2", "/a~/b", "/" + "x" * 1000])
def test_what_is_no_pointer_is_refused(place: str) -> None:
    with pytest.raises(EditRefused) as caught:
        json_pointer.parse(place)
    assert caught.value.code == "bad_pointer"


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ('\t{\r\n "a" \t:\n 1 ,"b": [ 2\n, {"c":"}"} ] } ', "/b/1/c", '"}"'),
        ('{"a" : 1, "b":2}', "/a", "1"), ('{"a" : 1, "b":2}', "/b", "2"),
        ('{"0": 1}', "/0", "1"), ('{"\\u0061\\"": 1}', '/a"', "1"), ('{"a": {}, "b": []}', "/a", "{}"),
        ("[[1, 2], [3]]", "/1/0", "3"), ("[1, 2]", "/0", "1"), ("[1, 2]", "/1", "2"), (" 7 ", "", "7"),
        ("[" + "0, " * 10 + "1]", "/10", "1"),
    ],
)  # fmt: skip
def test_whatever_its_layout_a_value_is_found(text: str, place: str, value: str) -> None:
    start, end = json_pointer.locate(text, json_pointer.parse(place))
    assert text[start:end] == value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[1, 2]", "/2"), ("[1, 2]", "/-1"), ("[1, 2]", "/00"), ("[1, 2]", "/٠"), ("[1, 2]", "/1x"),
        ("[1, 2]", "/"),
        ("[1]", "/0000000000"), ("[]", "/0"), ("{}", "/a"), ('"a"', "/0"), ("7", "/"), ('{"a": 1}', "/A"),
    ],
)  # fmt: skip
def test_there_is_nothing_at_another_place(text: str, place: str) -> None:
    for change in (json_pointer.locate, json_pointer.remove):
        with pytest.raises(EditRefused) as caught:
            change(text, json_pointer.parse(place))
        assert (caught.value.code, caught.value.reason) == (
            "pointer_missing", "The document has nothing at this path.",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "result"),
    [
        (" 7 ", "", " V "), ('{"a": 1, "b": 2}', "/c", '{"a": 1, "b": 2, "c": V}'), ('{"a": 1}', "/-",
        '{"a": 1, "-": V}'), ('{"a": 1}', "/é\"",
        '{"a": 1, "é\\"": V}'),
        ('{"x": {"a": 1}, "y": 2}', "/x/b", '{"x": {"a": 1, "b": V}, "y": 2}'),
        ('{"x": [], "y": [1 ]}', "/x/-", '{"x": [V], "y": [1 ]}'),
        ('{"x": [], "y": [1 ]}', "/y/-", '{"x": [], "y": [1, V ]}'),
        ('{"x": { }}', "/x/", '{"x": {"": V }}'), ("[[1], [2]]", "/1/0", "[[1], [V]]"),
        ('[{"a": 1}, {"a": 2}]', "/0/a", '[{"a": V}, {"a": 2}]'),
    ],
)  # fmt: skip
def test_a_value_is_replaced_or_added_where_the_pointer_leads(text: str, place: str, result: str) -> None:
    assert json_pointer.put(text, json_pointer.parse(place), "V") == result


@pytest.mark.parametrize(("text", "place"), [("[1]", "/a"), ("[1]", "/1"), ("7", "/-"), ('{"a": 1}', "/b/-")])
def test_containers_are_never_made_up(text: str, place: str) -> None:
    with pytest.raises(EditRefused) as caught:
        json_pointer.put(text, json_pointer.parse(place), "V")
    assert caught.value.code == "pointer_missing"


@pytest.mark.parametrize(
    ("text", "place", "result"),
    [
        ("[1, 2]", "/0", "[2]"), ("[1, 2, 3]", "/0", "[2, 3]"), ("[1, 2, 3]", "/1", "[1, 3]"),
        ("[1 , 2 , 3 ]", "/2", "[1 , 2 ]"),
        ('{ "a" : 1 }', "/a", "{ }"), ('{"x": [ 1 ], "y": 2}', "/x/0", '{"x": [ ], "y": 2}'),
        ('{"x": {"a": 1, "b": 2}}', "/x/b", '{"x": {"a": 1}}'), ('{"a": 1, "a": 2}', "/a", '{"a": 1}'),
    ],
)  # fmt: skip
def test_what_is_removed_leaves_the_rest_as_it_was(text: str, place: str, result: str) -> None:
    assert json_pointer.remove(text, json_pointer.parse(place)) == result


def test_the_whole_document_is_never_removed() -> None:
    with pytest.raises(EditRefused) as caught:
        json_pointer.remove("{}", ())
    assert caught.value.code == "bad_pointer"


def test_a_member_begins_with_its_name_and_an_item_with_itself() -> None:
    assert Member("a", 1, 6, 7) == Member(name="a", begin=1, start=6, end=7)
