"""The filter of the queue for nobody's letters."""

import pytest

from broker.catch_all import catch_all_filter, keys_of
from broker.memory_filters import predicate
from broker.port import Message
from contract.typed import Typed


def letter(queue: str | None) -> Message:
    origin = {} if queue is None else {"x-opt-ORIG-QUEUE": Typed("string", queue)}
    return Message(annotations=origin)


@pytest.mark.parametrize("keys", [(), ("orders",), ("b", "a", "c-1")])
def test_the_keys_can_be_read_back(keys: tuple[str, ...]) -> None:
    assert keys_of(catch_all_filter(keys)) == frozenset(keys)


def test_a_filter_of_somebody_else_is_not_taken_for_ours() -> None:
    assert keys_of("") is None
    assert keys_of("_AMQ_ORIG_QUEUE = 'x'") is None


def test_it_takes_what_has_no_queue_of_its_own_also_without_an_origin() -> None:
    matches = predicate(catch_all_filter(("orders", "bills")))
    assert [matches(letter(queue)) for queue in ("orders", "bills", "other", None)] == [False, False, True, True]
    matches = predicate(catch_all_filter(()))
    assert [matches(letter(queue)) for queue in ("orders", None)] == [True, True]


def test_a_key_that_would_break_out_of_the_filter_is_refused() -> None:
    with pytest.raises(ValueError):
        catch_all_filter(("a' OR 1=1 OR 'x",))


def test_the_memory_broker_refuses_filters_that_it_does_not_know() -> None:
    with pytest.raises(ValueError):
        predicate("JMSPriority BETWEEN 1 AND 5")
