"""Figures of a scope as charts: how many, how fast, how late, what waits; beside them the same time
before."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console.ui.charts.chart import draw
from console.ui.charts.curves import Chart, Curve, Kind, Mark
from console.ui.charts.scales import AMOUNT, COUNT, PERCENT, SECONDS, Axis, Unit, over_time
from console.ui.time_range import TimeRange
from contract.histogram import Histogram, merged, quantile
from metrics.queries import Point, Series, series, series_of

# More are finer than a picture, and a table nobody reads.
MOST_SHOWN = 180
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Part:
    """One place of a chart: points of a series in one. Of what the broker counted the last known."""

    points: Sequence[Point]

    @property
    def start(self) -> datetime:
        return self.points[0].start

    @property
    def seconds(self) -> float:
        return sum(point.seconds for point in self.points)

    def per_minute(self, count: Callable[[Point], int]) -> float:
        return 60 * sum(map(count, self.points)) / (self.seconds or 60)

    def last(self, value: Callable[[Point], float | None]) -> float | None:
        return next((known for point in reversed(self.points) if (known := value(point)) is not None), None)

    def histogram(self, of: Callable[[Point], Histogram]) -> dict[int, int]:
        return merged(map(of, self.points))

    @property
    def busy(self) -> float | None:
        """Returns the share of what could be handled at once, in per cent; None where nothing could."""
        capacity = sum(point.capacity_seconds for point in self.points)
        return 100 * sum(point.busy_seconds for point in self.points) / capacity if capacity > 0 else None


def parts_of(points: Sequence[Point], step: timedelta, most: int = MOST_SHOWN) -> list[Part]:
    """At most one more than `most`, each of as many steps, which begin at the same instants whenever somebody
    looks."""
    width = step * -(-len(points) // most) if points else step
    return [Part(list(some)) for _at, some in groupby(points, lambda point: (point.start - _EPOCH) // width)]


@dataclass(frozen=True, slots=True)
class ShownFigures:
    """Parts of a period, their axis, and for each the part at the same time before, if that is asked for."""

    parts: Sequence[Part]
    axis: Axis
    before: Sequence[Part | None] = ()
    before_label: str = ""


def figures(scope: str, wanted: TimeRange, now: datetime, names: Sequence[str]) -> ShownFigures:
    """One or two series; each is bounded by itself. `names`: of CHARTS, for which they are."""
    histograms = any(CHARTS[name].histograms for name in names)
    return _figures(lambda start, end: series(scope, start, end, now, histograms=histograms), wanted)


def figures_of_many(scopes: Sequence[str], wanted: TimeRange, now: datetime) -> ShownFigures:
    """Their sum, without histograms."""

    def added(start: datetime, end: datetime) -> Series:
        every = list(series_of(scopes, start, end, now).values())
        if not every:
            return Series(timedelta(minutes=1), (), start, end)
        points = zip(*(each.points for each in every), strict=True)
        first = every[0]
        return Series(first.step, tuple(map(sum_of, points)), first.start, first.end)

    return _figures(added, wanted)


def sum_of(points: Sequence[Point]) -> Point:
    """Of the same time. What nobody knows of one is left out; nothing known at all stays unknown."""

    def known(of: Callable[[Point], int | None]) -> int | None:
        values = [value for point in points if (value := of(point)) is not None]
        return sum(values) if values else None

    first = points[0]
    return Point(
        first.start,
        first.seconds,
        succeeded=sum(point.succeeded for point in points),
        failed=sum(point.failed for point in points),
        temporary=sum(point.temporary for point in points),
        busy_seconds=sum(point.busy_seconds for point in points),
        capacity_seconds=sum(point.capacity_seconds for point in points),
        waiting=known(lambda point: point.waiting),
        delayed=known(lambda point: point.delayed),
        in_delivery=known(lambda point: point.in_delivery),
        dead=known(lambda point: point.dead),
    )


def _figures(read: Callable[[datetime, datetime], Series], wanted: TimeRange) -> ShownFigures:
    found = read(wanted.start, wanted.end)
    parts = parts_of(found.points, found.step)
    zone = timezone.get_current_timezone()
    if not parts:
        return ShownFigures((), over_time([wanted.start, wanted.end], zone))
    last = parts[-1].points[-1]
    edges = [*(part.start for part in parts), last.start + timedelta(seconds=last.seconds)]
    axis = over_time(edges, zone)
    if wanted.compared is None:
        return ShownFigures(parts, axis)
    earlier = read(wanted.start - wanted.compared, wanted.end - wanted.compared)
    before = same_time(parts, parts_of(earlier.points, earlier.step), wanted.compared)
    return ShownFigures(parts, axis, before, wanted.compared_label)


def same_time(parts: Sequence[Part], earlier: Sequence[Part], shift: timedelta) -> list[Part | None]:
    """For each part the earlier one in which its begin, moved back, lies: their steps may differ."""
    starts = [part.start for part in earlier]
    found: list[Part | None] = []
    for part in parts:
        at = part.start - shift
        place = bisect_right(starts, at) - 1
        other = earlier[place] if place >= 0 else None
        over = other is None or at >= other.start + timedelta(seconds=max(other.seconds, 1))
        found.append(None if over else other)
    return found


# -- the charts ----------------------------------------------------------------------------------------------


def charts(
    name: str, shown: ShownFigures, wanted: Sequence[str], marks: Sequence[Mark] = ()
) -> list[SafeString]:
    """Of CHARTS, in that order; `name`: what their ids begin with. What happened lies above all of them, as
    links above the first alone: each is a stop for who goes by keys."""
    return [
        draw(_chart(f"{name}-{each}", shown, CHARTS[each], marks, index > 0))
        for index, each in enumerate(wanted)
    ]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """`title` and names of curves are asked for in the reader's language. `compared`: which value of a part
    is beside them, of the same time before. `histograms`: it is made of them."""

    title: Callable[[], str]
    unit: Unit
    curves: Callable[[Sequence[Part]], list[Curve]]
    compared: Callable[[Part], float | None] | None = None
    histograms: bool = False


def _chart(
    name: str, shown: ShownFigures, wanted: _Wanted, marks: Sequence[Mark], marked_elsewhere: bool
) -> Chart:
    curves = wanted.curves(shown.parts)
    if not shown.parts:
        curves = [Curve(curve.name, [None], curve.kind, curve.tone) for curve in curves]
    if shown.before and wanted.compared is not None:
        values = [wanted.compared(part) if part else None for part in shown.before]
        curves.append(Curve(shown.before_label, values, Kind.LINE, "off"))
    return Chart(
        name, wanted.title(), shown.axis, curves, wanted.unit, marks, marked_elsewhere=marked_elsewhere
    )


def _succeeded(part: Part) -> float:
    return part.per_minute(lambda point: point.succeeded)


def _failed(part: Part) -> float:
    return part.per_minute(lambda point: point.failed + point.temporary)


def _processed(parts: Sequence[Part]) -> list[Curve]:
    return [Curve(_("processed"), [_succeeded(part) for part in parts], Kind.AREA, "ok")]


def _failures(parts: Sequence[Part]) -> list[Curve]:
    lasting = [part.per_minute(lambda point: point.failed) for part in parts]
    temporary = [part.per_minute(lambda point: point.temporary) for part in parts]
    return [
        Curve(pgettext("failures", "not temporary"), lasting, Kind.BARS, "bad"),
        Curve(pgettext("failures", "temporary"), temporary, Kind.BARS, "warn"),
    ]


def _quantiles(of: Callable[[Point], Histogram]) -> Callable[[Sequence[Part]], list[Curve]]:
    def curves(parts: Sequence[Part]) -> list[Curve]:
        histograms = [part.histogram(of) for part in parts]
        wanted = ((_("median"), 0.5, "info"), ("95 %", 0.95, "third"), ("99 %", 0.99, "fourth"))
        return [
            Curve(name, [quantile(each, share) for each in histograms], tone=tone)
            for name, share, tone in wanted
        ]

    return curves


def _median(of: Callable[[Point], Histogram]) -> Callable[[Part], float | None]:
    return lambda part: quantile(part.histogram(of), 0.5)


def _queue(parts: Sequence[Part]) -> list[Curve]:
    wanted: tuple[tuple[str, Callable[[Point], float | None], str], ...] = (
        (pgettext("messages", "waiting"), lambda point: point.waiting, "info"),
        (pgettext("messages", "delayed"), lambda point: point.delayed, "third"),
        (pgettext("messages", "in progress"), lambda point: point.in_delivery, "fourth"),
    )
    return [Curve(name, [part.last(of) for part in parts], Kind.LINE, tone) for name, of, tone in wanted]


def _dead(parts: Sequence[Part]) -> list[Curve]:
    values = [part.last(lambda point: point.dead) for part in parts]
    return [Curve(pgettext("messages", "in DLQ"), values, Kind.AREA, "bad")]


def _oldest(parts: Sequence[Part]) -> list[Curve]:
    values = [part.last(lambda point: point.oldest_seconds) for part in parts]
    return [Curve(_("oldest"), values, Kind.AREA, "warn")]


def _busy(parts: Sequence[Part]) -> list[Curve]:
    return [Curve(pgettext("processes", "busy"), [part.busy for part in parts], Kind.AREA, "info")]


CHARTS: Mapping[str, _Wanted] = {
    "processed": _Wanted(lambda: _("Processed per minute"), AMOUNT, _processed, _succeeded),
    "failures": _Wanted(lambda: _("Failures per minute"), AMOUNT, _failures, _failed),
    "processing": _Wanted(
        lambda: _("Processing time"),
        SECONDS,
        _quantiles(lambda point: point.processing),
        _median(lambda point: point.processing),
        histograms=True,
    ),
    "critical": _Wanted(
        lambda: _("Time from sending to the end of processing"),
        SECONDS,
        _quantiles(lambda point: point.critical),
        _median(lambda point: point.critical),
        histograms=True,
    ),
    "queue": _Wanted(
        lambda: _("Messages in the subscription"),
        COUNT,
        _queue,
        lambda part: part.last(lambda point: point.waiting),
    ),
    "oldest": _Wanted(
        lambda: _("Age of the oldest message"),
        SECONDS,
        _oldest,
        lambda part: part.last(lambda point: point.oldest_seconds),
    ),
    "dead": _Wanted(
        lambda: _("Messages in the DLQ"), COUNT, _dead, lambda part: part.last(lambda point: point.dead)
    ),
    "busy": _Wanted(lambda: _("Capacity in use"), PERCENT, _busy, lambda part: part.busy),
}
OF_QUEUE = ("queue", "oldest", "dead")
OF_HANDLING = ("processed", "failures", "processing", "critical")
