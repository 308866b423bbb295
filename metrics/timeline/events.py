"""Describes what happened: kinds of events, each with who may see it, and a page of all of them by time."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString

from agents.models import LaunchSetting, Server
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
    """The newest `most` of a period, below a place if there is one. `user`: who asks."""

    user: Any
    start: datetime
    end: datetime
    most: int
    number: int = 0
    below: Below | None = None

    def newest(self, rows: QuerySet[Any], instant: str) -> Sequence[Any]:
        rows = rows.filter(**{f"{instant}__gte": self.start, f"{instant}__lt": self.end})
        below = self.below
        if below is not None:
            older = Q(**{f"{instant}__lt": below.at})
            if self.number > below.number:
                older = Q(**{f"{instant}__lte": below.at})
            elif self.number == below.number:
                older |= Q(**{instant: below.at}, pk__lt=below.key)
            rows = rows.filter(older)
        return list(rows.order_by(f"-{instant}", "-pk")[: self.most])


@dataclass(frozen=True, slots=True)
class EventKind:
    """`rows` answers the newest of a window, `mark` says what one is. `model`: whose keys they are. `shape`
    and `tone`: what most of its marks look like."""

    name: str
    label: Text
    permission: str
    model: Any
    shape: Shape
    tone: str
    rows: Callable[[Subject, Window], Iterable[Any]]
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
    """Of those kinds that are wanted, a bounded question for each; `kinds` in their order."""
    found = []
    for number, kind in enumerate(kinds):
        if kind.name in wanted:
            own = Window(window.user, window.start, window.end, window.most, number, window.below)
            found += [Event(kind, row.pk, kind.mark(row)) for row in kind.rows(subject, own)]
    # Stable: what happened at one instant stays in the order of kinds and keys.
    return sorted(found, key=lambda event: event.at, reverse=True)[: window.most]
