"""A standalone agent has no broker that fences it: its lease ends it before its successor may begin."""

import pytest

from tests.product.three_servers import truth
from tests.product.three_servers.hall import Hall
from tests.product.three_servers.truth import Event

# The lease is 15 s, and nobody takes over before ten more have passed; with generous room for a busy machine.
TAKEN_OVER_WITHIN = 90


def test_a_standalone_agent_cut_off_from_the_ma_ends_before_its_successor_begins(hall: Hall) -> None:
    key = "lonely"
    hall.standalone(key)
    hall.until("it is at work", lambda: len(_beats(hall, key)) > 10)
    holder = hall.kmas[_beats(hall, key)[0].server]
    holder.to_ma.cut()
    hall.until(
        "a successor is at work", lambda: _servers(hall, key) - {holder.server} != set(), TAKEN_OVER_WITHIN
    )
    holder.to_ma.mend()
    hall.until("the old one is told", lambda: not hall.wanted(key, holder.server))
    _one_after_the_other(hall, key)


@pytest.mark.night
def test_a_frozen_kma_does_not_keep_its_standalone_agent_beyond_the_lease(hall: Hall) -> None:
    key = "lonely-frozen"
    hall.standalone(key)
    hall.until("it is at work", lambda: len(_beats(hall, key)) > 10)
    holder = hall.kmas[_beats(hall, key)[0].server]
    holder.freeze()
    hall.until(
        "a successor is at work", lambda: _servers(hall, key) - {holder.server} != set(), TAKEN_OVER_WITHIN
    )
    holder.wake()
    hall.until("the old one is told", lambda: not hall.wanted(key, holder.server))
    _one_after_the_other(hall, key)


def _one_after_the_other(hall: Hall, key: str) -> None:
    """Signs of life never alternate: who has begun after another is not followed by that one."""
    order = [event.server for event in _beats(hall, key)]
    changes = [one for one, before in zip(order, [None, *order], strict=False) if one != before]
    assert len(changes) == 2, f"at work in turns: {changes}"


def _beats(hall: Hall, key: str) -> list[Event]:
    return truth.read(hall.truth_folder, key, "beat")


def _servers(hall: Hall, key: str) -> set[str]:
    return {event.server for event in _beats(hall, key)}
