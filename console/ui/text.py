"""Texts from hostile places made safe and honest to look at: escaped, with nothing invisible left in them;
addresses without their secrets, and of traces."""

import unicodedata
from html import escape
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

from exposition.trace import TraceContext

# What few fonts have pictures for; U+2400 stands for a NUL in stored texts.
NAMES = (
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR", "SO", "SI",
    "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
)  # fmt: skip
CONTROLS = dict(enumerate(NAMES))
CONTROLS |= {0x7F: "DEL", 0x2400: "NUL"}
# Control, format (bidi overrides, zero width), surrogate, private use, unassigned, line and paragraph
# separators.
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible_html(text: str, *, lines: bool = False, limit: int = 0) -> SafeString:
    """HTML of `text`. With `lines`, line ends and tabs stay what they are; else they are shown as marks too.

    `limit` > 0 cuts after so many characters, with a word about how many there are.
    """
    shown, left_out = (text[:limit], len(text) - limit) if 0 < limit < len(text) else (text, 0)
    if lines:
        shown = shown.replace("\r\n", "\n")
    parts = (
        [_visible_character(character, lines) for character in shown]
        if _needs_marks(shown)
        else [escape(shown)]
    )
    if left_out:
        parts.append(f' <span class="quiet">… +{left_out:,}</span>')
    return mark_safe("".join(parts))


def visible_name(text: str, *, limit: int = 0) -> SafeString:
    """HTML of a name with points in it, as of a type, which is broken behind these before anywhere else."""
    return mark_safe(visible_html(text, limit=limit).replace(".", ".<wbr>"))


def visible_words(text: str) -> SafeString:
    """The same as words alone, for attributes and for readers of screens: one line without elements."""
    return mark_safe(escape("".join(map(_word, text)) if _needs_marks(text) else text))


def masked(address: str) -> str:
    """Shows of a URL scheme and host only: `https://host/…`, for whoever knows the address of a webhook can
    write there. An e-mail address as it is."""
    scheme, separator, _rest = address.partition("://")
    if not separator:
        return address
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"{scheme}://…"
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}{f':{port}' if port else ''}/…"


def trace_url(context: TraceContext | None) -> str:
    """Where a trace is looked at; empty where there is none, or the site was not told (MA_TRACE_URL)."""
    return settings.MA_TRACE_URL.replace("{trace_id}", context.trace_id) if context is not None else ""


def _needs_marks(text: str) -> bool:
    return not (text.isascii() and text.isprintable())


def _visible_character(character: str, lines: bool) -> str:
    if lines and character in "\n\t":
        return character
    if not _is_invisible(character):
        return escape(character)
    return f'<span class="ctl" title="{_name(character)}">{_mark(character)}</span>'


def _word(character: str) -> str:
    return _mark(character) if _is_invisible(character) else character


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in INVISIBLE or ord(character) in CONTROLS


def _mark(character: str) -> str:
    code = ord(character)
    return CONTROLS.get(code) or f"U+{code:04X}"


def _name(character: str) -> str:
    return f"U+{ord(character):04X} {escape(unicodedata.name(character, ''))}".strip()
