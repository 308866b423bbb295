"""Cells of the tables of insights: numbers that lead to the protocols behind them, and words for stable
words."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console.ui.amounts import duration, number, size
from console.ui.page import link
from console.ui.text import visible
from contract.made_up import HISTORY_KEY
from failures.links import fingerprint_url
from failures.pages.protocols import protocols_url

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOTHING = SafeString('<span class="quiet">—</span>')


def linked(text: Any, url: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', url, text)


def behind(count: int, **wanted: Any) -> SafeString:
    """A number of failures, linked to them."""
    return linked(number(count), protocols_url(**wanted)) if count else SafeString("0")


def in_hour(at: datetime) -> dict[str, str]:
    return {"since": at.isoformat(), "until": (at + HOUR).isoformat()}


def in_day(day: Any) -> dict[str, str]:
    begin = datetime.combine(day, time(), tzinfo=UTC)
    return {"since": begin.isoformat(), "until": (begin + DAY).isoformat()}


def setting_cell(key: str) -> SafeString:
    if key == HISTORY_KEY:
        return format_html('{} <span class="tag">{}</span>', linked(key, link("setting", key)), _("made up"))
    return linked(visible(key), link("setting", key)) if key and _is_key(key) else visible(key) or NOTHING


def _is_key(key: str) -> bool:
    return key.isascii() and key.replace("-", "").isalnum()


def fingerprint_cell(fingerprint: str, names: dict[str, str]) -> SafeString:
    """A group that the site does not know has no page: the demo's made-up ones, and those that went long
    ago."""
    name = names.get(fingerprint)
    if not name:
        return format_html('<span class="mono">{}</span>', fingerprint[:12])
    return linked(visible(name, limit=80), fingerprint_url(fingerprint))


def seconds_cell(value: float | None) -> Any:
    return NOTHING if value is None else duration(value)


def share_cell(value: float | None) -> Any:
    return NOTHING if value is None else f"{number(100 * value, 1)}\N{NO-BREAK SPACE}%"


def bytes_cell(value: int | None) -> Any:
    return NOTHING if value is None else size(value)


def what_if_cell(key: str, m: int) -> SafeString:
    return (
        linked(number(m), f"{link('setting_what_if', key)}?{urlencode({'m': m})}")
        if _is_key(key)
        else SafeString(m)
    )


def bucket(word: str) -> str:
    """Of an age, or of a time since a fix."""
    words = {
        "unknown": pgettext("a time since a fix", "no fix known"),
        "under_1h": pgettext("an age", "less than 1 h"),
        "under_1d": pgettext("an age", "1 h to 1 day"),
        "under_7d": pgettext("an age", "1 to 7 days"),
        "under_30d": pgettext("an age", "7 to 30 days"),
        "older": pgettext("an age", "older"),
    }
    return words.get(word, word)


def why(word: str) -> str:
    """Of a suggestion."""
    words = {
        "earlier_saves": pgettext("why a limit is suggested", "trips earlier and saves deliveries"),
        "later_avoids_false": pgettext(
            "why a limit is suggested", "trips less often where it got well by itself"
        ),
        "as_it_is": pgettext("why a limit is suggested", "nothing is better than what is set"),
        "too_little": pgettext("why a limit is suggested", "too little happened to say"),
    }
    return words.get(word, word)
