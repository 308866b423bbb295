"""Filters as the memory broker understands them."""

import pytest

from broker.management.desired_topology import WITHOUT_ORIGIN
from broker.memory.filters import predicate
from broker.port import Message
from contract.typed import Typed


def letter(queue: str | None) -> Message:
    origin = {} if queue is None else {"x-opt-ORIG-QUEUE": Typed("string", queue)}
    return Message(annotations=origin)


def test_what_has_no_origin_is_told_from_what_has_one() -> None:
    matches = predicate(WITHOUT_ORIGIN)
    assert [matches(letter(queue)) for queue in ("orders", None)] == [False, True]


def test_filters_that_the_memory_broker_does_not_know_are_refused() -> None:
    with pytest.raises(ValueError):
        predicate("JMSPriority BETWEEN 1 AND 5")


@pytest.mark.parametrize("wrong", ["(a = 1", "a = 1)", "a = 1 AND", "OR a = 1", "a = 1 b = 2", "a", "()"])
def test_a_filter_that_is_no_filter_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="Invalid filter"):
        predicate(wrong)


def test_quotes_and_parentheses_in_a_text_are_text() -> None:
    matches = predicate(
        "_AMQ_ORIG_QUEUE = 'it''s (one) AND two' OR (_AMQ_ORIG_QUEUE = 'x' AND _AMQ_ORIG_QUEUE <> 'y')"
    )
    assert [matches(letter(queue)) for queue in ("it's (one) AND two", "x", "y")] == [True, True, False]
