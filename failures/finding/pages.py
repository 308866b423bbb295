"""The list page by page, to what is older and back to what is newer."""

from collections.abc import Sequence
from dataclasses import dataclass

from failures.finding.asked import Asked
from failures.finding.search import Count, Found, Place, count, newer_than, newest, older_than
from failures.models import FailureProtocol

# Long, and of one protocol only: not in lists.
WHOLE_ONLY = ("traceback", "properties")


@dataclass(frozen=True, slots=True)
class Part:
    """`places` newest first. What is older lies below `older`, what is newer above `newer`; None: nothing
    does. `stopped_at`: so far was looked, in the time there was."""

    places: Sequence[Place]
    older: Place | None = None
    newer: Place | None = None
    stopped_at: Place | None = None


def listed(asked: Asked, *, before: Place | None, after: Place | None, size: int) -> tuple[Part, Count]:
    """`part_of`, and how many match in all."""
    if before is None and after is None:
        found, counted = newest(asked, size + 1)
        return _downwards(found, None, size), counted
    return part_of(asked, before=before, after=after, size=size), count(asked)


def part_of(asked: Asked, *, before: Place | None = None, after: Place | None = None, size: int) -> Part:
    """What is above `after` where there is enough of it, else what is below `before`, else the newest."""
    if after is not None:
        found = newer_than(asked, after, size + 1)
        if len(found.places) > size:
            places = found.places[-size:]
            return Part(places, older=places[-1], newer=places[0])
        if found.stopped_at is not None:
            older = found.places[-1] if found.places else after
            return Part(found.places, older=older, newer=found.stopped_at, stopped_at=found.stopped_at)
        before = None
    return _downwards(older_than(asked, before, size + 1), before, size)


def _downwards(found: Found, before: Place | None, size: int) -> Part:
    """`found`: one more than `size`, where there is one."""
    places = found.places[:size]
    older_end = places[-1] if len(found.places) > size else found.stopped_at
    newer_end = (places[0] if places else before) if before is not None else None
    return Part(places, older=older_end, newer=newer_end, stopped_at=found.stopped_at)


def protocols_at(places: Sequence[Place]) -> list[FailureProtocol]:
    """Without what is long, in the order of `places`. What was deleted meanwhile is not among them."""
    rows = FailureProtocol.objects.defer(*WHOLE_ONLY).in_bulk([place.key for place in places])
    return [rows[place.key] for place in places if place.key in rows]
