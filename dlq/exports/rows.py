"""Dead letters as CSV or JSON lines, row by row: what a file of them holds, and how. Pure.

Who may see what of them was decided before (`dlq.exports.files`). Properties are in JSON lines of whole dead
letters only.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from console.exports import Row, cell, csv_line, json_line

# What lists show of a dead letter; short, and nothing of its content.
LISTED = (
    "id", "setting_key", "queue", "state", "seen_at", "chapter", "delivery_count", "exception_type",
    "fingerprint",
    "message_key", "message_key_weak", "size", "problem",
)  # fmt: skip
EXPORTED = (
    *LISTED, "exception_text", "place", "state_at", "protocol_at", "address", "orig_queue", "orig_message_id",
    "node_id", "message_id", "correlation_id", "reply_to", "content_type", "body_kind", "jms_kind", "durable",
    "priority", "created_at_producer", "truncated", "body_deleted_at",
)  # fmt: skip
HEAD = "body_text"


def with_head(row: Row) -> dict[str, Any]:
    """`row` has EXPORTED and HEAD."""
    return {**row, HEAD: row[HEAD] if row["body_kind"] else ""}


def lines(rows: Iterable[Row], form: str) -> Iterator[str]:
    """The file in pieces, each ends with its line end; of CSV the first names the columns. One row in memory
    at a time.

    Rows are those of `dlq.exports.files`, all of the same kind.
    """
    return _csv(rows) if form == "csv" else map(json_line, rows)


def _csv(rows: Iterable[Row]) -> Iterator[str]:
    header: list[str] = []
    for row in rows:
        flat = _flat(row)
        if not header:
            header = list(flat)
            yield csv_line(header)
        yield csv_line([cell(value) for value in flat.values()])
    if not header:
        yield csv_line([*EXPORTED, HEAD])


def _flat(row: Row) -> dict[str, Any]:
    """A body in two columns: which form it has (text, base64, masked), and the text of it."""
    if "body" not in row:
        return dict(row)
    ((form, text),) = (row["body"] or {"": ""}).items()
    return {name: value for name, value in row.items() if name != "message"} | {
        "body_form": form,
        "body": text,
    }
