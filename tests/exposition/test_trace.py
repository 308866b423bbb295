"""Trace contexts are read as W3C says, and those of attempts are the same wherever they are derived."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exposition.trace import LONGEST_STATE, TraceContext, attempt_context, case_of, parse, passed_on

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RECORD = UUID(int=7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceContext(TRACE, SPAN, True)),
        (f"00-{TRACE}-{SPAN}-00", TraceContext(TRACE, SPAN, False)),
        (f"00-{TRACE}-{SPAN}-03", TraceContext(TRACE, SPAN, True)),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be", TraceContext(TRACE, SPAN, True)),
    ],
)
def test_a_traceparent_is_read(text: str, expected: TraceContext) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        TRACE,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"00_{TRACE}_{SPAN}_01",
        f"00-{TRACE}g-{SPAN}-01",
    ],
)
def test_what_is_no_traceparent_is_none(text: str) -> None:
    assert parse(text) is None


@given(st.text(max_size=80))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert parse(text) is None or parse(str(parse(text))) is not None


@given(st.text(), st.text(min_size=1), st.integers(1, 10_000))
def test_an_attempt_has_one_trace_whoever_derives_it(setting: str, case: str, attempt: int) -> None:
    context = attempt_context(setting, case, attempt, uuid4())
    assert context == attempt_context(setting, case, attempt, uuid4())
    assert parse(str(context)) == context


def test_attempts_settings_and_messages_have_traces_of_their_own() -> None:
    same = attempt_context("orders", "ID:1", 1, RECORD)
    others = [
        attempt_context("orders", "ID:1", 2, RECORD),
        attempt_context("invoices", "ID:1", 1, RECORD),
        attempt_context("orders", "ID:11", 1, RECORD),
        attempt_context("orders", case_of("ID:1", replayed=True, letter=9), 1, RECORD),
    ]
    assert len({same.trace_id, *(each.trace_id for each in others)}) == 5
    assert case_of("ID:1", replayed=False, letter=None) == "ID:1"


def test_equal_messages_without_an_id_have_traces_of_their_own() -> None:
    one, other = (attempt_context("orders", "", 1, UUID(int=n)) for n in (1, 2))
    assert one != other == attempt_context("orders", "", 1, UUID(int=2))


PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, {}),
        ({"traceparent": PARENT, "a": 1}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": "v=1"}, {"traceparent": PARENT, "tracestate": "v=1"}),
        ({"traceparent": PARENT, "tracestate": "v" * (LONGEST_STATE + 1)}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": b"v=1"}, {"traceparent": PARENT}),
        ({"traceparent": "none", "tracestate": "v=1"}, {}),
        ({"traceparent": 7}, {}),
    ],
)
def test_what_is_a_trace_is_passed_on(properties: dict[str, object], expected: dict[str, str]) -> None:
    assert passed_on(properties) == expected
