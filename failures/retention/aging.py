"""What is kept for a time of its own: rows by primary keys that are picked by an index, a chunk at a time."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from failures.retention.applying import TurnOver
from failures.retention.chunks import Chunks

Key = TypeVar("Key")


def before(now: datetime, days: int) -> datetime | None:
    """None: kept for ever."""
    return now - timedelta(days=days) if days else None


def delete_all(
    what: str, pick: Callable[[int], Sequence[Any]], delete: Callable[[Sequence[Any]], int], chunks: Chunks
) -> None:
    """`pick(n)` answers up to n keys of what is over; `delete(keys)` deletes them, in the transaction that
    counts them. Ends when there are none. Raises TurnOver."""
    while True:
        if chunks.over:
            raise TurnOver
        keys = pick(chunks.size)
        if not keys:
            return
        chunks.delete(what, partial(delete, keys))


def some_at_a_time(keys: Sequence[Key], chunks: Chunks) -> Iterator[Sequence[Key]]:
    """Parts of one chunk each. Raises TurnOver."""
    rest = list(keys)
    while rest:
        if chunks.over:
            raise TurnOver
        some, rest = rest[: chunks.size], rest[chunks.size :]
        yield some
