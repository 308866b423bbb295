"""The form in which a rule for many letters is written: its fields -> the JSON form of operations, and back.
Works without JavaScript: a row is `o-<n>-op`, `o-<n>-place`, `o-<n>-type`, `o-<n>-value`. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from dlq.editing.rules import MOST_OPERATIONS

EMPTY_ROWS = 3


@dataclass(frozen=True, slots=True)
class RuleRow:
    number: int
    op: str = ""
    place: str = ""
    type: str = "string"
    value: str = ""


def rows_in(data: QueryDict) -> list[RuleRow]:
    """Those that somebody filled in."""
    rows = []
    for number in range(MOST_OPERATIONS):
        op, place, kind, value = (
            data.get(f"o-{number}-{name}", "") for name in ("op", "place", "type", "value")
        )
        if op:
            rows.append(RuleRow(number, op, place, kind or "string", value))
    return rows


def operations_in(data: QueryDict) -> list[dict[str, Any]]:
    """As `rule_of` reads them; a place is never stripped: names may begin with a space."""
    return [_operation(row) for row in rows_in(data)]


def _operation(row: RuleRow) -> dict[str, Any]:
    if row.op == "set_property":
        return {"op": row.op, "name": row.place, "type": row.type, "value": row.value}
    if row.op == "remove_property":
        return {"op": row.op, "name": row.place}
    return {"op": row.op, "pointer": row.place} | ({"json": row.value} if row.op == "set_json" else {})


def rows_of(operations: Sequence[Mapping[str, Any]]) -> list[RuleRow]:
    """Of the JSON form, for the form; then empty ones."""
    rows = [
        RuleRow(
            number,
            each["op"],
            each.get("name", each.get("pointer", "")),
            each.get("type", "string"),
            each.get("value", each.get("json", "")),
        )
        for number, each in enumerate(operations)
    ]
    return with_empty(rows)


def with_empty(rows: Sequence[RuleRow]) -> list[RuleRow]:
    """Numbered anew."""
    every = [*rows, *(RuleRow(0) for _row in range(EMPTY_ROWS))][:MOST_OPERATIONS]
    return [RuleRow(number, row.op, row.place, row.type, row.value) for number, row in enumerate(every)]
