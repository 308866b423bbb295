"""Rows of ours within a statement: one parameter, or one for each column, where thousands of them would take
longer to put into the statement than the database takes to answer it."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

from dlq.models import DeadLetter

# Types of columns.
WHOLE, INSTANT = "bigint", "timestamptz"
QUEUE = "varchar(300)"


def type_of(column: str) -> str:
    """That of a column of the letters."""
    return str(DeadLetter._meta.get_field(column).db_type(connection))


def given_rows(name: str, columns: dict[str, str], rows: Iterable[Sequence[Any]]) -> tuple[str, list[Any]]:
    """`name(column, …) AS (…)` for a WITH, and its parameters. `columns`: the type of each; values as the
    database has them."""
    table = list(rows)
    parameters: list[Any]
    if connection.vendor == "sqlite":
        each = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(columns)))
        source, parameters = f"{each} FROM json_each(%s)", [json.dumps(table)]
    else:
        source = f"* FROM unnest({', '.join(f'%s::{kind}[]' for kind in columns.values())})"
        parameters = [[row[place] for row in table] for place in range(len(columns))]
    return f"{name}({', '.join(columns)}) AS (SELECT {source})", parameters


def given_queues(name: str, queues: Iterable[str]) -> tuple[str, list[Any]]:
    """Of queues alone: the column `q`."""
    return given_rows(name, {"q": QUEUE}, [(queue,) for queue in queues])
