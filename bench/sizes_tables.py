"""Bytes of the tables of the database, each with its indexes and what is stored outside its rows."""

from typing import Any

from django.db import OperationalError, connection

# A virtual table keeps its rows in tables of its own, named after it.
_SQLITE = """
    SELECT coalesce((SELECT v.name FROM sqlite_master v WHERE v.sql LIKE 'CREATE VIRTUAL%'
                     AND substr(m.tbl_name, 1, length(v.name) + 1) = v.name || '_'), m.tbl_name, s.name),
                     sum(s.pgsize)
    FROM dbstat s LEFT JOIN sqlite_master m ON m.name = s.name GROUP BY 1
"""
# Bytes that the indexes of a table have which never had a row, at most; of one that was emptied they have
# more.
_EMPTY = 128 * 1024
_POSTGRESQL = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
"""


def bytes_by_table() -> dict[str, int]:
    """Free pages of a SQLite file belong to no table: anything is written into them. Where its `dbstat` was
    not built in, all tables are one."""
    if connection.vendor == "postgresql":
        return dict(_rows(_POSTGRESQL))
    try:
        return dict(_rows(_SQLITE))
    except OperationalError:
        (((pages,),), ((free,),), ((size,),)) = (
            _rows(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size")
        )
        return {"all tables": (pages - free) * size}


def vacuum() -> None:
    """As PostgreSQL does by itself now and then: what is deleted makes room, which stays with its table."""
    if connection.vendor == "postgresql":
        _run(f"VACUUM (ANALYZE) {_tables_in_use()}")


def pack() -> None:
    """Every table written anew, without room in it."""
    if connection.vendor == "postgresql":
        _run(f"VACUUM (FULL) {_tables_in_use()}")
        vacuum()  # makes the maps of its pages again
        return
    from dlq.search.words import INDEX

    INDEX.merge()
    _run("VACUUM")


def _tables_in_use() -> str:
    names = _rows(
        "SELECT relname FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace "
        f"AND (pg_relation_size(oid) > 0 OR pg_total_relation_size(oid) > {_EMPTY})"
    )
    return ", ".join(connection.ops.quote_name(name) for (name,) in names)


def _rows(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
