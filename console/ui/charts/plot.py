"""Draws the picture of a chart. Across, all is in percent of the width, and what cannot be is stretched;
upwards, in pixels: so letters, points and shapes keep their size on a phone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from django.utils.translation import gettext as _

from console.ui.amounts import instant, number
from console.ui.charts.curves import Chart, Curve, Kind, Mark
from console.ui.charts.scales import AxisPlace, Tick, value_ticks
from console.ui.text import visible_words

HEIGHT, HEAD, FOOT = 150, 12, 20
MARKS = 20


def plot(chart: Chart, curves: Sequence[Curve], marks: Sequence[Mark]) -> str:
    head = HEAD + (MARKS if marks else 0)
    ticks = value_ticks(_highest(curves), chart.unit)
    scale = Scale(chart.axis.places, ticks[-1], head)
    links = any(curve.urls for curve in curves) or (
        not chart.marked_elsewhere and any(mark.url for mark in marks)
    )
    names = "".join(_names(scale, curves))
    look, high = "plot named" if names else "plot", head + HEIGHT + FOOT
    lines = _stacks(scale, curves) + "".join(_lines(scale, curves))
    role, label = "group" if links else "img", visible_words(_summary(chart, curves))
    return (
        f'<svg class="{look}" role="{role}" aria-label="{label}" width="100%" height="{high}">'
        f"{''.join(_grid(scale, ticks, chart))}{''.join(_gaps(scale, curves))}"
        f'<svg class="stretched" aria-hidden="true" y="{head}" width="100%" height="{HEIGHT}" '
        f'viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none">{lines}</svg>'
        f"{''.join(_points(scale, curves))}{names}"
        f"{''.join(_linked(chart, scale, curves))}{''.join(_marks(chart, marks, head))}</svg>"
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """`top`: the value at the upper edge, `head` pixels below that of the picture."""

    places: Sequence[AxisPlace]
    top: float
    head: int

    def high(self, value: float) -> float:
        """Returns how high it is drawn; what is not nothing is seen."""
        pixels = HEIGHT * min(1.0, max(0.0, value / self.top))
        return max(1.5, pixels) if value > 0 else 0.0


def _highest(curves: Sequence[Curve]) -> float:
    lines = [value or 0 for curve in curves if curve.kind is not Kind.BARS for value in curve.values]
    return max([*lines, *map(sum, _columns(curves))], default=0)


def _columns(curves: Sequence[Curve]) -> list[list[float]]:
    """Returns the values of stacked bars by place."""
    stacked = [[value or 0 for value in curve.values] for curve in curves if curve.kind is Kind.BARS]
    return [list(column) for column in zip(*stacked, strict=True)]


def _summary(chart: Chart, curves: Sequence[Curve]) -> str:
    places = chart.axis.places
    parts = [f"{chart.title}."]
    if places:
        parts.append(_("From %(first)s to %(last)s.") % {"first": places[0].label, "last": places[-1].label})
    for curve in curves:
        known = [
            (value, place) for value, place in zip(curve.values, places, strict=True) if value is not None
        ]
        if not known:
            parts.append(_("%(name)s: no data.") % {"name": curve.name})
            continue
        most, place = max(known, key=lambda each: each[0])
        text = _("%(name)s: highest %(most)s (%(at)s), last %(last)s.")
        written = chart.unit.written
        parts.append(
            text
            % {"name": curve.name, "most": written(most), "at": place.label, "last": written(known[-1][0])}
        )
    return " ".join(parts)


def _grid(scale: Scale, ticks: Sequence[float], chart: Chart) -> Iterator[str]:
    for value in ticks:
        y = scale.head + HEIGHT * (1 - value / scale.top)
        yield f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="amount" x="-6" y="{y + 4:.1f}">{escape(chart.unit.short(value))}</text>'
    foot = scale.head + HEIGHT
    for index, tick in enumerate(chart.axis.ticks):
        side = "first" if tick.at < 3 else "last" if tick.at > 97 else "mid"
        yield f'<line class="tick" x1="{tick.at:.2f}%" x2="{tick.at:.2f}%" y1="{foot}" y2="{foot + 4}"/>'
        yield (
            f'<text class="at {side}{" less" if index % 2 else ""}"{_moment(tick)} x="{tick.at:.2f}%" '
            f'y="{foot + 16}">{escape(tick.label)}</text>'
        )


def _moment(tick: Tick) -> str:
    return f' data-instant="{tick.instant.isoformat()}" data-form="{tick.form}"' if tick.instant else ""


def _gaps(scale: Scale, curves: Sequence[Curve]) -> Iterator[str]:
    """Where the first curve has no value: others are beside it to compare."""
    if not curves:
        return
    nothing = escape(_("no data"))
    for first, last in runs([value is None for value in curves[0].values]):
        left = scale.places[first].left
        width = scale.places[last].left + scale.places[last].width - left
        yield f'<rect class="gap" x="{left:.2f}%" width="{width:.2f}%" y="{scale.head}" height="{HEIGHT}"/>'
        empty = all(value is None for curve in curves for value in curve.values[first : last + 1])
        if empty and width > 12:
            yield (
                f'<text class="at mid" x="{left + width / 2:.2f}%" y="{scale.head + HEIGHT / 2:.0f}">'
                f"{nothing}</text>"
            )


def runs(wanted: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """First and last index of each run of true ones."""
    first: int | None = None
    for index, each in enumerate([*wanted, False]):
        if each and first is None:
            first = index
        elif not each and first is not None:
            yield first, index - 1
            first = None


def _stacks(scale: Scale, curves: Sequence[Curve]) -> str:
    drawn, below = [], [0.0] * len(scale.places)
    for index, curve in enumerate(curves):
        if curve.kind is not Kind.BARS:
            continue
        bars, middles = [], []
        for at, (value, place) in enumerate(zip(curve.values, scale.places, strict=True)):
            high = scale.high(value or 0)
            if high:
                foot, width = HEIGHT - below[at], place.width * 8
                bars.append(
                    f"M{place.left * 10 + place.width:.1f} {foot:.1f}h{width:.1f}v{-high:.1f}h{-width:.1f}z"
                )
                middles.append(f"M{place.middle * 10:.1f} {foot:.1f}v{-high:.1f}")
                below[at] += high
        if bars:
            drawn.append(f'<path class="bars {curve.tone}" d="{"".join(bars)}"/>')
            drawn.append(stripes(index, "".join(middles), scale.places[0].width * 8))
    return "".join(drawn)


def stripes(index: int, middles: str, width: float) -> str:
    """Dashes as broad as the bars, over every second and third stack: told apart in black and white."""
    if index % 3 == 0:
        return ""
    return f'<path class="stripes s{index % 3}" d="{middles}" stroke-width="{width:.1f}"/>'


def _lines(scale: Scale, curves: Sequence[Curve]) -> Iterator[str]:
    for index, curve in enumerate(curves):
        if curve.kind is Kind.BARS:
            continue
        known = [value is not None for value in curve.values]
        for first, last in runs(known):
            points = [
                f"{place.middle * 10:.1f} {HEIGHT - scale.high(value or 0):.1f}"
                for value, place in zip(
                    curve.values[first : last + 1], scale.places[first : last + 1], strict=True
                )
            ]
            if len(points) == 1:
                continue
            path = f"M{points[0]}L{' '.join(points[1:])}"
            if curve.kind is Kind.AREA:
                begin, end = scale.places[first].middle * 10, scale.places[last].middle * 10
                yield f'<path class="area {curve.tone}" d="{path}L{end:.1f} {HEIGHT} {begin:.1f} {HEIGHT}z"/>'
            yield f'<path class="line s{index % 5} {curve.tone}" d="{path}"/>'


POINTS = (
    "M-3 0A3 3 0 1 0 3 0A3 3 0 1 0-3 0Z",
    "M-3-3H3V3H-3Z",
    "M-4 3H4L0-4Z",
    "M0-4L4 0L0 4L-4 0Z",
    "M-4-1H4V1H-4Z",
)


def line_point(index: int, tone: str, x: str, y: float) -> str:
    drawn = f'<path class="point {tone}" d="{POINTS[index % 5]}"/>'
    return f'<svg aria-hidden="true" x="{x}" y="{y:.1f}">{drawn}</svg>'


def _points(scale: Scale, curves: Sequence[Curve]) -> Iterator[str]:
    """A few of each line, each line elsewhere; and those that no line leads to."""
    lines = [(index, curve) for index, curve in enumerate(curves) if curve.kind is not Kind.BARS]
    every = max(1, len(scale.places) // 6)
    for order, (index, curve) in enumerate(lines):
        shift = every * order // len(lines)
        for at, value in enumerate(curve.values):
            alone = all(
                not 0 <= near < len(curve.values) or curve.values[near] is None for near in (at - 1, at + 1)
            )
            if value is not None and (alone or (at % every == shift and len(lines) > 1)):
                y = scale.head + HEIGHT - scale.high(value)
                yield line_point(index, curve.tone, f"{scale.places[at].middle:.2f}%", y)


APART = 13


def _names(scale: Scale, curves: Sequence[Curve]) -> Iterator[str]:
    """Each line says at its end what it is, where there is more than one."""
    lines = [curve for curve in curves if curve.kind is not Kind.BARS]
    ends = [(_last(curve), curve) for curve in lines]
    wanted = [(scale.head + HEIGHT - scale.high(value), curve) for value, curve in ends if value is not None]
    if len(curves) < 2:
        return
    wanted.sort(key=lambda each: each[0])
    for y, (_at, curve) in zip(apart([y for y, _curve in wanted], scale.head + HEIGHT), wanted, strict=True):
        yield f'<text class="name {curve.tone}" x="100%" dx="6" y="{y + 4:.1f}">{escape(curve.name)}</text>'


def apart(heights: Sequence[float], most: float) -> list[float]:
    """The same in their order, none nearer to another than APART, none below `most`."""
    found: list[float] = []
    for height in heights:
        found.append(max(height, found[-1] + APART) if found else height)
    for index in range(len(found) - 1, -1, -1):
        found[index] = min(found[index], most - (len(found) - 1 - index) * APART)
    return found


def _last(curve: Curve) -> float | None:
    return next((value for value in reversed(curve.values) if value is not None), None)


def _linked(chart: Chart, scale: Scale, curves: Sequence[Curve]) -> Iterator[str]:
    """What the pointer is told of a bar with an address; the whole height leads there."""
    for curve in curves:
        for at, (url, place) in enumerate(zip(curve.urls, scale.places, strict=False)):
            if not url:
                continue
            value = chart.unit.written(curve.values[at] or 0)
            about = visible_words(chart.notes[at] if chart.notes else f"{place.label}: {value}")
            when = ""
            if place.instant is not None:
                begin = f'data-instant="{place.instant.isoformat()}"'
                when = f' {begin} data-written="{escape(instant(place.instant))}"'
            yield (
                f'<a href="{escape(url)}" aria-label="{about}"><g{when}><title>{about}</title>'
                f'<rect class="space" x="{place.left:.2f}%" width="{place.width:.2f}%" y="{scale.head}" '
                f'height="{HEIGHT}"/></g></a>'
            )


# -- marks: those that lie nearer to each other than people can point at are one -----------------------------


NEAR = 2.5
# Of the width, that a letter takes where the chart is as wide as it often is.
LETTER = 1.2
LONGEST = 16


def grouped(
    marks: Sequence[Mark], percent: Callable[[datetime], float | None]
) -> list[tuple[float, list[Mark]]]:
    found: list[tuple[float, list[Mark]]] = []
    for mark in marks:
        at = percent(mark.at) or 0.0
        if found and at - found[-1][0] < NEAR:
            found[-1][1].append(mark)
        else:
            found.append((at, [mark]))
    return found


def beside(groups: Sequence[tuple[float, list[Mark]]]) -> list[tuple[str, bool]]:
    """Returns for each what stands beside it, in the room until the next, and whether it stands on the left:
    there is none on the right where time ends."""
    found: list[tuple[str, bool]] = []
    until = 100.0
    for index in range(len(groups) - 1, -1, -1):
        at, those = groups[index]
        text = _short(those, until - at)
        over = bool(text) and _wide(text) > until - at
        if over and (until < 100.0 or at - (groups[index - 1][0] if index else 0.0) < _wide(text)):
            text, over = "", False
        found.append((text, over))
        until = at - _wide(text) if over else at
    return found[::-1]


def _short(marks: Sequence[Mark], room: float) -> str:
    text, more = marks[0].text, len(marks) - 1
    if more:
        text = f"{text} ×{number(len(marks))}" if all(mark.text == text for mark in marks) else ""
    if text and _wide(text) <= room and len(text) <= LONGEST:
        return text
    return f"+{number(more)}" if more else ""


def _wide(text: str) -> float:
    return (len(text) + 2) * LETTER


def _marks(chart: Chart, marks: Sequence[Mark], head: int) -> Iterator[str]:
    groups = grouped(marks, chart.axis.percent)
    for (at, those), (text, left) in zip(groups, beside(groups), strict=True):
        first, more = those[0], len(those) - 1
        words = f"{instant(first.at)}: {'; '.join(mark.words for mark in those[:5])}"
        if more > 4:
            words += f"; +{number(more - 4)}"
        said = ""
        if text:
            place = f'x="{at:.2f}%" dx="{-10 if left else 10}" y="{head - 10}"'
            look = "said last less" if left else "said less"
            said = f'<text class="{look}" aria-hidden="true" {place}>{escape(text)}</text>'
        shape = f'<path class="mark {first.tone}" d="{first.shape.value}"/>'
        label, when = visible_words(words), f'data-instant="{first.at.isoformat()}"'
        drawn = (
            f'<g {when} data-written="{escape(instant(first.at))}"><title>{label}</title>'
            f'<line class="event" x1="{at:.2f}%" x2="{at:.2f}%" y1="{head - 8}" y2="{head + HEIGHT}"/>'
            f'<svg aria-hidden="true" x="{at:.2f}%" y="{head - 14}">{shape}</svg></g>'
        )
        yield said
        if chart.marked_elsewhere:
            yield f'<g aria-hidden="true">{drawn}</g>'
        elif first.url:
            yield f'<a href="{escape(first.url)}" aria-label="{label}">{drawn}</a>'
        else:
            yield f'<g role="img" aria-label="{label}">{drawn}</g>'
