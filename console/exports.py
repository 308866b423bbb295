"""Rows as files: lines for spreadsheets (CSV) or programs (JSON lines), sent in pieces."""

import csv
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext

from console.operations.refusals import Refused
from contract.typed import storable

Row = Mapping[str, Any]
FORMATS = ("csv", "jsonl")
TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
# Begins a file of CSV: without it spreadsheets take UTF-8 for something else.
MARK = "\ufeff"
# What a spreadsheet takes for the begin of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def json_line(row: Row) -> str:
    """Instants as ISO 8601 in UTC."""
    return storable(json.dumps(plain(row), ensure_ascii=False, default=str)) + "\n"


def plain(row: Row) -> dict[str, Any]:
    """Makes a row fit for JSON."""
    return {name: iso_instant(value) if isinstance(value, datetime) else value for name, value in row.items()}


def iso_instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def cell(value: Any) -> str:
    """A text that a spreadsheet would calculate gets an apostrophe before it; a number is never a formula."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return iso_instant(value)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    text = storable(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def csv_line(cells: Iterable[str]) -> str:
    """Ends with CR LF: only then the csv module quotes a cell that holds a lone CR."""
    out = StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()


# -- files that are sent in pieces, row by row: so many at once, for so long ---------------------------------


# Seconds that a file may take; a reader that is slower gets a broken one.
LONGEST = 600.0
# Files that a process makes at once: the other threads answer pages.
AT_ONCE = 2
# Texts that are sent together.
JOINED = 64 * 1024

_running = threading.BoundedSemaphore(AT_ONCE)


class Stream:
    """The file in pieces. Whoever asked for it holds one of few places until the last piece, or until it is
    closed.

    `told(True)` before anything is sent. One that breaks off is told by `told(False)`, and looks broken to
    its reader: it must not be taken for a whole one."""

    def __init__(self, texts: Iterable[str], *, on_end: Callable[[bool], object], begin: str = "") -> None:
        """Raises Refused where so many files are being made already."""
        self._places = _running
        if not self._places.acquire(blocking=False):
            raise Refused(
                "busy",
                gettext(
                    "The export cannot start: other exports are running. Try again when they have finished."
                ),
            )
        self._on_end, self._held, self._whole = on_end, True, False
        self._pieces = self._joined(texts, begin)
        on_end(True)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def _joined(self, texts: Iterable[str], begin: str) -> Iterator[bytes]:
        end = time.monotonic() + LONGEST
        held, size = [begin], len(begin)
        for text in texts:
            held.append(text)
            size += len(text)
            if size >= JOINED:
                if time.monotonic() > end:
                    raise TimeoutError("the export took too long: the file is incomplete")
                yield "".join(held).encode()
                held, size = [], 0
        yield "".join(held).encode()
        self._whole = True

    def close(self) -> None:
        if not self._held:
            return
        self._held = False
        self._places.release()
        if not self._whole:
            self._on_end(False)


def file_response(stream: Stream, form: str, name: str) -> StreamingHttpResponse:
    """`form` is one of `console.exports.FORMATS`, `name` what the file is of."""
    response = StreamingHttpResponse(stream, content_type=TYPES[form])
    whole = f"{name}-{timezone.now():%Y%m%d-%H%M%S}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{_plain(whole)}"'
    response["X-Accel-Buffering"] = "no"
    return response


def begin_of(form: str) -> str:
    return MARK if form == "csv" else ""


def _plain(name: str) -> str:
    """A key has no other characters; one in an address may."""
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-._") else "_" for letter in name
    )
