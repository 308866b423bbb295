"""The message key: the same for one message wherever it is seen, another for another."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.port import BodyKind, Message
from contract.message_key import MessageKey, check_key, found_at, message_key
from contract.typed import Typed, canonical, from_json, text_of, to_json

BODY = b"value:string:2:hi"
typed = st.recursive(
    st.one_of(
        st.builds(Typed, st.just("string"), st.text().filter(lambda text: "\0" not in text)),
        st.builds(Typed, st.sampled_from(["int", "long", "ulong"]), st.integers(0, 2**31)),
        st.builds(Typed, st.just("double"), st.floats(allow_nan=False)),
        st.builds(Typed, st.just("binary"), st.binary()),
        st.builds(Typed, st.just("boolean"), st.booleans()),
        st.just(Typed("null", None)),
    ),
    lambda inner: st.one_of(
        st.builds(Typed, st.just("list"), st.lists(inner, max_size=4).map(tuple)),
        st.builds(Typed, st.just("map"), st.lists(st.tuples(inner, inner), max_size=4).map(tuple)),
    ),
    max_leaves=8,
)


def test_a_producers_id_is_the_key() -> None:
    assert message_key(Typed("string", "ID:7"), BODY, {}) == MessageKey("ID:7", weak=False)


def test_ids_of_other_types_stay_apart() -> None:
    keys = [message_key(Typed(kind, value), BODY, {}) for kind, value in [("string", "7"), ("ulong", 7)]]
    assert keys == [MessageKey("7", weak=False), MessageKey("ulong:7", weak=False)]


@pytest.mark.parametrize(
    "nothing", [Typed("null", None), Typed("null", 7), Typed("string", ""), Typed("binary", b"")]
)
def test_an_id_that_says_nothing_is_none(nothing: Typed) -> None:
    assert message_key(nothing, BODY, {}) == message_key(None, BODY, {})


def test_without_an_id_the_key_is_a_weak_digest() -> None:
    key = message_key(None, BODY, {})
    assert key.weak and key.text.startswith("sha256:")
    assert key != message_key(None, BODY.replace(b"hi", b"ho"), {})


def test_keys_that_are_stored_stay_the_keys_of_their_messages() -> None:
    """A producer may call a property anything, also what is no UTF-8."""
    properties = {"customer": Typed("string", "c-1"), "\ud800": Typed("int", 7)}
    assert message_key(None, BODY, properties).text == (
        "sha256:239b29a117b6a97eba4e026087495f715b6a75ef085763c39bca2ea66927a00b"
    )


def test_what_the_way_adds_changes_no_key() -> None:
    way = {"_AMQ_ORIG_QUEUE": Typed("string", "orders"), "JMSXDeliveryCount": Typed("null", None)}
    stomp = {"destination": Typed("string", "demo.orders"), "receipt": Typed("string", "r1")}
    own = {"customer": Typed("string", "c-1")}
    assert message_key(None, BODY, own) == message_key(None, BODY, own | way | stomp)
    assert message_key(None, BODY, own) != message_key(None, BODY, {})


def test_the_letter_of_an_edited_copy_wins() -> None:
    assert message_key(Typed("string", "new"), BODY, {"ma_letter": Typed("string", "ID:7")}).text == "ID:7"


@pytest.mark.parametrize("nothing", [Typed("string", ""), Typed("int", 7)])
def test_a_letter_that_is_no_name_wins_nothing(nothing: Typed) -> None:
    assert message_key(Typed("string", "new"), BODY, {"ma_letter": nothing}).text == "new"


def test_the_name_of_a_letter_is_cut_where_the_column_ends_and_is_as_weak_as_the_key_that_it_was() -> None:
    assert message_key(None, BODY, {"ma_letter": Typed("string", "x" * 300)}) == MessageKey(
        "x" * 255, weak=False
    )
    assert message_key(None, BODY, {"ma_letter": Typed("string", "sha256:a")}) == MessageKey(
        "sha256:a", weak=True
    )


def test_an_id_of_two_hundred_characters_is_whole_and_a_longer_one_its_digest() -> None:
    whole, longer = (message_key(Typed("string", "x" * size), BODY, {}).text for size in (200, 201))
    assert whole == "x" * 200
    assert longer == f"id-sha256:{hashlib.sha256(b'x' * 201).hexdigest()}"


def test_a_long_id_is_shortened_by_its_digest() -> None:
    first, second = (message_key(Typed("string", "x" * 5000 + end), BODY, {}).text for end in "ab")
    assert first != second and len(first) < 255


@given(typed)
def test_the_json_form_loses_nothing(value: Typed) -> None:
    assert from_json(to_json(value)) == value


@given(typed, typed)
def test_different_values_have_different_canonical_forms(one: Typed, other: Typed) -> None:
    """The entries of a map have no order."""
    if text_of(_ordered(one)) != text_of(_ordered(other)):
        assert canonical(one) != canonical(other)


def _ordered(item: Typed) -> Typed:
    if item.type == "map":
        pairs = ((_ordered(key), _ordered(value)) for key, value in item.value)
        return Typed("map", tuple(sorted(pairs, key=lambda pair: canonical(pair[0]))))
    if isinstance(item.value, tuple):
        return Typed(item.type, tuple(map(_ordered, item.value)))
    return item


@given(st.binary(), st.binary())
def test_the_body_section_says_its_kind(one: bytes, other: bytes) -> None:
    data = Message(body=Typed("binary", one), body_kind=BodyKind.DATA)
    value = Message(body=Typed("binary", other), body_kind=BodyKind.VALUE)
    assert data.body_section != value.body_section


# -- where a message has the key by which its repeats are known (RFC 6901 for pointers) ----------------------


@pytest.mark.parametrize(
    "text", ["", "key", "property:n", "pointer:/a", "pointer:/", "pointer:/a~0b~1/0", "pointer:/a//b"]
)
def test_the_forms_of_a_key(text: str) -> None:
    check_key(text)


@pytest.mark.parametrize(
    "text",
    [
        "keys",
        "Key",
        "property:",
        "property",
        "pointer:",
        "pointer:a",
        "pointer:/a~2",
        "pointer:/a~",
        "x:/a",
        "/a",
    ],
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^one of: key, property:NAME, pointer:/a/b, or nothing$"):
        check_key(text)


DOCUMENT: dict[str, Any] = {
    "id": "7", "n": 7, "no": False, "empty": "", "none": None, "list": ["a", {"b": "c"}],
    "a/b": "slash", "a~b": "tilde", "~1": "both", "": "nameless", "0": "zero", "much": [*range(12)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/id", "7"), ("/n", 7), ("/no", False), ("/empty", None), ("/none", None), ("/list", None),
        ("/nothing", None),
        ("/list/0", "a"), ("/list/1/b", "c"), ("/list/1", None), ("/list/2", None), ("/list/-1", None),
        ("/list/00", None),
        ("/list/01", None), ("/list/x", None), ("/a~1b", "slash"), ("/a~0b", "tilde"), ("/~01", "both"), ("/",
        "nameless"),
        ("/0", "zero"), ("/id/0", None), ("/much/10", 10), ("/much/11", 11), ("/much/12", None),
        ("/nothing/deeper", None),
        ("/list/99999999999", None),
    ],
)  # fmt: skip
def test_what_a_pointer_finds(pointer: str, found: object) -> None:
    assert found_at(pointer, DOCUMENT) == found


def test_a_body_that_is_no_object_has_nothing() -> None:
    assert found_at("/a", "text") is None and found_at("/0", ["a"]) == "a"
