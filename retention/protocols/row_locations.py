"""Old protocols by where they lie in their table (`console.database.statements`)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, Case, DateTimeField, UUIDField, Value, When

from console.database.bulk import among
from console.database.statements import at_places, counts_and_places, delete_where, row_place
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


def find(activations: Collection[UUID], older: datetime, most: int) -> Found:
    """Those of these activations, at most so many, whichever. Older by both clocks."""
    goes = Case(
        When(occurred_at__lt=older, received_at__lt=older, then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )
    rows = FailureProtocol.objects.filter(activation_uuid__in=activations).order_by()
    lying = rows.annotate(goes=goes, lies=row_place(FailureProtocol))
    found, places = counts_and_places(lying.values_list("activation_uuid", "goes", "lies")[:most])
    counts: dict[bool, Counter[UUID]] = {True: Counter(), False: Counter()}
    for activation, going, count in found:
        counts[going][_uuid(activation)] = count
    seen = sum(counts[True].values()) + sum(counts[False].values())
    return Found(places, counts[True], counts[False], cut=seen == most)


def delete(places: Sequence[str], activations: Collection[UUID], older: datetime) -> Counter[UUID]:
    """{activation: how many}. Of what lies there, what is of these activations and older by both clocks."""
    if not places or not activations:
        return Counter()
    instant = DateTimeField().get_db_prep_value(older, connection)
    # An index that the condition could use would be taken instead of the places.
    theirs, pks = among("activation_uuid", activations, UUIDField())
    old = f"CASE WHEN occurred_at < %s AND received_at < %s THEN {theirs} ELSE false END"
    return _deleted(places, old, [instant, instant, pks])


def delete_these(ids: Mapping[str, UUID]) -> int:
    """`ids`: {place: protocol}. How many of them were still there. By their keys each would be found in an
    index, whose pages are as scattered as the keys."""
    these, pks = among("id", ids.values(), UUIDField())
    return _deleted(ids, f"CASE WHEN id IS NOT NULL THEN {these} ELSE false END", [pks]).total()


def _deleted(places: Collection[str], condition: str, parameters: list[Any]) -> Counter[UUID]:
    here, given = at_places(places)
    deleted: Counter[UUID] = Counter()
    for activation, count in delete_where(
        FailureProtocol, f"{here} AND {condition}", [given, *parameters], by="activation_uuid"
    ):
        deleted[_uuid(activation)] += count
    return deleted


def _uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)
