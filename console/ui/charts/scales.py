"""Describes the two axes of a chart: round values beside it, and round instants or labels below it."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import pairwise

from django.utils.formats import date_format, get_format
from django.utils.translation import gettext as _

from console.ui.amounts import duration, instant, number, size

# -- values --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """What values of a chart are: how they are written, short beside the axis, and their round steps, of
    which those above the last one are multiples by ten."""

    written: Callable[[float], str]
    short: Callable[[float], str]
    steps: tuple[float, ...] = field(repr=False)
    whole: bool = False


def three_digits(value: float) -> str:
    """Three digits that count, or all of a number above 1,000: `0.00234`, `12.3`, `1,234,567`."""
    if value == 0 or abs(value) >= 100:
        return number(value) if abs(value) < 1e15 else f"{value:.2e}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return number(value, digits) if digits <= 8 else f"{value:.2e}"


def compact(value: float) -> str:
    """`950`, `12 k`, `1.5 M`, for the little room beside an axis."""
    words = ((1e12, _("%(n)s tn")), (1e9, _("%(n)s bn")), (1e6, _("%(n)s M")), (1e4, _("%(n)s k")))
    if abs(value) >= 1e15:
        return f"{value:.0e}"
    for least, text in words:
        if abs(value) >= least:
            return text % {"n": three_digits(value / (1000 if least == 1e4 else least))}
    return three_digits(value)


def percent(value: float) -> str:
    return f"{three_digits(value)}\N{NO-BREAK SPACE}%"


def _decades(*digits: float) -> tuple[float, ...]:
    return tuple(digit * 10.0**power for power in range(-9, 16) for digit in digits)


_SPANS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000)
_SECONDS = (*_decades(1, 2, 5)[:27], 1, 2, 5, 10, 15, 30, *_SPANS)
AMOUNT = Unit(three_digits, compact, _decades(1, 2, 5))
COUNT = Unit(three_digits, compact, _decades(1, 2, 5), whole=True)
SECONDS = Unit(duration, duration, _SECONDS)
BYTES = Unit(
    lambda value: size(round(value)), lambda value: size(round(value)), tuple(2.0**n for n in range(60))
)
PERCENT = Unit(percent, percent, _decades(1, 2, 5))
LINES = 4


def value_ticks(most: float, unit: Unit) -> list[float]:
    """Returns 0 and round values above it, the last of which is at least `most`."""
    if not most > 0:
        return [0.0, 1.0]
    wanted = most / LINES
    place = bisect_left(unit.steps, wanted * (1 - 1e-9))
    step = unit.steps[place] if place < len(unit.steps) else _beyond(wanted, unit.steps[-1])
    if unit.whole:
        step = max(1.0, step)
    return [step * index for index in range(max(1, math.ceil(most / step - 1e-9)) + 1)]


def _beyond(wanted: float, last: float) -> float:
    return float(last * 10.0 ** math.ceil(math.log10(wanted / last)))


# -- time ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AxisPlace:
    """Where a point is drawn, in percent of the width, and what its row of the table begins with."""

    left: float
    width: float
    label: str
    instant: datetime | None = None

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


@dataclass(frozen=True, slots=True)
class Tick:
    """`form`: time, moment (a time of one of several days), day, month or year; pages.js writes it so in the
    reader's zone."""

    at: float
    label: str
    instant: datetime | None = None
    form: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """`span`: from when until when, where it is one of time."""

    places: Sequence[AxisPlace]
    ticks: Sequence[Tick]
    span: tuple[datetime, datetime] | None = None

    def percent(self, at: datetime) -> float | None:
        """None where there is no such place."""
        if self.span is None or not self.span[0] <= at <= self.span[1]:
            return None
        return _percent(at, *self.span)


def by_label(labels: Sequence[tuple[str, datetime | None]]) -> Axis:
    """Points side by side, whatever lies between them."""
    width = 100 / max(1, len(labels))
    every = max(1, math.ceil(len(labels) / 10))
    places = [AxisPlace(index * width, width, label, at) for index, (label, at) in enumerate(labels)]
    ticks = [Tick(place.middle, place.label, place.instant, "day") for place in places[::every]]
    return Axis(places, ticks)


def over_time(edges: Sequence[datetime], zone: tzinfo) -> Axis:
    """`edges`: the begin of each point, and the end of the last one."""
    if len(edges) < 2:
        return Axis((), ())
    start, end = edges[0], edges[-1]
    days = edges[1] - start >= timedelta(hours=23)
    places = []
    for begin, over in pairwise(edges):
        left = _percent(begin, start, end)
        label = date_format(begin.astimezone(zone), "DATE_FORMAT") if days else instant(begin)
        places.append(AxisPlace(left, _percent(over, start, end) - left, label, None if days else begin))
    ticks = time_ticks(start, end, zone)
    # Days are those of the site, whichever zone the reader is in.
    return Axis(places, [replace(each, instant=None) for each in ticks] if days else ticks, (start, end))


def _percent(at: datetime, start: datetime, end: datetime) -> float:
    return 100 * (at - start) / (end - start)


MOST_TICKS = 9
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_DAYS = (1, 2, 4, 7, 14)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240)
# {form: what is taken of the format of a date, such as `j M Y`}
FORMS = {"day": slice(0, 3), "month": slice(2, None), "year": slice(-1, None)}


def time_ticks(start: datetime, end: datetime, zone: tzinfo) -> list[Tick]:
    """Returns round instants of the zone between both, at most MOST_TICKS; days of 23 and 25 hours have their
    own length."""
    for instants in _tries(start, end, zone):
        if len(instants) <= MOST_TICKS:
            return [_tick(at, form, start, end) for at, form in instants]
    return []


def _tick(at: datetime, form: str, start: datetime, end: datetime) -> Tick:
    clock = form in ("time", "moment") and at.time() != time()
    written = "H:i" if clock else get_format("DATE_FORMAT")[FORMS.get(form, FORMS["day"])]
    return Tick(_percent(at, start, end), date_format(at, written), at.astimezone(UTC), form)


def _tries(start: datetime, end: datetime, zone: tzinfo) -> Iterator[list[tuple[datetime, str]]]:
    span = (end - start) / MOST_TICKS
    first = start.astimezone(zone).date()
    days = [first + timedelta(days=each) for each in range(min((end - start).days, 400) + 2)]
    for minutes in _MINUTES:
        if span <= timedelta(minutes=minutes):
            times = [time(each // 60, each % 60) for each in range(0, 1440, minutes)]
            found = (_instant(day, at, zone) for day in days for at in times)
            yield [(at, "moment" if minutes >= 360 else "time") for at in _between(found, start, end)]
    for step in _DAYS:
        if span <= timedelta(days=step):
            found = (_instant(day, time(), zone) for day in days if day.toordinal() % step == 0)
            yield [(at, "day") for at in _between(found, start, end)]
    for step in _MONTHS:
        if span <= timedelta(days=31 * step):
            found = (_instant(day, time(), zone) for day in _months(first, end.astimezone(zone).date(), step))
            yield [(at, "month" if step < 12 else "year") for at in _between(found, start, end)]


def _months(first: date, last: date, step: int) -> Iterator[date]:
    for month in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        if month % step == 0:
            yield date(month // 12, month % 12 + 1, 1)


def _instant(day: date, at: time, zone: tzinfo) -> datetime:
    """A time that this day has not is the one after the clocks were put forward."""
    return datetime.combine(day, at, zone).astimezone(UTC).astimezone(zone)


def _between(instants: Iterator[datetime], start: datetime, end: datetime) -> Iterator[datetime]:
    before = None
    for at in instants:
        if start <= at <= end and at != before:
            yield at
        before = at
