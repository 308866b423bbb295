"""Frames between a run and its children, cut from a stream in any pieces."""

from hypothesis import given
from hypothesis import strategies as st

from contract.outcomes import Outcome
from kma.handling import frames
from kma.handling.failure import failure
from kma.handling.handler import RETURNED, HandlingResult

FRAME = st.tuples(
    st.integers(0, 255), st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.binary(max_size=300)
)


@given(st.lists(FRAME, max_size=8), st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_frames_come_out_as_they_went_in_whatever_the_pieces(
    sent: list[frames.Frame], sizes: list[int]
) -> None:
    stream = b"".join(frames.frame(*one) for one in sent)
    reader, found, at, turn = frames.Frames(), [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += list(reader.feed(stream[at : at + size]))
        at, turn = at + size, turn + 1
    assert found == sent


@given(st.lists(st.tuples(st.text(min_size=1, max_size=30), st.binary(max_size=200)), min_size=1, max_size=5))
def test_sends_travel_whole(sends: list[tuple[str, bytes]]) -> None:
    handled = HandlingResult(Outcome.RETURNED, None, tuple(sends))
    ((kind, _, _, content),) = frames.Frames().feed(frames.handled_frame(3, handled))
    assert frames.read_handled(kind, content) == handled


def test_a_success_is_one_small_frame() -> None:
    encoded = frames.handled_frame(7, RETURNED)
    assert len(encoded) == frames.HEAD.size
    ((kind, slot, _, content),) = frames.Frames().feed(encoded)
    assert (frames.read_handled(kind, content), slot) == (RETURNED, 7)


@given(st.text(), st.text())
def test_a_failure_travels_with_its_words(text: str, trace: str) -> None:
    handled = HandlingResult(Outcome.TEMPORARY, failure("pkg.Kind", text, trace))
    ((kind, _, _, content),) = frames.Frames().feed(frames.handled_frame(1, handled))
    assert frames.read_handled(kind, content) == handled
