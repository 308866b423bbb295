"""Where a message has the key by which its repeats are known (RFC 6901 for pointers)."""

from typing import Any

import pytest

from contract.duplicates import check_key, found_at


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


BODY: dict[str, Any] = {
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
    assert found_at(pointer, BODY) == found


def test_a_body_that_is_no_object_has_nothing() -> None:
    assert found_at("/a", "text") is None and found_at("/0", ["a"]) == "a"
