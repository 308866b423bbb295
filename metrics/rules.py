"""Minutes, hours and days as numbers since 1970 in UTC; what is counted in one, how it is added and shared;
and which of them answer for a range.

Pure. A day of people may have 23 or 25 hours: a range is two instants, and every span here is one of UTC.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

# Of a span, in minutes.
MINUTE, HOUR, DAY = 1, 60, 24 * 60
# How long each is kept, in minutes.
MINUTES_KEPT, HOURS_KEPT, DAYS_KEPT = 48 * HOUR, 30 * DAY, 365 * DAY
KEPT: Mapping[int, int] = {MINUTE: MINUTES_KEPT, HOUR: HOURS_KEPT, DAY: DAYS_KEPT}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def minute_of(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(minutes=1)


def instant(minute: int) -> datetime:
    return _EPOCH + timedelta(minutes=minute)


# -- what is counted in a span -------------------------------------------------------------------------------

COUNTS = ("succeeded", "failed", "temporary", "recovered", "bytes", "no_timestamp", "before_sent")
SECONDS = ("busy_seconds", "capacity_seconds", "spool_seconds")
PLAIN = (*COUNTS, *SECONDS, "children_bytes")
HISTOGRAMS = ("processing", "critical")
# The fields of `Figures`, in their order.
FIGURES = (*PLAIN, *HISTOGRAMS)


@dataclass(slots=True)
class Figures:
    """`contract.records.MinuteFigures` of one run or of many. `capacity_seconds`: handlings that could run at
    once, times the seconds that they could; `children_bytes`: the most of one run."""

    succeeded: int = 0
    failed: int = 0
    temporary: int = 0
    recovered: int = 0
    bytes: int = 0
    no_timestamp: int = 0
    before_sent: int = 0
    busy_seconds: float = 0.0
    capacity_seconds: float = 0.0
    spool_seconds: float = 0.0
    children_bytes: int = 0
    processing: dict[int, int] = field(default_factory=dict)
    critical: dict[int, int] = field(default_factory=dict)

    def add(self, other: "Figures") -> None:
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.temporary += other.temporary
        self.recovered += other.recovered
        self.bytes += other.bytes
        self.no_timestamp += other.no_timestamp
        self.before_sent += other.before_sent
        self.busy_seconds += other.busy_seconds
        self.capacity_seconds += other.capacity_seconds
        self.spool_seconds += other.spool_seconds
        self.children_bytes = max(self.children_bytes, other.children_bytes)
        for mine, more in ((self.processing, other.processing), (self.critical, other.critical)):
            for bucket, number in more.items():
                mine[bucket] = mine.get(bucket, 0) + number


# A record of about a minute belongs to the one in which it begins: KMAs end theirs a moment after it is over.
_ONE = timedelta(seconds=90)
# Longer ones are shared evenly among minutes, hours or days: never among thousands.
_PIECES = ((timedelta(hours=6), MINUTE), (timedelta(days=31), HOUR), (timedelta.max, DAY))


def is_long(start: datetime, end: datetime) -> bool:
    """Returns whether it is shared among several minutes."""
    return end - start > _ONE


def shared(figures: Figures, start: datetime, end: datetime) -> Iterator[tuple[int, Figures]]:
    """Yields (minute, its share): together exactly what was given."""
    first, length = minute_of(start), end - start
    if not is_long(start, end):
        yield first, figures
        return
    unit = next(unit for most, unit in _PIECES if length <= most)
    number = round(length / timedelta(minutes=unit))
    for piece in range(number):
        yield first + piece * unit, _share(figures, piece, number)


def _share(of: Figures, piece: int, number: int) -> Figures:
    def part(value: int) -> int:
        return value * (piece + 1) // number - value * piece // number

    def parts(histogram: Mapping[int, int]) -> dict[int, int]:
        return {bucket: few for bucket, all_ in histogram.items() if (few := part(all_))}

    return Figures(
        **{name: part(getattr(of, name)) for name in COUNTS},
        **{name: getattr(of, name) / number for name in SECONDS},
        children_bytes=of.children_bytes,
        processing=parts(of.processing),
        critical=parts(of.critical),
    )


# -- when it was, by a clock that may be wrong ---------------------------------------------------------------

# Below it a clock is right, and the delay of the network moves nothing.
SKEW_BELIEVED = 30.0


def believed(
    occurred_at: datetime, until: datetime, *, skew: float | None, received_at: datetime
) -> tuple[datetime, datetime]:
    """Returns from when to when it was by the MA's clock. `skew`: seconds by which the KMA's was ahead when
    it sent. What would be in the future, or longer ago than anything is kept, is of the moment of its
    receipt."""
    length = until - occurred_at
    if skew is not None and abs(skew) > SKEW_BELIEVED:
        try:
            occurred_at -= timedelta(seconds=skew)
        except OverflowError:
            occurred_at = received_at
    occurred_at = min(occurred_at, received_at)
    if occurred_at < received_at - timedelta(minutes=DAYS_KEPT):
        occurred_at = received_at
    most = received_at - occurred_at + timedelta(seconds=SKEW_BELIEVED)
    return occurred_at, occurred_at + min(length, most)


# -- histograms as stored text -------------------------------------------------------------------------------
# `40:3,17,5 60:1`: buckets 40 to 42, and 60. Half of what the wire needs, because durations lie side by side.

# So many empty buckets are written rather than a new beginning.
_BRIDGED = 2


def as_text(histogram: Mapping[int, int]) -> str:
    runs: list[tuple[int, list[int]]] = []
    for index in sorted(histogram):
        if not histogram[index]:
            continue
        missing = index - runs[-1][0] - len(runs[-1][1]) if runs else None
        if missing is None or missing > _BRIDGED:
            runs.append((index, []))
        else:
            runs[-1][1].extend([0] * missing)
        runs[-1][1].append(histogram[index])
    return " ".join(f"{first}:{','.join(map(str, numbers))}" for first, numbers in runs)


def add_text(into: dict[int, int], text: str) -> None:
    """Adds what `as_text` wrote, once or several times with blanks between."""
    for run in text.split():
        first, _colon, numbers = run.partition(":")
        for index, number in enumerate(map(int, numbers.split(",")), int(first)):
            if number:
                into[index] = into.get(index, 0) + number


def of_text(text: str) -> dict[int, int]:
    found: dict[int, int] = {}
    add_text(found, text)
    return found


# -- minutes of an hour as bytes -----------------------------------------------------------------------------


def pack_minutes(minutes: Mapping[int, Figures]) -> bytes:
    rows = [
        [
            minute,
            *(round(getattr(each, name), 3) for name in PLAIN),
            *(as_text(getattr(each, name)) for name in HISTOGRAMS),
        ]
        for minute, each in sorted(minutes.items())
    ]
    return zlib.compress(json.dumps(rows).encode())


def unpack_minutes(data: bytes) -> dict[int, Figures]:
    found = {}
    for minute, *plain, processing, critical in json.loads(zlib.decompress(data)):
        found[minute] = Figures(*plain)
        add_text(found[minute].processing, processing)
        add_text(found[minute].critical, critical)
    return found


# -- which spans answer for a range --------------------------------------------------------------------------

STEPS = (1, 2, 5, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY)
MOST_POINTS = 400
# Of a longer range minutes are not read: an hour of it is finer than a picture.
_BY_MINUTES = 25 * HOUR
# A minute that is over arrives within so long, as its KMA sends it and it is folded in.
ARRIVES_WITHIN = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Axis:
    """`first` and `end` in minutes, `first` a multiple of `step`; `unit`: of the rows to read."""

    step: int
    unit: int
    first: int
    end: int

    @property
    def points(self) -> range:
        """Returns their first minutes."""
        return range(self.first, self.end, self.step)


def axis(
    start: datetime, end: datetime, now: datetime, *, most: int = MOST_POINTS, by_minutes: int = _BY_MINUTES
) -> Axis:
    """Returns the finest of at most so many points, or else of days. What is not kept any more, or has not
    arrived yet, is cut off."""
    present = minute_of(now - ARRIVES_WITHIN)
    first = max(minute_of(max(start, _EPOCH)), minute_of(now) - DAYS_KEPT)
    last = min(_minute_from(end), present)
    if last <= first:
        return Axis(MINUTE, MINUTE, present, present)
    finest = _finest(first, minute_of(now))
    if last - first > by_minutes:
        finest = max(finest, HOUR)
    for step in STEPS:
        begin = first // step * step
        if step >= finest and -(-(last - begin) // step) <= most:
            break
    return Axis(step, DAY if step >= DAY else HOUR if step >= HOUR else MINUTE, begin, last)


def _minute_from(at: datetime) -> int:
    """Returns the first minute that begins at it or after it."""
    return -((_EPOCH - at) // timedelta(minutes=1))


def _finest(first: int, present: int) -> int:
    return next(unit for unit in (MINUTE, HOUR, DAY) if unit == DAY or first >= present - KEPT[unit])


def cover(start: datetime, end: datetime, now: datetime) -> Iterator[tuple[int, int, int]]:
    """Yields (unit, from, before) in numbers of that unit: together the range, in as few spans as there are.
    An edge of which no minutes are kept is moved outwards to the whole hour or day."""
    present = minute_of(now)
    first = max(minute_of(max(start, _EPOCH)), present - DAYS_KEPT)
    last = min(_minute_from(end), present + 1)
    fine, coarse = _finest(first, present), _finest(last, present)
    yield from _cover(first // fine * fine, -(-last // coarse) * coarse, (DAY, HOUR, MINUTE))


def _cover(first: int, end: int, units: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    if first >= end or not units:
        return
    unit, *finer = units
    begin, over = -(-first // unit), end // unit
    if begin >= over:
        yield from _cover(first, end, tuple(finer))
        return
    yield from _cover(first, begin * unit, tuple(finer))
    yield unit, begin, over
    yield from _cover(over * unit, end, tuple(finer))
