"""What the new blocks touch: hours, days and stretches of time. Pure."""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from pipeline.archive.manifests import Manifest

HOUR = timedelta(hours=1)
# Files are chosen by so many stretches of time at most.
MOST_STRETCHES = 20

Stretch = tuple[datetime, datetime]  # half-open


def hours_between(since: datetime, until: datetime) -> list[datetime]:
    """Those that begin before `until` and end after `since`."""
    hour = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    found = []
    while hour < until:
        found.append(hour)
        hour += HOUR
    return found


def days_of(hours: Iterable[datetime], zone: str) -> list[date]:
    """In order. An hour may be of two days where a zone is off by a part of an hour."""
    of = ZoneInfo(zone)
    ends = (end for hour in hours for end in (hour, hour + HOUR - timedelta(microseconds=1)))
    return sorted({end.astimezone(of).date() for end in ends})


def stretch_of(day: date, zone: str) -> Stretch:
    """23, 24 or 25 hours."""
    of = ZoneInfo(zone)
    first, last = (datetime.combine(each, time(), of) for each in (day, day + timedelta(days=1)))
    return first.astimezone(UTC), last.astimezone(UTC)


def stretches(pieces: Iterable[Stretch]) -> list[Stretch]:
    """What covers them: the smallest gaps are closed until there are MOST_STRETCHES."""
    found: list[Stretch] = []
    for first, last in sorted(pieces):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    while len(found) > MOST_STRETCHES:
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(found)]
        at = gaps.index(min(gaps))
        found[at : at + 2] = [(found[at][0], found[at + 1][1])]
    return found


def blocks_that_hold(manifests: Collection[Manifest], wanted: Sequence[Stretch]) -> list[int]:
    """Of which rows can have occurred then, or were received then: a clock that is not believed says
    nothing."""
    texts = [(_text(first), _text(last)) for first, last in wanted]
    return [each.block for each in manifests if any(_holds(each, first, last) for first, last in texts)]


def _holds(manifest: Manifest, first: str, last: str) -> bool:
    if manifest.overlaps(first, last) or manifest.occurred_min is None or manifest.occurred_max is None:
        return True
    return manifest.occurred_min < last and first <= manifest.occurred_max


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
