"""A replay's slices name their letters; the figures of the queue, or a walk, tell what left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.letters import SLICE
from dlq.replay.planning import MOST_TRIES, Candidate, Figures, Told, by_ids, chunks, judge, left_by, told
from dlq.walking import Numbers

LETTERS = st.lists(st.integers(0, 10_000), unique=True)
ITEMS = st.lists(st.tuples(st.integers(), st.integers(0, 50)), unique_by=lambda item: item[0])


def _seen(numbers: set[int]) -> Numbers:
    found = Numbers()
    found.add(numbers)
    return found


SEEN = st.sets(st.integers(0, 50)).map(_seen)


@given(LETTERS, st.integers(1, 700), st.lists(st.integers(0, 30), max_size=5))
def test_every_letter_is_in_one_chunk_in_the_order_of_ids(numbers: list[int], largest: int, rooms: list[int]) -> None:
    letters = [Candidate(letter, number) for letter, number in enumerate(numbers)]
    made = list(chunks(letters, largest, iter([*rooms, *[largest] * 10_001])))
    assert [each.number for chunk in made for each in chunk] == sorted(numbers)
    assert all(0 < len(chunk) <= largest for chunk in made)
    assert all(len(chunk) <= max(1, room) for chunk, room in zip(made, rooms, strict=False))


@given(LETTERS)
def test_a_move_by_ids_names_no_more_than_the_broker_is_asked_for_at_once(numbers: list[int]) -> None:
    letters = [Candidate(letter, number) for letter, number in enumerate(numbers)]
    pieces = list(by_ids(letters))
    assert [each for piece in pieces for each in piece] == letters
    assert all(0 < len(piece) <= SLICE for piece in pieces)


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ((10, 10), (7, 10), 3),
        ((10, 10), (9, 12), 3),  # two died meanwhile
        ((10, 10), (10, 10), 0),
        ((10, 40), (6, 6), None),  # restarted: it counts anew
        ((10, 40), (46, 46), None),  # restarted long ago
    ],
)
def test_figures_tell_how_many_left(before: tuple[int, int], after: tuple[int, int], left: int | None) -> None:
    assert left_by(Figures(*before), Figures(*after)) == left


@pytest.mark.parametrize(
    ("left", "moved", "verdict"),
    [
        (5, 5, Told.GONE),
        (6, 5, Told.GONE),  # another one expired
        (4, 5, Told.UNCLEAR),
        (5, 4, Told.UNCLEAR),  # one stayed, and another one expired
        (0, 0, Told.STAYED),
        (1, 0, Told.UNCLEAR),
        (5, None, Told.GONE),  # moved again after a crash: none of them is there
        (6, None, Told.UNCLEAR),
        (0, None, Told.UNCLEAR),  # nothing left since the first try, or the broker was restarted
        (None, 5, Told.UNCLEAR),
    ],
)
def test_a_slice_of_five_is_told_by_figures_and_by_the_word_of_the_broker(
    left: int | None, moved: int | None, verdict: Told
) -> None:
    assert told(5, left, moved) is verdict


@given(ITEMS, SEEN)
def test_what_the_walk_saw_is_tried_again_until_it_is_stuck(items: list[tuple[int, int]], present: Numbers) -> None:
    early, late = judge(items, present, 1, None), judge(items, present, MOST_TRIES, None)
    assert early.left == late.left == tuple(item for item, number in items if number not in present)
    assert (early.stuck, late.again) == ((), ())
    assert early.again == late.stuck


@given(ITEMS, SEEN, st.integers(0, 60))
def test_of_what_is_gone_no_more_is_said_to_be_moved_than_left(
    items: list[tuple[int, int]], present: Numbers, left: int
) -> None:
    verdict = judge(items, present, 1, left)
    gone = [item for item, number in items if number not in present]
    assert [*verdict.missing, *verdict.left] == gone
    assert len(verdict.left) == min(left, len(gone))
    assert verdict.uncertain == bool(verdict.missing and verdict.left)
