"""Batches without the search for cycles."""

import gc

import pytest

from dlq.index.store import uncollected


@uncollected
def batch(value: int) -> bool:
    if value < 0:
        raise ValueError("negative")
    return gc.isenabled()


def test_nothing_is_collected_within_a_batch_and_everything_after_it() -> None:
    assert not batch(1)
    with pytest.raises(ValueError, match="negative"):
        batch(-1)
    assert gc.isenabled()


def test_who_switched_the_collector_off_finds_it_off() -> None:
    gc.disable()
    try:
        batch(1)
        assert not gc.isenabled()
    finally:
        gc.enable()
