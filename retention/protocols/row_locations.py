"""Protocols by where they lie in their table, which finds and deletes them without an index, page after page.

A place is no name: another row may lie there by the time. So what is deleted must fulfil the whole condition
again.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import BooleanField, Case, DateTimeField, UUIDField, Value, When
from django.db.models.expressions import RawSQL

from failures.models import FailureProtocol


@dataclass(frozen=True, slots=True)
class Found:
    """`places` of those that are older than asked, in the order of the table; `stay`: {activation: how many
    are younger}; `going`: the same of the older ones. `cut`: there are more than were looked at."""

    places: list[str]
    going: Counter[UUID]
    stay: Counter[UUID]
    cut: bool

    def left(self, deleted: Counter[UUID]) -> set[UUID]:
        """Activations of which something is left when so many were deleted."""
        return {pk for pk, count in self.going.items() if deleted[pk] != count} | self.stay.keys()


def place() -> RawSQL:
    """Returns the place of a protocol, as an annotation."""
    return RawSQL(f"{_table()}.{_PLACE[connection.vendor]}", [])


def find(activations: Collection[UUID], older: datetime, most: int) -> Found:
    """Those of these activations, at most so many, whichever. Older by both clocks."""
    goes = Case(
        When(occurred_at__lt=older, received_at__lt=older, then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )
    rows = FailureProtocol.objects.filter(activation_uuid__in=activations).order_by()
    lying = rows.annotate(goes=goes, lies=place()).values("activation_uuid", "goes", "lies")[:most]
    found, parameters = lying.query.get_compiler(connection=connection).as_sql()
    statement = (
        f"WITH found (activation, goes, place) AS {_KEPT[connection.vendor]} ({found}) "
        "SELECT activation, goes, count(*), NULL FROM found GROUP BY activation, goes "
        f"UNION ALL SELECT NULL, NULL, NULL, {_JOINED[connection.vendor]}"
    )
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_READ_AHEAD)
        cursor.execute(statement, parameters)
        answer = cursor.fetchall()
    counts: dict[bool, Counter[UUID]] = {True: Counter(), False: Counter()}
    places: list[str] = []
    for activation, is_going, count, joined in answer:
        if count is None:
            places = joined.split(" ") if joined else []
        else:
            counts[bool(is_going)][_uuid(activation)] = count
    seen = sum(counts[True].values()) + sum(counts[False].values())
    return Found(places, counts[True], counts[False], cut=seen == most)


def delete(places: Sequence[str], activations: Collection[UUID], older: datetime) -> Counter[UUID]:
    """{activation: how many}. Of what lies there, what is of these activations and older by both clocks."""
    if not places or not activations:
        return Counter()
    instant = DateTimeField().get_db_prep_value(older, connection)
    pks = [UUIDField().get_db_prep_value(pk, connection) for pk in activations]
    # An index that the condition could use would be taken instead of the places.
    within = "CASE WHEN occurred_at < %s AND received_at < %s THEN activation_uuid {} ELSE {} END"
    parameters: list[Any] = [instant, instant]
    if connection.vendor == "postgresql":
        statement = (
            f"WITH gone AS (DELETE FROM {_table()} WHERE ctid = ANY(%s::tid[]) AND "
            f"{within.format('= ANY(%s::uuid[])', 'false')} RETURNING activation_uuid) "
            "SELECT activation_uuid, count(*) FROM gone GROUP BY 1"
        )
        parameters = [_places(places), *parameters, pks]
    else:
        listed = ",".join(["%s"] * len(pks))
        statement = (
            f"DELETE FROM {_table()} WHERE rowid IN (SELECT value FROM json_each(%s)) AND "
            f"{within.format(f'IN ({listed})', '0')} RETURNING activation_uuid, 1"
        )
        parameters = [_places(places), *parameters, *pks]
    deleted: Counter[UUID] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        for activation, count in cursor.fetchall():
            deleted[_uuid(activation)] += count
    return deleted


def delete_these(ids: Mapping[str, UUID]) -> int:
    """`ids`: {place: protocol}. How many of them were still there. By their keys each would be found in an
    index, whose pages are as scattered as the keys."""
    pks = [UUIDField().get_db_prep_value(pk, connection) for pk in ids.values()]
    if connection.vendor == "postgresql":
        statement = f"DELETE FROM {_table()} WHERE ctid = ANY(%s::tid[]) AND id = ANY(%s::uuid[])"
        parameters: list[Any] = [_places(ids), pks]
    else:
        places = "rowid IN (SELECT value FROM json_each(%s))"
        statement = f"DELETE FROM {_table()} WHERE {places} AND +id IN (SELECT value FROM json_each(%s))"
        parameters = [_places(ids), json.dumps(pks)]
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def _places(places: Iterable[str]) -> str:
    """Returns them as one value: an array, or JSON."""
    if connection.vendor == "postgresql":
        return "{" + ",".join(f'"{place}"' for place in places) + "}"
    return f"[{','.join(places)}]"


# Pages that are not in memory are asked for together, not one after the other, until the end of the
# transaction. 0: the platform cannot.
_READ_AHEAD = (
    "SELECT set_config('effective_io_concurrency', '100', true) FROM pg_settings "
    "WHERE name = 'effective_io_concurrency' AND setting <> '0'"
)
_PLACE = {"postgresql": "ctid", "sqlite": "rowid"}
# Read once, though it is used twice.
_KEPT = {"postgresql": "MATERIALIZED", "sqlite": ""}
_JOINED = {
    "postgresql": "string_agg(place::text, ' ' ORDER BY place) FROM found WHERE goes",
    "sqlite": "group_concat(place, ' ') FROM (SELECT place FROM found WHERE goes ORDER BY place)",
}


def _table() -> str:
    return connection.ops.quote_name(FailureProtocol._meta.db_table)


def _uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)
