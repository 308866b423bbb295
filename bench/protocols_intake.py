"""Protocols through gunicorn and REST into the database, beside the database taking the same rows bare."""

import io
import time
from collections.abc import Sequence
from typing import Any

from bench import Bound, Line, Measure
from bench.protocols import Here
from bench.protocols_sent import SENDERS, send_all, senders, web
from deploy.services.ports import free_ports

GOALS = {"sqlite": 1500.0, "postgresql": 2000.0}
GOAL_OF_COPY = 0.2
TABLE = "failures_failureprotocol"


def measure(here: Here) -> Sequence[Line]:
    from failures.models import FailureProtocol

    ready = senders(here.sent, [f"intake-{number}" for number in range(SENDERS)])
    with web(free_ports(1)[0]) as url:
        lasted, _ = send_all(url, ready)
    stored = FailureProtocol.objects.count()
    if stored != sum(len(sender.batches) for sender in ready) * 100:
        raise RuntimeError(f"{stored} of {here.sent} are stored")
    product, reference = stored / lasted, stored / bare(here.database)
    name = f"{here.database} · intake of {stored:,} protocols of 4 KB in batches of 100"
    lines: list[Line] = [
        Bound(name=name, product=product, reference=reference, goal=GOALS[here.database], unit="/s"),
    ]
    if here.database == "postgresql":
        lines.append(
            Measure(
                name=f"{name}, beside COPY",
                product=product,
                reference=reference,
                goal=GOAL_OF_COPY,
                unit="/s",
            )
        )
    return lines


def bare(database: str) -> float:
    """Seconds for the same rows into a table with the same columns and indexes: by COPY, or by one INSERT
    each in one transaction where there is none."""
    from django.db import connection

    connection.ensure_connection()
    raw: Any = connection.connection
    return _copied(raw) if database == "postgresql" else _inserted(raw)


def _copied(raw: Any) -> float:
    content = io.BytesIO()
    with raw.cursor() as cursor:
        with cursor.copy(f"copy {TABLE} to stdout (format binary)") as out:
            for data in out:
                content.write(data)
        cursor.execute(f"create table bare (like {TABLE} including all)")
        began = time.perf_counter()
        with cursor.copy("copy bare from stdin (format binary)") as copy:
            copy.write(content.getvalue())
        raw.commit()
        return time.perf_counter() - began


def _inserted(raw: Any) -> float:
    rows = raw.execute(f"select * from {TABLE}").fetchall()
    made = raw.execute(
        "select sql from sqlite_master where tbl_name = ? and sql is not null", [TABLE]
    ).fetchall()
    for (statement,) in made:
        for name in _names(raw):
            statement = statement.replace(f'"{name}"', f'"bare_{name}"')
        raw.execute(statement)
    marks = ", ".join("?" * len(rows[0]))
    began = time.perf_counter()
    raw.execute("begin immediate")
    raw.executemany(f"insert into bare_{TABLE} values ({marks})", rows)
    raw.execute("commit")
    return time.perf_counter() - began


def _names(raw: Any) -> list[str]:
    """The table's own and those of its indexes."""
    return [
        name for (name,) in raw.execute("select name from sqlite_master where tbl_name = ?", [TABLE]) if name
    ]
