"""Protocols in the order in which retention looks at them, some at a time, each look by an index."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from agents.models import Activation
from failures.models import FailureProtocol
from failures.retention import lying
from failures.retention.facts import fact_of
from failures.retention.keepers import Picked
from failures.retention.rule import Range

AT_ONCE = 5000
READ = (
    "pk", "activation_id", "occurred_at", "received_at", "setting_key", "message_key", "message_key_weak",
    "last_attempt", "temporary", "lies",
)  # fmt: skip
Row = tuple[UUID, UUID | None, datetime, datetime, str, str, bool, bool, bool, str | int]


def by_time(rows: QuerySet[FailureProtocol], of: Range) -> Iterator[list[Picked]]:
    """Those of `rows` that the range covers; the oldest first, each looked at once. A part may be empty.

    A protocol is as old as the later of both clocks says: a server whose clock is years behind loses
    nothing."""
    assert of.before is not None
    for picked in _walk(rows.filter(occurred_at__lt=of.before)):
        yield _covered(of, picked)


def of_activation(activation: UUID) -> Iterator[list[Picked]]:
    """All of one; the oldest first, each looked at once."""
    return _walk(FailureProtocol.objects.filter(activation_uuid=activation))


def _walk(rows: QuerySet[FailureProtocol]) -> Iterator[list[Picked]]:
    ordered = rows.annotate(lies=lying.place()).order_by("occurred_at", "pk")
    after: tuple[datetime, UUID] | None = None
    while True:
        following = ordered.filter(_past(*after), occurred_at__gte=after[0]) if after else ordered
        found = list(following.values_list(*READ)[:AT_ONCE])
        if not found:
            return
        after = (found[-1][2], found[-1][0])
        yield [_picked(row) for row in found]


def _past(at: datetime, pk: UUID) -> Q:
    return Q(occurred_at__gt=at) | Q(pk__gt=pk)


def _picked(row: Row) -> Picked:
    (
        pk,
        activation,
        occurred_at,
        received_at,
        setting_key,
        message_key,
        weak,
        last_attempt,
        temporary,
        lies,
    ) = row
    at = max(occurred_at, received_at)
    return Picked(
        pk, activation, at, setting_key, message_key, weak, last_attempt, temporary, received_at, str(lies)
    )


def without(ranges: Sequence[Range], picked: list[Picked]) -> list[Picked]:
    """Those that none of these ranges covers."""
    return [each for each, covered in _each_covered(ranges, picked) if not covered]


def _covered(of: Range, picked: Sequence[Picked]) -> list[Picked]:
    return [each for each, covered in _each_covered([of], picked) if covered]


def _each_covered(ranges: Sequence[Range], picked: Sequence[Picked]) -> list[tuple[Picked, bool]]:
    if not ranges:
        return [(each, False) for each in picked]
    activations = Activation.objects.in_bulk({each.activation_id for each in picked if each.activation_id})
    facts = {pk: fact_of(activation) for pk, activation in activations.items()}

    def covered(each: Picked) -> bool:
        fact = facts.get(each.activation_id) if each.activation_id else None
        return any(of.covers(fact, each.at) for of in ranges)

    return [(each, covered(each)) for each in picked]
