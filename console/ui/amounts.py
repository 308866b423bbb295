"""Amounts as people read them: numbers, durations, sizes, instants in words."""

from datetime import datetime, timedelta
from functools import lru_cache

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import get_language, gettext_noop, ngettext
from django.utils.translation import gettext as _

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
    return _grouped(rounded, decimals, get_language())


# Charts and their tables say thousands of amounts, few of them different, and formatting asks for the
# language again and again.
@lru_cache(maxsize=4096)
def _grouped(rounded: int | float, decimals: int, _language: str | None) -> str:
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
    return _largest_parts(seconds, get_language())


@lru_cache(maxsize=4096)
def _largest_parts(seconds: float, _language: str | None) -> str:
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
    local = timezone.localtime(value)
    return _written(local, local.utcoffset(), local.tzname(), get_language())


# A page says the same instant again and again: above each of its charts, and in the next answer.
@lru_cache(maxsize=4096)
def _written(local: datetime, *_told_apart: object) -> str:
    """Equal instants of other zones and languages are other texts."""
    return date_format(local, "DATETIME_FORMAT")


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
