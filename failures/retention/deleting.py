"""Deleting some of the rows that a condition finds, whichever."""

from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL


def delete_some(rows: QuerySet[Any], most: int) -> int:
    """How many. Nothing that refers to them is looked at: for tables to which no other refers.

    PostgreSQL finds each row twice, once to choose it and once to delete it; where it lies (`ctid`) it finds it without
    an index, in half the time. One that somebody changes in between stays, as if it had not been chosen.
    """
    chosen = rows.order_by()
    if connection.vendor != "postgresql":
        deleted: int = rows.model.objects.filter(pk__in=chosen.values("pk")[:most]).delete()[0]
        return deleted
    table = connection.ops.quote_name(rows.model._meta.db_table)
    lying = chosen.annotate(lies=RawSQL(f"{table}.ctid", [])).values("lies")[:most]
    found, parameters = lying.query.get_compiler(connection=connection).as_sql()
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE ctid = ANY(ARRAY({found}))", parameters)
        return int(cursor.rowcount)
