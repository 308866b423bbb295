"""Describes what happened: kinds of events, each with who may see it, and a page of all of them by time."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import CharField, Q, QuerySet, Value
from django.db.models.functions import Cast
from django.utils.safestring import SafeString

from agents.models import LaunchSetting, Server
from console.database.statements import in_one_question
from console.lists.keyset import Place, place_in
from console.ui.charts.chart import shape_sample
from console.ui.charts.curves import Mark, Shape
from console.ui.page import Text


@dataclass(frozen=True, slots=True)
class Subject:
    """What happened to: a setting, a server, or the installation."""

    setting: LaunchSetting | None = None
    server: Server | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """`key`: of its row. `mark` says what it was."""

    kind: "EventKind"
    key: Any
    mark: Mark

    @property
    def at(self) -> datetime:
        return self.mark.at

    @property
    def sample(self) -> SafeString:
        return shape_sample(self.mark.shape, self.mark.tone)

    @property
    def place(self) -> str:
        """Of `?before=`."""
        return f"{self.kind.name}.{Place(self.at, self.key)}"


@dataclass(frozen=True, slots=True)
class Below:
    """A place in the list of all kinds. What happened at one instant is in the order of kinds and keys."""

    at: datetime
    number: int
    key: Any


@dataclass(frozen=True, slots=True)
class Window:
    """The newest `most` of a period, below a place if there is one."""

    start: datetime
    end: datetime
    most: int
    below: Below | None = None

    def newest(self, rows: QuerySet[Any], instant: str, number: int) -> QuerySet[Any]:
        """`number`: of their kind."""
        rows = rows.filter(**{f"{instant}__gte": self.start, f"{instant}__lt": self.end})
        below = self.below
        if below is not None:
            older = Q(**{f"{instant}__lt": below.at})
            if number > below.number:
                older = Q(**{f"{instant}__lte": below.at})
            elif number == below.number:
                older |= Q(**{instant: below.at}, pk__lt=below.key)
            rows = rows.filter(older)
        return rows.order_by(f"-{instant}", "-pk")[: self.most]


@dataclass(frozen=True, slots=True)
class EventKind:
    """`rows` answers those of a subject, None where it can have none; `instant` is their column that says
    when. `mark` says what one is, and reads no other `columns`. `shape` and `tone`: what most of its marks
    look like."""

    name: str
    label: Text
    permission: str
    model: Any
    shape: Shape
    tone: str
    instant: str
    columns: tuple[str, ...]
    rows: Callable[[Subject], QuerySet[Any] | None]
    mark: Callable[[Any], Mark]


def below_in(text: str, kinds: Sequence[EventKind]) -> Below | None:
    """Returns the place that `Event.place` wrote; None for anything else: the list begins at its end."""
    name, _dot, rest = text.partition(".")
    for number, kind in enumerate(kinds):
        if kind.name == name and (place := place_in(rest, kind.model)):
            return Below(place.at, number, place.key)
    return None


def newest_events(
    kinds: Sequence[EventKind],
    wanted: Collection[str],
    subject: Subject,
    window: Window,
) -> list[Event]:
    """Of those kinds that are wanted, `kinds` in their order: one bounded question for all of them, and one
    for what is shown of each table."""
    asked = []
    for number, kind in enumerate(kinds):
        rows = kind.rows(subject) if kind.name in wanted else None
        if rows is not None:
            newest = window.newest(rows, kind.instant, number)
            asked.append(newest.values_list(kind.instant, Value(number), Cast("pk", CharField())))
    # What happened at one instant is in the order of kinds and keys.
    places = sorted(
        ((at, -number, _key(kinds[number], key)) for at, number, key in in_one_question(asked)), reverse=True
    )[: window.most]
    rows_of = _rows([(kinds[-number], key) for _at, number, key in places])
    found = ((kinds[-number], key, rows_of[kinds[-number].model].get(key)) for _at, number, key in places)
    # What was deleted meanwhile is left out.
    return [Event(kind, key, kind.mark(row)) for kind, key, row in found if row is not None]


def _key(kind: EventKind, text: str) -> Any:
    return kind.model._meta.pk.to_python(text)


def _rows(wanted: Sequence[tuple[EventKind, Any]]) -> dict[Any, dict[Any, Any]]:
    """Returns rows of each table by their keys."""
    columns, keys = defaultdict[Any, set[str]](set), defaultdict[Any, list[Any]](list)
    for kind, key in wanted:
        columns[kind.model].update(kind.columns)
        keys[kind.model].append(key)
    return {model: dict(_fetched(model, columns[model], keys[model])) for model in keys}


def _fetched(model: Any, columns: Collection[str], keys: Collection[Any]) -> Iterator[tuple[Any, Any]]:
    related = {name.partition("__")[0] for name in columns if "__" in name}
    rows = model._default_manager.filter(pk__in=keys).only(*columns)
    for row in rows.select_related(*related) if related else rows:
        yield row.pk, row
