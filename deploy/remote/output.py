"""Answers as a person reads them: a table of a list, lines of an object. Other programs have written what is
in them: nothing that a terminal obeys is shown as it is."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from deploy.console import table

WIDE = 160  # characters of a line that is no terminal's
LONGEST = 48  # of a cell
LEAST = 2  # columns, however narrow the terminal is


def printable(text: str) -> str:
    return text if text.isprintable() else repr(text)[1:-1]


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def rows_as_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Without `columns`: what holds one value in each row, as many as fit in the line. Empty: no rows."""
    if not rows:
        return ""
    names = list(columns) or _telling(rows)
    cells = [tuple(names), *(tuple(_cell(row.get(name)) for name in names) for row in rows)]
    if not columns:
        cells = [row[: _fitting(cells)] for row in cells]
    return table([tuple(row) for row in cells])


def _telling(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    held = {name: [row.get(name) for row in rows] for name in names}
    return [
        name
        for name, values in held.items()
        if any(value not in (None, "", [], {}) for value in values)
        and not any(isinstance(value, dict | list) for value in values)
    ] or list(names)


def _fitting(cells: Sequence[Sequence[str]]) -> int:
    room, used = _width(), 0
    for place in range(len(cells[0])):
        used += max(len(row[place]) for row in cells) + 2
        if used > room + 2 and place >= LEAST:
            return place
    return len(cells[0])


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def _cell(value: Any) -> str:
    text = _said(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _said(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(text)


def object_as_lines(found: Mapping[str, Any]) -> str:
    """What is empty is left out."""
    shown = {name: _said(value) for name, value in found.items() if value not in (None, "", [], {})}
    return table([*shown.items()]) if shown else ""


def is_terminal(out: TextIO) -> bool:
    try:
        return os.isatty(out.fileno())
    except (OSError, ValueError):
        return False
