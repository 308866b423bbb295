"""Draws a chart whole: a key, the picture, and behind it what happened as a list and the values as a table;
and the small curves of lists. Curves are told apart without colour: lines by dashes, points and their names,
bars by stripes, marks by their shapes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from html import escape

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.ui.amounts import instant, number
from console.ui.charts.curves import Chart, Curve, Kind, Mark, Shape
from console.ui.charts.plot import line_point, plot, runs, stripes
from console.ui.charts.scales import Unit
from console.ui.text import visible_words

# Of what people count there is never so much; also false for what is no number.
TOO_MUCH = 1e100


def draw(chart: Chart) -> SafeString:
    """Raises ValueError where a curve has not one value for each place."""
    curves = [_finite(curve, len(chart.axis.places)) for curve in chart.curves]
    marks = sorted(
        (mark for mark in chart.marks if chart.axis.percent(mark.at) is not None), key=lambda mark: mark.at
    )
    if marks or any(value is not None for curve in curves for value in curve.values):
        body = _key(curves, chart.unit) + plot(chart, curves, marks) + _behind(chart, curves, marks)
    else:
        empty = _("No data in this period.")
        body = f'<p class="quiet">{escape(empty)}</p>'
    return mark_safe(
        f'<figure class="chart" id="{escape(chart.name)}" data-chart>'
        f"<figcaption>{escape(chart.title)}</figcaption>{body}</figure>"
    )


def _finite(curve: Curve, wanted: int) -> Curve:
    values = [value if value is not None and abs(value) < TOO_MUCH else None for value in curve.values]
    if len(values) != wanted:
        raise ValueError(f"{curve.name}: {len(values)} values at {wanted} places")
    return replace(curve, values=values)


# -- the key: a sample of each curve with its name, its last and its highest value ---------------------------


def _key(curves: Sequence[Curve], unit: Unit) -> str:
    items = []
    for index, curve in enumerate(curves):
        known = [value for value in curve.values if value is not None]
        said = _("no data")
        if known:
            text = _("last %(last)s, highest %(most)s")
            said = text % {"last": unit.written(known[-1]), "most": unit.written(max(known))}
        name, said = escape(curve.name), escape(said)
        items.append(f'<li>{_sample(index, curve)}<b>{name}</b> <span class="quiet">{said}</span></li>')
    return f'<ul class="key">{"".join(items)}</ul>'


def _sample(index: int, curve: Curve) -> str:
    if curve.kind is Kind.BARS:
        drawn = f'<rect class="bars {curve.tone}" width="24" height="12"/>{stripes(index, "M12 12V0", 24)}'
    else:
        drawn = f'<path class="line s{index % 5} {curve.tone}" d="M0 6H24"/>'
        drawn += line_point(index, curve.tone, "50%", 6)
    return f'<svg class="sample" width="24" height="12" aria-hidden="true">{drawn}</svg>'


# -- what is behind the picture: the same as a table, and as a list ------------------------------------------


def _behind(chart: Chart, curves: Sequence[Curve], marks: Sequence[Mark]) -> str:
    folded = f'<details class="plain" data-kept="{escape(chart.name)}'
    parts = []
    if marks and not chart.marked_elsewhere:
        label = ngettext("%(n)s event", "%(n)s events", len(marks)) % {"n": number(len(marks))}
        items = "".join(map(_event, marks))
        parts.append(
            f'{folded}-events"><summary>{escape(label)}</summary><ul class="events">{items}</ul></details>'
        )
    heads = "".join(f'<th scope="col" class="num">{escape(curve.name)}</th>' for curve in curves)
    rows = []
    for at, place in enumerate(chart.axis.places):
        cells = "".join(_cell(curve.values[at], chart.unit) for curve in curves)
        label = escape(place.label)
        if place.instant is not None:
            label = _local(place.instant, label)
        rows.append(f'<tr><th scope="row">{label}</th>{cells}</tr>')
    caption = f'<caption class="visually-hidden">{escape(chart.title)}</caption>'
    time, folded_table = _("Time"), _("Values as a table")
    head = f'<thead><tr><th scope="col">{escape(time)}</th>{heads}</tr></thead>'
    parts.append(
        f'{folded}-table"><summary>{escape(folded_table)}</summary><div class="scroll tall">'
        f'<table class="grid">{caption}{head}<tbody>{"".join(rows)}</tbody></table></div></details>'
    )
    return "".join(parts)


def _cell(value: float | None, unit: Unit) -> str:
    return f'<td class="num">{escape(unit.written(value)) if value is not None else "—"}</td>'


def _event(mark: Mark) -> str:
    words = visible_words(mark.words)
    said = f'<a href="{escape(mark.url)}">{words}</a>' if mark.url else words
    when = f'<span class="quiet small">{_local(mark.at, escape(instant(mark.at)))}</span>'
    return f"<li>{shape_sample(mark.shape, mark.tone)}{said} {when}</li>"


def _local(at: datetime, label: str) -> str:
    """An instant that pages.js writes in the reader's zone."""
    return f'<time datetime="{at.isoformat()}" data-show="local">{label}</time>'


def shape_sample(shape: Shape, tone: str) -> SafeString:
    return mark_safe(
        f'<svg class="sample" width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true">'
        f'<path class="mark {tone}" d="{shape.value}"/></svg>'
    )


# -- a small curve of a list ---------------------------------------------------------------------------------


STEP, BAR, SMALL = 4, 3, 20


def sparkline(
    counts: Sequence[float | None], words: str, *, going_on: bool = True, tone: str = "bad"
) -> SafeString:
    """One bar each; where time is `going_on`, the last one is marked as not over yet. What is not nothing is
    seen, however little it is; what nobody knows is a gap in the line below. `words` say it."""
    known = [count if count is not None and math.isfinite(count) else None for count in counts]
    most, width = max((count for count in known if count is not None), default=0), len(counts) * STEP
    bars = [
        f"M{index * STEP + BAR / 2:g} {SMALL}v-{max(2, round(SMALL * count / most))}"
        if count and count > 0
        else ""
        for index, count in enumerate(known)
    ]
    now = bars.pop() if going_on and bars else ""
    foot = "".join(
        f"M{first * STEP} {SMALL}H{last * STEP + STEP}"
        for first, last in runs([count is not None for count in known])
    )
    paths = (("foot", foot), ("bar", "".join(bars)), ("bar now", now))
    drawn = "".join(f'<path class="{look}" d="{path}"/>' for look, path in paths if path)
    return mark_safe(
        f'<svg class="spark {tone}" role="img" aria-label="{escape(words)}" width="{width}" height="{SMALL}" '
        f'viewBox="0 0 {width} {SMALL}"><title>{escape(words)}</title>{drawn}</svg>'
    )
