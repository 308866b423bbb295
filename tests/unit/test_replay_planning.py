"""A replay's slices name their letters; the figures of the queue, or a walk, tell what left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.management.dead_letters import NAMED, SLICE
from dlq.index.walk_ids import Numbers
from dlq.replay.rules.slices import (
    Candidate,
    Figures,
    Mover,
    SliceResult,
    by_ids,
    chunks,
    judge_slice,
    left_by,
    mover_of,
    parts_of,
    slice_result,
)

LETTERS = st.lists(st.integers(0, 10_000), unique=True)
ITEMS = st.lists(st.tuples(st.integers(), st.integers(0, 50)), unique_by=lambda item: item[0])


def _seen(numbers: set[int]) -> Numbers:
    found = Numbers()
    found.add(numbers)
    return found


SEEN = st.sets(st.integers(0, 50)).map(_seen)


@given(LETTERS, st.integers(1, 700), st.lists(st.integers(0, 30), max_size=5))
def test_every_letter_is_in_one_chunk_in_the_order_of_ids(
    numbers: list[int], largest: int, rooms: list[int]
) -> None:
    letters = [Candidate(letter, number) for letter, number in enumerate(numbers)]
    made = list(chunks(letters, largest, iter([*rooms, *[largest] * 10_001])))
    assert [each.number for chunk in made for each in chunk] == sorted(numbers)
    assert all(0 < len(chunk) <= largest for chunk in made)
    assert all(len(chunk) <= max(1, room) for chunk, room in zip(made, rooms, strict=False))


def test_without_limits_of_their_own_chunks_are_as_large_as_may_be() -> None:
    letters = [Candidate(letter, letter) for letter in range(5)]
    assert [len(chunk) for chunk in chunks(letters, 2)] == [2, 2, 1]


@given(LETTERS, st.integers(1, 30))
def test_a_move_by_ids_names_each_letter_once_and_no_more_than_are_asked_for(
    numbers: list[int], largest: int
) -> None:
    letters = [Candidate(letter, number) for letter, number in enumerate(numbers)]
    pieces = list(by_ids(letters, largest))
    assert [each for piece in pieces for each in piece] == letters
    assert all(0 < len(piece) <= largest for piece in pieces)


def test_a_move_by_ids_is_as_large_as_the_broker_takes() -> None:
    letters = [Candidate(letter, letter) for letter in range(2 * SLICE + 1)]
    assert [len(piece) for piece in by_ids(letters)] == [SLICE, SLICE, 1]


def test_who_consumes_makes_no_figures_differ() -> None:
    assert Figures(10, 40) == Figures(10, 40, consumers=3)
    assert Figures(10, 40).consumers == 0


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ((10, 10), (7, 10), 3),
        ((10, 10), (9, 12), 3),  # two died meanwhile
        ((10, 10), (10, 10), 0),
        ((10, 40), (6, 6), None),  # restarted: it counts anew
        ((10, 40), (46, 46), None),  # restarted long ago
        ((40, 40), (1, 10), None),  # restarted: nine of these are gone, and how many before that?
        ((10, 10), (11, 10), None),  # one more than could be
    ],
)
def test_figures_tell_how_many_left(
    before: tuple[int, int], after: tuple[int, int], left: int | None
) -> None:
    assert left_by(Figures(*before), Figures(*after)) == left


@pytest.mark.parametrize(
    ("left", "moved", "first", "verdict"),
    [
        (5, 5, True, SliceResult.GONE),
        (6, 5, True, SliceResult.GONE),  # others took one besides
        (4, 5, True, SliceResult.UNCLEAR),
        (5, 4, True, SliceResult.UNCLEAR),  # others took one of them, or one stayed
        (0, 0, True, SliceResult.STAYED),
        (1, 0, True, SliceResult.UNCLEAR),
        (5, 5, False, SliceResult.GONE),  # the try before moved none of them
        (
            5,
            0,
            False,
            SliceResult.LEFT,
        ),  # moved again after a crash: none of them is there, and nobody knows who took them
        (5, 2, False, SliceResult.LEFT),
        (6, 0, False, SliceResult.UNCLEAR),
        (0, 0, False, SliceResult.UNCLEAR),
        (5, None, True, SliceResult.UNCLEAR),
        (5, None, False, SliceResult.UNCLEAR),  # no move came to its end yet
        (None, 5, True, SliceResult.UNCLEAR),
    ],
)
def test_only_the_answer_of_the_broker_says_that_a_slice_of_five_was_moved_by_us(
    left: int | None, moved: int | None, first: bool, verdict: SliceResult
) -> None:
    assert slice_result(5, left, moved, first=first) is verdict


@given(ITEMS, SEEN, st.frozensets(st.integers(0, 50)))
def test_what_the_walk_saw_is_tried_again_until_it_is_stuck(
    items: list[tuple[int, int]], present: Numbers, held: frozenset[int]
) -> None:
    early = judge_slice(items, present, held, 2, patient=False)
    late = judge_slice(items, present, held, 3, patient=False)
    assert early.gone == late.gone == tuple(item for item, number in items if number not in present)
    assert (early.stuck, early.held, late.again, late.held) == ((), (), (), ())
    assert early.again == late.stuck == tuple(item for item, number in items if number in present)


@given(ITEMS, SEEN, st.frozensets(st.integers(0, 50)), st.integers(1, 3))
def test_what_another_consumer_has_in_delivery_is_waited_for(
    items: list[tuple[int, int]], present: Numbers, held: frozenset[int], tries: int
) -> None:
    verdict = judge_slice(items, present, held, tries, patient=True)
    numbers = dict(items)
    assert {numbers[item] for item in verdict.held} == {n for _, n in items if n in held and n in present}
    assert not {numbers[item] for item in (*verdict.again, *verdict.stuck)} & held
    assert sorted([*verdict.gone, *verdict.held, *verdict.again, *verdict.stuck]) == sorted(numbers)


@pytest.mark.parametrize(
    ("moved", "confirmed", "open_", "mover"),
    [
        (None, 0, 3, Mover.UNCLEAR),  # a move was not answered
        (0, 0, 3, Mover.OTHERS),
        (3, 3, 2, Mover.OTHERS),
        (3, 0, 3, Mover.OURS),
        (1, 0, 1, Mover.OURS),
        (5, 2, 3, Mover.OURS),
        (2, 0, 3, Mover.UNCLEAR),
        (4, 0, 3, Mover.UNCLEAR),  # a letter is not known yet
    ],
)
def test_who_took_what_is_gone_is_said_where_the_numbers_leave_nothing_else(
    moved: int | None, confirmed: int, open_: int, mover: Mover
) -> None:
    assert mover_of(moved, confirmed, open_) is mover


@given(st.integers(0, 9000), st.booleans())
def test_the_parts_of_a_move_are_few_and_hold_each_letter_once(letters: int, alone: bool) -> None:
    numbers = list(range(letters))
    parts = list(parts_of(numbers, alone=alone))
    assert [number for part in parts for number in part] == numbers
    assert len(parts) <= (letters // NAMED + 1 if alone else 100)
    assert alone or letters % 100 or {len(part) for part in parts} <= {letters // 100}
