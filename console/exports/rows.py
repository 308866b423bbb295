"""Rows as lines of a file for spreadsheets (CSV) or programs (JSON lines). Pure."""

import csv
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from contract.text import storable

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
    """For JSON."""
    return {name: instant(value) if isinstance(value, datetime) else value for name, value in row.items()}


def instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def cell(value: Any) -> str:
    """A text that a spreadsheet would calculate gets an apostrophe before it; a number is never a formula."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    text = storable(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def csv_line(cells: Iterable[str]) -> str:
    """With CR LF: only then the csv module quotes a cell that holds a lone CR."""
    out = StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()
