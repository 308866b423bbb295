"""Shows what a spool holds, for people: `python -m kma.spool PATH`. Read only, also while a KMA writes it."""

import argparse
import json
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kma.spool.retained import WAITS

_RECORDS = (
    "SELECT number, id, kind, content, strftime('%Y-%m-%dT%H:%M:%SZ', created_at, 'unixepoch') FROM records"
    f" WHERE {WAITS}"
)


def _opened(path: Path) -> sqlite3.Connection:
    """Read only; also of a file that no KMA of this version has opened yet."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'delivered'").fetchone():
        connection.execute("CREATE TEMP TABLE delivered (slot, number)")
    return connection


def summary(path: Path) -> dict[str, Any]:
    """What the spool holds, read only and without stopping who writes it."""
    with closing(_opened(path)) as connection:
        rows, size, first, last, oldest = connection.execute(
            "SELECT count(*), coalesce(sum(size), 0), min(number), max(number), min(created_at) FROM records"
            f" WHERE {WAITS}"
        ).fetchone()
        kept, kept_size = connection.execute(
            f"SELECT count(*), coalesce(sum(size), 0) FROM records WHERE NOT ({WAITS})"
        ).fetchone()
        return {
            "spool": connection.execute("SELECT value FROM meta WHERE name = 'spool'").fetchone()[0],
            "rows": rows,
            "bytes": size,
            "first": first,
            "last": last,
            "oldest_at": datetime.fromtimestamp(oldest, UTC).isoformat() if oldest else None,
            "kinds": dict(
                connection.execute(f"SELECT kind, count(*) FROM records WHERE {WAITS} GROUP BY kind")
            ),
            "taken": {"rows": kept, "bytes": kept_size},
            "set_aside": connection.execute("SELECT count(*) FROM set_aside").fetchone()[0],
            "runs": [
                {"run": run, "records": records, "closed": bool(closed)}
                for run, records, closed in connection.execute(
                    "SELECT run, records, closed FROM runs ORDER BY seen_at"
                )
            ],
        }


def records_in(path: Path, most: int, *, aside: bool = False) -> list[dict[str, Any]]:
    """The oldest records that wait, or those that the MA refused with the reason, whole; read only."""
    query = "SELECT number, id, kind, content, reason FROM set_aside" if aside else _RECORDS
    with closing(_opened(path)) as connection:
        rows = connection.execute(f"{query} ORDER BY number LIMIT ?", (most,)).fetchall()
    return [
        {"number": number, "id": identity, "kind": kind, ("reason" if aside else "since"): about}
        | _content(content)
        for number, identity, kind, content, about in rows
    ]


def _content(text: str) -> dict[str, Any]:
    return {"content": json.loads(text)}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kma.spool",
        description="Prints the contents of a spool as JSON. Changes nothing; safe while the spool is in "
        "use.",
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="spool.sqlite3 of a server's data folder")
    parser.add_argument(
        "--records", type=int, metavar="N", help="print the N oldest records that the MA has not stored yet"
    )
    parser.add_argument(
        "--refused", type=int, metavar="N", help="print N records that the MA refused, with the reason"
    )
    asked = parser.parse_args(arguments)
    if not asked.path.is_file():
        parser.error(f"file not found: {asked.path}")
    try:
        if (most := asked.refused if asked.records is None else asked.records) is not None:
            for record in records_in(asked.path, most, aside=asked.records is None):
                print(json.dumps(record, ensure_ascii=False))
        else:
            print(json.dumps(summary(asked.path), indent=2))
    except sqlite3.Error as error:
        print(f"{asked.path} is not a readable spool: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
