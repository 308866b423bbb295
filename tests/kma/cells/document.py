"""The table as docs/explanation/acknowledgement.md shows it."""

import re
from collections.abc import Sequence
from pathlib import Path

from contract.outcomes import Breaker
from tests.kma.cells.table import ROWS, WAYS, End, Row, Way

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "acknowledgement.md"
PLACE = re.compile(r"(<!-- table of cells -->\n).*?(<!-- end of the table -->)", re.DOTALL)
HEAD = (
    "| the handling, or what happens to it | mode | the message | attempts counted | "
    "what it sent | record | breaker |"
)
COUNTED = {Breaker.RESET: "to 0", Breaker.COUNT: "counts", Breaker.IGNORE: "–", None: "either"}


def table() -> str:
    rule = "| " + " | ".join(["---"] * HEAD.count(" | ") + ["---"]) + " |"
    return "\n".join(["", HEAD, rule, *map(_row, ROWS), "", ""])


def written(text: str) -> str:
    """The document with the table as it is now."""
    return PLACE.sub(lambda found: found[1] + table() + found[2], text)


def _row(row: Row) -> str:
    cells = (
        row.event.value,
        _ways(row.ways),
        " or ".join(end.where.value for end in row.ends),
        " or ".join(map(_count, row.ends)),
        " or ".join(_sent(end, row.ways) for end in row.ends),
        ", ".join(map(_record, row.records)) or "–",
        COUNTED[row.breaker],
    )
    return "| " + " | ".join(cells) + " |"


def _record(record: str) -> str:
    outcome, _, kind = record.partition(": ")
    return f"protocol `{outcome}`, `{kind}`" if kind else f"*{outcome}*"


def _ways(ways: Sequence[Way]) -> str:
    if set(ways) == set(WAYS):
        return "all"
    told: dict[str, list[str]] = {"": [], " sending": [], " sending nothing": []}
    for mode in dict.fromkeys(way.mode for way in WAYS):
        all_of_it, these = ([way for way in some if way.mode is mode] for some in (WAYS, ways))
        if these:
            how = "" if set(these) == set(all_of_it) else " sending" if these[0].sends else " sending nothing"
            told[how].append(f"`{mode.value}`")
    return "; ".join(", ".join(modes) + how for how, modes in told.items() if modes)


def _count(end: End) -> str:
    return " or ".join(map(str, end.counts)) or "–"


def _sent(end: End, ways: Sequence[Way]) -> str:
    if not any(way.sends for way in ways):
        return "–"
    return "sent" if end.sent else "nothing"
