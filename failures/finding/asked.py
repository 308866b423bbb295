"""What a filter of protocols asks for, in the forms that an index needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import F, Field, Q, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

from failures.models import FailureProtocol


@dataclass(frozen=True, slots=True)
class Start:
    """The begin of an index that goes on with the instant. `exact`: it holds no row that is not of the
    condition."""

    q: Q
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the rows of the condition `name`, in the order of time: its starts together hold all of
    them."""

    name: str
    starts: tuple[Start, ...]


BY_TIME = Way("", (Start(Q()),))


@dataclass(frozen=True, slots=True)
class Asked:
    """`conditions` by name are all but the time, such that no index is used for them: SQLite, which keeps no
    statistics, would take the wrong one. `message_key`: an index knows its rows, in no order. `since`
    inclusive, `until` exclusive."""

    conditions: Mapping[str, Q] = field(default_factory=dict)
    ways: tuple[Way, ...] = ()
    message_key: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def came_after(self, instant: datetime) -> "Asked":
        """Without what had not occurred by then though it was there: a clock that is ahead."""
        ahead = Q(occurred_at__lte=instant) | Q(received_at__gt=instant)
        return replace(self, conditions={**self.conditions, "came": ahead})

    @property
    def rest(self) -> Q:
        return Q(*self.conditions.values())

    def on(self, way: Way, start: Start) -> Q:
        """What the rows at a start of a way have to be: an index alone answers where nothing else is asked
        for."""
        others = [q for name, q in self.conditions.items() if not (start.exact and name == way.name)]
        return Q(start.q, *others)

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
