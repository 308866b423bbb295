"""What a filter of protocols asks for, in the forms that an index needs."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, Field, Q, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

from failures.models import FailureProtocol


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the rows of one condition, in the order of time. Each of `starts` is the begin of an index that goes on
    with the instant; together they hold every row of the condition, and maybe others (`rest` tells)."""

    starts: tuple[Q, ...]


BY_TIME = Way((Q(),))


@dataclass(frozen=True, slots=True)
class Asked:
    """`rest` is every condition but the time, such that no index is used for it: SQLite, which keeps no statistics,
    would take the wrong one. `message_key`: an index knows its rows, in no order. `since` inclusive, `until`
    exclusive."""

    rest: Q = field(default_factory=Q)
    ways: tuple[Way, ...] = ()
    message_key: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def times(self) -> Q:
        when = Q()
        if self.since is not None:
            when &= Q(occurred_at__gte=self.since)
        if self.until is not None:
            when &= Q(occurred_at__lt=self.until)
        return when


def read_as(column: str, value: Any) -> Q:
    """`column` = `value`, by looking at the row."""
    return Q(Exact(Coalesce(F(column), Value(None), output_field=_field(column)), value))


def _field(column: str) -> "Field[Any, Any]":
    found = FailureProtocol._meta.get_field(column)
    assert isinstance(found, Field)
    return found
