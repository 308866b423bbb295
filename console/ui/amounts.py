"""Amounts as people read them: numbers, durations, sizes, instants in words, and counts as a line."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
WORDS = {
    "d": gettext_noop("%(n)s d"),
    "h": gettext_noop("%(n)s h"),
    "min": gettext_noop("%(n)s min"),
    "s": gettext_noop("%(n)s s"),
}


def number(value: int | float, decimals: int = 0) -> str:
    """Grouped and rounded, at most `decimals` digits after the point."""
    rounded = round(value, decimals) if decimals else round(value)
    if isinstance(rounded, int) and 0 <= rounded < 1000:  # most of what a page says: nothing to group
        return str(rounded)
    digits = len(f"{rounded:.{decimals}f}".rstrip("0").partition(".")[2]) if decimals else 0
    return str(number_format(rounded, digits, use_l10n=True, force_grouping=True))


def is_typed(text: str, wanted: int) -> bool:
    """Returns whether it is this number, however somebody grouped its digits."""
    return "".join(filter(str.isdecimal, text)) == str(wanted)


def two_digits(estimate: int) -> int:
    """More would be a lie."""
    return round(estimate, -max(0, len(str(estimate)) - 2))


def about(estimate: int) -> str:
    return _("about %(n)s") % {"n": number(two_digits(estimate))}


def count_or_more(count: int, most: int) -> str:
    """Of what was counted as far as `most` and one: `1,234` or `10,000+`."""
    return number(count) if count <= most else f"{number(most)}+"


def duration(value: timedelta | float) -> str:
    """The two largest parts: `2 d 3 h`, `4 min 10 s`, `12 s`, `4.25 s`, `35 ms`."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 0:
        return "\N{MINUS SIGN}" + duration(-seconds)
    if 0 < seconds < 1:
        return _("%(n)s ms") % {"n": number(seconds * 1000, 0 if seconds >= 0.01 else 2)}
    if 0 < seconds < 10 and seconds != int(seconds):
        return _("%(n)s s") % {"n": number(seconds, 2)}
    rest = round(seconds)
    parts: list[str] = []
    for length, unit in STEPS:
        amount, rest = divmod(rest, length)
        if amount or (unit == "s" and not parts):
            parts.append(_part(amount, unit))
        if len(parts) == 2 or (parts and not rest):
            break
    return "\N{NO-BREAK SPACE}".join(parts)


def _part(amount: int, unit: str) -> str:
    return _(WORDS[unit]) % {"n": number(amount)}


def coarse(value: timedelta) -> str:
    """The largest part alone, for how long ago something was."""
    seconds = int(abs(value.total_seconds()))
    for length, unit in STEPS:
        if seconds >= length:
            return _part(seconds // length, unit)
    return _part(0, "s")


def instant(value: datetime) -> str:
    """Absolute, in the server's zone, as the admin writes it (ma_site.formats): `21 Nov 2026, 14:35:16
    UTC`."""
    return date_format(timezone.localtime(value), "DATETIME_FORMAT")


def ago(instant: datetime, now: datetime) -> str:
    passed = now - instant
    if abs(passed) < timedelta(seconds=1):
        return _("just now")
    if passed < timedelta():
        return _("in %(duration)s") % {"duration": coarse(passed)}
    return _("%(duration)s ago") % {"duration": coarse(passed)}


def size(count: int) -> str:
    if count < 1024:
        return ngettext("%(n)s byte", "%(n)s bytes", count) % {"n": number(count)}
    kib = count / 1024
    if kib < 1024:
        return _("%(n)s KiB") % {"n": number(kib, 1 if kib < 10 else 0)}
    mib = kib / 1024
    if mib < 1024:
        return _("%(n)s MiB") % {"n": number(mib, 1 if mib < 10 else 0)}
    return _("%(n)s GiB") % {"n": number(mib / 1024, 1)}


# -- sparkline: bars of an SVG -------------------------------------------------------------------------------
# It has attributes only, no style, so that the strict policy of the site takes it. Pure.


STEP = 4
BAR = 3
HEIGHT = 20
NOW = ' class="now"'


@dataclass(frozen=True, slots=True)
class SparkBar:
    x: int
    y: int
    height: int
    now: bool


@dataclass(frozen=True, slots=True)
class Spark:
    """`most` is the highest bar, `sum` all of them."""

    bars: list[SparkBar]
    width: int
    height: int
    most: int
    sum: int

    @property
    def drawn(self) -> SafeString:
        """The bars; nothing but numbers. A template would take a third of a page's time for them."""
        return SafeString(
            "".join(
                (
                    f'<rect x="{bar.x:d}" y="{bar.y:d}" width="{BAR:d}" '
                    f'height="{bar.height:d}"{NOW if bar.now else ""}/>'
                )
                for bar in self.bars
            )
        )


def spark(counts: Sequence[int], *, going_on: bool = True) -> Spark:
    """One bar each; where time is `going_on`, the last one is marked as not over yet. What is not nothing is
    seen, however little it is."""
    most = max(counts, default=0)
    bars = []
    for index, count in enumerate(counts):
        height = max(2, round(HEIGHT * count / most)) if count else 0
        bars.append(SparkBar(index * STEP, HEIGHT - height, height, going_on and index == len(counts) - 1))
    return Spark([bar for bar in bars if bar.height], len(counts) * STEP, HEIGHT, most, sum(counts))
