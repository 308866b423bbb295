"""A replay's slices name their letters, and only a walk says what left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlq.replay.planning import MOST_TRIES, SLICE, Candidate, Progress, Step, judge, next_step, plan


@pytest.mark.parametrize(
    ("progress", "step"),
    [
        (Progress(planned=False, to_move=0, to_check=0), Step.PLAN),
        (Progress(planned=False, to_move=2, to_check=0), Step.PLAN),
        (Progress(planned=True, to_move=2, to_check=3), Step.MOVE),
        (Progress(planned=True, to_move=0, to_check=3), Step.CHECK),
        (Progress(planned=True, to_move=0, to_check=0), Step.FINISH),
    ],
)
def test_nothing_moves_before_everything_is_planned_and_nothing_ends_unchecked(progress: Progress, step: Step) -> None:
    assert next_step(progress) is step


@given(st.lists(st.integers(0, 10_000), unique=True), st.sets(st.integers(0, 10_000)))
def test_every_letter_is_in_one_slice_or_missing(numbers: list[int], present: set[int]) -> None:
    candidates = [Candidate(letter, number) for letter, number in enumerate(numbers)]
    made = plan(candidates, present)
    placed = [candidate for piece in made.slices for candidate in piece]
    assert sorted([*placed, *made.missing], key=lambda one: one.letter) == candidates
    assert all(candidate.number in present for candidate in placed)
    assert all(0 < len(piece) <= SLICE for piece in made.slices)


@given(
    st.lists(st.tuples(st.integers(), st.integers(0, 50)), unique_by=lambda item: item[0]), st.sets(st.integers(0, 50))
)
def test_what_the_walk_saw_is_tried_again_until_it_is_stuck(items: list[tuple[int, int]], present: set[int]) -> None:
    early, late = judge(items, present, 1), judge(items, present, MOST_TRIES)
    assert early.left == late.left == tuple(item for item, number in items if number not in present)
    assert (early.stuck, late.again) == ((), ())
    assert early.again == late.stuck
