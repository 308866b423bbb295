"""Charts as SVG: only attributes and classes, so that the strict policy of the site takes them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.ui.amounts import instant as written
from console.ui.amounts import number

WIDTH, HEIGHT, FOOT, HEAD, LEFT = 640, 160, 18, 16, 4


@dataclass(frozen=True, slots=True)
class Bar:
    """`about`: what a screen reader and the pointer are told. `part`: of `value`, drawn in another colour.
    `instant`: what `about` begins with and `label` is the day of; pages.js writes both in the reader's
    zone."""

    label: str
    value: float
    about: str
    url: str = ""
    part: float = 0
    instant: datetime | None = None


def bar_chart(bars: Sequence[Bar], title: str, *, calm: bool = False) -> SafeString:
    """One bar each, from left to right; what is not nothing is seen. Every bar with an address is a link. The
    highest tells its value, which is the scale of the others. `calm`: of nothing bad."""
    most = max((bar.value for bar in bars), default=0) or 1
    step = (WIDTH - 2 * LEFT) / max(1, len(bars))
    every = max(1, round(70 / step))
    drawn = format_html_join(
        "",
        "{}",
        ((_bar(bar, LEFT + index * step, step, most, index % every == 0),) for index, bar in enumerate(bars)),
    )
    return format_html(
        '<svg class="chart{}" role="group" aria-label="{}" viewBox="0 0 {} {}" '
        'preserveAspectRatio="xMidYMid meet">'
        '<line x1="0" y1="{}" x2="{}" y2="{}"/>{}{}</svg>',
        " calm" if calm else "", title, WIDTH, HEIGHT + FOOT + HEAD, HEIGHT + HEAD, WIDTH, HEIGHT + HEAD,
        drawn,
        _scale(bars, step),
    )  # fmt: skip


def _scale(bars: Sequence[Bar], step: float) -> SafeString:
    highest = max(range(len(bars)), key=lambda index: bars[index].value, default=None)
    if highest is None or not bars[highest].value:
        return SafeString("")
    middle = LEFT + (highest + 0.4) * step
    value = number(bars[highest].value, 1)
    return format_html('<text x="{}" y="{}" text-anchor="middle">{}</text>', _at(middle), HEAD - 4, value)


def _bar(bar: Bar, x: float, step: float, most: float, labelled: bool) -> SafeString:
    high = _high(bar.value, most)
    width = max(1.0, step * 0.8)
    moment = _moment(bar)
    shape = format_html(
        '<g{}><title>{}</title><rect class="space" x="{}" y="{}" width="{}" height="{}"/>'
        '<rect x="{}" y="{}" width="{}" height="{}"/>{}</g>',
        moment, bar.about, _at(x), HEAD, _at(step), HEIGHT, _at(x), HEAD + HEIGHT - high, _at(width), high,
        _part(bar, x, width, most),
    )  # fmt: skip
    if bar.url:
        shape = format_html('<a href="{}" aria-label="{}">{}</a>', bar.url, bar.about, shape)
    if not labelled:
        return shape
    text = format_html('<text{} x="{}" y="{}">{}</text>', moment, _at(x), HEAD + HEIGHT + FOOT - 4, bar.label)
    return format_html("{}{}", shape, text)


def _moment(bar: Bar) -> SafeString:
    if bar.instant is None:
        return SafeString("")
    return format_html(' data-instant="{}" data-written="{}"', bar.instant.isoformat(), written(bar.instant))


def _part(bar: Bar, x: float, width: float, most: float) -> SafeString:
    high = _high(bar.part, most)
    if not high:
        return SafeString("")
    return format_html(
        '<rect class="part" x="{}" y="{}" width="{}" height="{}"/>',
        _at(x),
        HEAD + HEIGHT - high,
        _at(width),
        high,
    )


def _high(value: float, most: float) -> int:
    return max(2, round(HEIGHT * value / most)) if value > 0 else 0


def _at(value: float) -> str:
    return f"{value:.1f}"
