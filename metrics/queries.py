"""Figures of a range: a series of points for a picture, or sums of many scopes. Every range is bounded, and
nothing here reads more than some thousand rows for one scope."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from django.db.models import Max, Q, QuerySet, Sum

from console.database.statements import JoinedTexts
from metrics.intake import key_for
from metrics.models import GAUGES, HourMinutes, Minute, Scope, key_of
from metrics.rollup import TABLES, is_pair, shares_of
from metrics.rules import (
    COUNTS,
    FIGURES,
    HISTOGRAMS,
    HOUR,
    MINUTE,
    PLAIN,
    SECONDS,
    Axis,
    Figures,
    add_text,
    axis,
    cover,
    instant,
    of_text,
    unpack_minutes,
)

# Of several scopes at once.
MOST_POINTS_EACH = 60
_MANY_BY_MINUTES = 90


@dataclass(frozen=True, slots=True)
class Point:
    """`seconds`: how long it is, less where it is not over. Counts are 0 where nothing was reported. What the
    broker counted is the last value in the point; None where nobody could ask."""

    start: datetime
    seconds: float
    succeeded: int = 0
    failed: int = 0
    temporary: int = 0
    recovered: int = 0
    bytes: int = 0
    no_timestamp: int = 0
    before_sent: int = 0
    busy_seconds: float = 0.0
    capacity_seconds: float = 0.0
    spool_seconds: float = 0.0
    children_bytes: int = 0
    processing: Mapping[int, int] = field(default_factory=dict)
    critical: Mapping[int, int] = field(default_factory=dict)
    waiting: int | None = None
    delayed: int | None = None
    in_delivery: int | None = None
    dead: int | None = None
    oldest_seconds: float | None = None

    @property
    def handled(self) -> int:
        return self.succeeded + self.failed + self.temporary


@dataclass(frozen=True, slots=True)
class Series:
    """Without gaps from `start` to `end`, each point `step` after the one before. No points: nothing of the
    range is kept."""

    step: timedelta
    points: tuple[Point, ...]
    start: datetime
    end: datetime


def scope_of(setting: int | None = None, server: int | None = None) -> str:
    """Returns the scope of a setting, of a server, of a setting on a server, or of the installation, by their
    primary keys."""
    return key_for(setting, server)


def series(scope: str, start: datetime, end: datetime, now: datetime, *, histograms: bool = True) -> Series:
    """Returns at most 400 points, from that of `start` to that of `end`."""
    on = axis(start, end, now)
    row = Scope.objects.filter(key=scope).first()
    found = _points([row] if row else [], on, histograms=histograms)
    return _series(on, found.get(row.pk if row else 0, {}), now)


def _series(on: Axis, places: "Mapping[int, _Place]", now: datetime) -> Series:
    points = tuple(_made(on, places, now))
    return Series(timedelta(minutes=on.step), points, instant(on.first), instant(on.end))


def series_of(scopes: Collection[str], start: datetime, end: datetime, now: datetime) -> dict[str, Series]:
    """Returns a small series of each, without histograms, for a curve in a row of a list: at most
    MOST_POINTS_EACH points, or days."""
    on = axis(start, end, now, most=MOST_POINTS_EACH, by_minutes=_MANY_BY_MINUTES)
    rows = {row.key: row for row in Scope.objects.filter(key__among=list(scopes))}
    found = _points(list(rows.values()), on, histograms=False)
    return {key: _series(on, found.get(rows[key].pk, {}) if key in rows else {}, now) for key in scopes}


# -- points --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """What is known of a point so far."""

    figures: Figures = field(default_factory=Figures)
    gauges: dict[str, float | None] = field(default_factory=dict)


# {scope: {first minute of the point: what is known}}
_Places = dict[int, dict[int, _Place]]


_NOTHING = _Place()


def _made(on: Axis, places: Mapping[int, _Place], now: datetime) -> Iterator[Point]:
    for minute in on.points:
        place = places.get(minute, _NOTHING)
        over = min(minute + on.step, on.end)
        known = _values(place.figures)
        yield Point(instant(minute), (over - minute) * 60.0, *known, **place.gauges)  # type: ignore[arg-type]


_values = attrgetter(*FIGURES)


def _points(scopes: Sequence[Scope], on: Axis, *, histograms: bool = True) -> _Places:
    found: _Places = defaultdict(lambda: defaultdict(_Place))
    if not scopes or on.end <= on.first:
        return found
    pairs = [scope for scope in scopes if is_pair(scope)]
    wider = [scope for scope in scopes if not is_pair(scope)]
    by_minutes = on.unit == MINUTE
    if rows := wider if by_minutes else scopes:
        _add_rows(found, rows, on, histograms)
    if pairs and by_minutes:
        _add_packed(found, pairs, on)
    if pairs:
        _add_reported(found, pairs, on)
    return found


def _add_rows(found: _Places, scopes: Sequence[Scope], on: Axis, histograms: bool) -> None:
    names = FIGURES if histograms else PLAIN
    rows = TABLES[on.unit]._default_manager.filter(
        _within(scopes, on.first // on.unit, -(-on.end // on.unit))
    )
    step, plain = on.step // on.unit, len(PLAIN)
    for scope, span, *values in rows.order_by("key").values_list("scope_id", "span", *names, *GAUGES):
        places, minute = found[scope], span // step * step * on.unit
        place = places.get(minute)
        if place is None:
            place = places[minute] = _Place(Figures(*values[:plain]))
        else:
            place.figures.add(Figures(*values[:plain]))
        if histograms:
            add_text(place.figures.processing, values[plain])
            add_text(place.figures.critical, values[plain + 1])
        for name, value in zip(GAUGES, values[len(names) :], strict=True):
            if value is not None:
                place.gauges[name] = value


def _within(scopes: Sequence[Scope], begin: int, over: int) -> Q:
    """Says of rows that they are of these scopes, and of spans from `begin` until before `over`."""
    ranges = Q()
    for scope in scopes:
        ranges |= Q(key__gte=key_of(scope.pk, begin), key__lt=key_of(scope.pk, over))
    return ranges if scopes else Q(pk=None)


def _add_packed(found: _Places, pairs: Sequence[Scope], on: Axis) -> None:
    rows = HourMinutes.objects.filter(_within(pairs, on.first // HOUR, -(-on.end // HOUR)))
    for key, minutes in rows.values_list("key", "minutes"):
        scope, hour = key >> 32, key & 0xFFFFFFFF
        for minute, figures in unpack_minutes(bytes(minutes)).items():
            _put(found[scope], hour * HOUR + minute, figures, on)


def _add_reported(found: _Places, pairs: Sequence[Scope], on: Axis) -> None:
    """What no hour has yet; it may have begun before the range."""
    for row in Minute.objects.filter(scope__in=pairs, span__lt=on.end).order_by():
        for minute, figures in shares_of(row):
            _put(found[row.scope_id], minute, figures, on)


def _put(places: dict[int, _Place], minute: int, figures: Figures, on: Axis) -> None:
    if on.first <= minute < on.end:
        places[minute // on.step * on.step].figures.add(figures)


# -- sums ----------------------------------------------------------------------------------------------------


def totals(
    scopes: Collection[str], start: datetime, end: datetime, now: datetime, *, histograms: bool = True
) -> dict[str, Figures]:
    """Returns the sums of each scope, 0 where nothing is known, by a question for each kind of span.

    To the minute while minutes are kept. Of a setting on a server a packed hour counts whole."""
    rows = {row.pk: row for row in Scope.objects.filter(key__among=list(scopes))}
    sums: dict[int, Figures] = defaultdict(Figures)
    pairs = [row for row in rows.values() if is_pair(row)]
    wider = [row for row in rows.values() if not is_pair(row)]
    spans = list(cover(start, end, now))
    for unit, begin, over in spans:
        _sum(sums, unit, wider, [(begin, over)], histograms)
    if pairs and spans:
        first, last = spans[0][0] * spans[0][1], spans[-1][0] * spans[-1][2]
        for unit, several in _whole_hours(spans).items():
            _sum(sums, unit, pairs, several, histograms)
        reported = Minute.objects.filter(scope__in=pairs, span__lt=last).order_by()
        _sum_rows(sums, reported.filter(span__gte=first, long=False), histograms)
        for row in reported.filter(long=True):
            for minute, figures in shares_of(row):
                if first <= minute < last:
                    sums[row.scope_id].add(figures)
    if not histograms:
        sums = {pk: replace(each, processing={}, critical={}) for pk, each in sums.items()}
    known = {row.key: sums[pk] for pk, row in rows.items() if pk in sums}
    return {key: known.get(key) or Figures() for key in scopes}


# Ranges of so many scopes in one statement.
_SCOPES_AT_ONCE = 100


def _whole_hours(spans: Iterable[tuple[int, int, int]]) -> dict[int, list[tuple[int, int]]]:
    """Returns them by unit; minutes as the hours that they are of."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for unit, begin, over in spans:
        if unit == MINUTE:
            unit, begin, over = HOUR, begin // HOUR, -(-over // HOUR)
        found[unit].append((begin, over))
    return found


def _sum(
    sums: dict[int, Figures],
    unit: int,
    scopes: Sequence[Scope],
    several: Sequence[tuple[int, int]],
    histograms: bool,
) -> None:
    for at in range(0, len(scopes), _SCOPES_AT_ONCE):
        some = scopes[at : at + _SCOPES_AT_ONCE]
        within = Q()
        for begin, over in several:
            within |= _within(some, begin, over)
        _sum_rows(sums, TABLES[unit]._default_manager.filter(within).order_by(), histograms)


def _sum_rows(sums: dict[int, Figures], rows: QuerySet[Any], histograms: bool) -> None:
    """Adds these rows, not ordered, to the sums of their scopes."""
    numbers = {f"sum_{name}": Sum(name) for name in (*COUNTS, *SECONDS)}
    texts = {f"all_{name}": JoinedTexts(name) for name in HISTOGRAMS} if histograms else {}
    grouped: Any = rows.values("scope_id")
    for row in grouped.annotate(most=Max("children_bytes"), **numbers, **texts):
        values: dict[str, Any] = {name: int(row[f"sum_{name}"]) for name in COUNTS}
        values |= {name: row[f"sum_{name}"] for name in SECONDS}
        values |= {name.removeprefix("all_"): of_text(row[name]) for name in texts}
        sums[row["scope_id"]].add(Figures(children_bytes=row["most"], **values))
