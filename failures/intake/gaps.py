"""Numbers of a spool that were passed over: their records never came, and nothing else would tell that."""

from collections.abc import Iterator, Sequence

MOST_GAPS = 20  # kept per spool, the newest

Gap = tuple[int, int]


def gaps(stored_up_to: int, numbers: Sequence[int]) -> Iterator[Gap]:
    """(first, last) of what is missing between the mark and `numbers`, which are above it and ascending."""
    before = stored_up_to
    for number in numbers:
        if number > before + 1:
            yield before + 1, number - 1
        before = number


def size(found: Sequence[Gap]) -> int:
    return sum(last - first + 1 for first, last in found)


def newest_gaps(kept: Sequence[Sequence[int]], found: Sequence[Gap]) -> list[list[int]]:
    """Returns what a spool keeps, as JSON does, the oldest first."""
    return [list(gap) for gap in (*kept, *found)][-MOST_GAPS:]
