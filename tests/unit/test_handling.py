"""How handling differs between two settings of different destinations: what a redirect says first."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlq.replay.preflight import text
from dlq.replay.preflight.handling import CODES, Difference, Handling, differences
from dlq.replay.preflight.rules import OTHER_DESTINATION, Policy, ReplayTarget, Warning, judge
from tests.unit.test_preflight import GOOD

HERE = Handling(
    destination="t.orders",
    agent="orders",
    versions=("1.0",),
    mode="TRANSACTED",
    ordered=False,
    max_attempts=10,
    delay_ms=5000,
    multiplier=2.0,
    after_last="dlq",
    exception_destination="",
    duplicate_key="",
    duplicate_window_seconds=0.0,
    handling_timeout_seconds=0.0,
    masked_properties=(),
)
OTHERS: dict[str, tuple[Any, str]] = {
    "destination": ("t.archive", "Destination: t.orders → t.archive."),
    "agent": ("archive", "Agent: orders → archive."),
    "versions": ((), "Versions on online servers: 1.0 → none."),
    "mode": ("AUTO", "Acknowledgement mode: transacted → auto acknowledge."),
    "ordered": (True, "Ordered: no → yes."),
    "max_attempts": (-1, "Maximum attempts: 10 → unlimited."),
    "delay_ms": (0, "Redelivery delay: 5 s → none."),
    "multiplier": (1.25, "Delay multiplier: 2 → 1.25."),
    "after_last": (
        "stay",
        "After the last attempt: dead-letter queue → keep first (ordered subscriptions only).",
    ),
    "exception_destination": ("t.bad", "Exception destination: none → t.bad."),
    "duplicate_key": ("property:id", "Identify repeats by: none → property:id."),
    "duplicate_window_seconds": (86_400.0, "Period for detecting repeats: none → 1 d."),
    "handling_timeout_seconds": (90.0, "Processing timeout: none → 1 min\xa030 s."),
    "masked_properties": (
        ("card", "iban"),
        ("Masked properties: none → card, iban. The masks of the other setting apply to these messages."),
    ),
}


def test_settings_that_handle_alike_differ_in_nothing() -> None:
    assert differences(HERE, HERE, ()) == ()
    assert differences(HERE, HERE, (0, 0)) == ()


@pytest.mark.parametrize("code", [each.name for each in fields(Handling)])
def test_each_point_that_differs_is_said_with_both_values(code: str) -> None:
    other, words = OTHERS[code]
    there = replace(HERE, **{code: other})
    (found,) = differences(HERE, there, ())
    assert found == Difference(code, getattr(HERE, code), other)
    assert text.difference_words(found).sentence == words
    assert differences(there, HERE, ()) == (Difference(code, other, getattr(HERE, code)),)


@given(st.lists(st.sampled_from(sorted(OTHERS)), unique=True))
def test_as_many_are_said_as_there_are(changed: list[str]) -> None:
    there = replace(HERE, **{code: OTHERS[code][0] for code in changed})
    assert {each.code for each in differences(HERE, there, ())} == set(changed)


@pytest.mark.parametrize(
    ("attempts", "words"),
    [((3,), "Attempts so far: 3 → 0."), ((10, 0, 4), "Attempts so far: 0 to 10 → 0.")],
)
def test_the_attempts_so_far_count_for_nothing_there(attempts: tuple[int, ...], words: str) -> None:
    (found,) = differences(HERE, HERE, attempts)
    assert found == Difference("attempted", (min(attempts), max(attempts)), (0, 0))
    assert text.difference_words(found).sentence.startswith(words)


def test_every_code_has_its_words() -> None:
    assert list(text.DIFFERENCES) == list(CODES)


def test_they_are_one_warning_and_stand_in_the_verdict() -> None:
    found = differences(HERE, replace(HERE, destination="t.archive", ordered=True), (7,))
    place = ReplayTarget("archive", "archive", consumers=1, servers=1, differences=found)
    verdict = judge([(GOOD, "")], Policy("redirect", node_id="node-1"), place, total=None)
    assert verdict.warnings == (Warning(OTHER_DESTINATION, n=3),) and verdict.differences == found
    assert "The setting belongs to another destination: 3 processing parameters differ." in text.sentence(
        verdict.warnings[0]
    )
    none = judge([(GOOD, "gone")], Policy("redirect"), place, total=None)
    assert none.warnings == (), "where nothing goes there is nothing to acknowledge"
