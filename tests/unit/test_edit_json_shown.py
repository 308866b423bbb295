"""JSON on one line is edited indented, and is one line again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlq.edit.rules.body_text import shown_text, text_in

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
STYLES = [(", ", ": "), (",", ":"), (",", ": "), (" ,  ", ":\t")]


def browser(text: str) -> str:
    """A form sends every line end as CR LF."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.sampled_from(STYLES), st.booleans())
def test_without_a_change_nothing_changes(value: Any, style: tuple[str, str], space: bool) -> None:
    before = json.dumps(value, separators=style, ensure_ascii=False)
    before = f" {before}\n" if space else before
    assert text_in(browser(shown_text(before)), before) is None
    assert text_in(browser(before), before) is None


@given(
    JSON.filter(lambda value: isinstance(value, dict | list)),
    JSON.filter(lambda value: isinstance(value, dict | list)),
)
def test_a_change_is_one_line_and_means_what_was_written(old: Any, new: Any) -> None:
    before, shown = json.dumps(old), shown_text(json.dumps(new))
    told = text_in(browser(shown), before)
    if told is None:
        assert new == old
    elif shown_text(before) != before:
        assert json.loads(told) == new and "\n" not in told


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ('{"sum": 1.10, "note": "a, b: c"}', '{\n  "sum": 1.10,\n  "note": "a, b: c"\n}'),
        ('\n{"a":{"b":[1,2]}}\n', '{\n  "a": {\n    "b": [\n      1,\n      2\n    ]\n  }\n}'),
        ('{"order": 7,\n "sum": 1.10}', '{"order": 7,\n "sum": 1.10}'),
        ("{}", "{}"),
        ("hello", "hello"),
        ('{"a": NaN}', '{"a": NaN}'),
    ],
)
def test_one_line_is_indented_and_all_else_shown_as_it_is(before: str, shown: str) -> None:
    assert shown_text(before) == shown


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        ('\n{"sum": 1.10, "at":"x"}\n', '{\n  "sum": 2.50,\n  "at": "x"\n}', '\n{"sum": 2.50, "at": "x"}\n'),
        ('{"a":1}', '{\n  "a": 1,\n  "b": "x, y: z"\n}', '{"a":1,"b":"x, y: z"}'),
        ('{"a": 1}', '{\n  "a": 1,\n  "b": 2\n}', '{"a": 1, "b": 2}'),
        ('{"order": 7,\n "sum": 1}', '{"order": 8,\n "sum": 1}', '{"order": 8,\n "sum": 1}'),
        ('{"a": 1}', "{", "{"),
        ('{"a": 1}', "hello\nyou", "hello\nyou"),
        ("hello", '{\n  "a": 1\n}', '{\n  "a": 1\n}'),
    ],
)
def test_what_was_one_line_is_one_line_again_as_it_was_spaced(before: str, typed: str, after: str) -> None:
    assert text_in(typed, before) == after


def test_a_long_one_is_shown_as_it_is() -> None:
    for before in (json.dumps(["x" * 300_000, 1]), "[" * 150 + '"' + "x," * 1000 + '"' + "]" * 150):
        assert len(shown_text(before)) < 1024 * 1024
    assert shown_text(json.dumps(["x" * 300_000, 1])) == json.dumps(["x" * 300_000, 1])
