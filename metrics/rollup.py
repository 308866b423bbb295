"""Minutes into wider scopes, into hours and days; and what is too old, away.

One runner at a time has the lock of the mark; who does not get it leaves the work to who has it. Each step is
one transaction that adds and takes away together: killed anywhere, nothing is lost and nothing is counted
twice. What comes late is added like anything else, as far as rows of its time are kept.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Model, Q

from console.database import bulk
from console.database.storage import let_others_write, raw_delete, seconds_alone
from console.jobs import crash
from metrics.intake import scopes_of
from metrics.models import (
    Day,
    Hour,
    HourMinutes,
    MetricsMark,
    Minute,
    Scope,
    ScopeMinute,
    Summed,
    Sums,
    key_of,
)
from metrics.rules import (
    DAY,
    DAYS_KEPT,
    FIGURES,
    HOUR,
    HOURS_KEPT,
    MINUTE,
    MINUTES_KEPT,
    Figures,
    as_text,
    minute_of,
    of_text,
    pack_minutes,
    shared,
    unpack_minutes,
)

# Of a row from its record to its sums, measured.
_SECONDS_PER_ROW = 0.00015
# Shares of rows that lasted for hours count, too: a step of them is not longer than one of others.
_MOST_SHARES = 5000
# One task; what is left is the next one's.
TURN_SECONDS = 20.0
# What comes within it after the end of an hour is packed with the others, not by itself.
GRACE = timedelta(minutes=10)
DELETED_AT_ONCE = 1000

TABLES: Mapping[int, type[Summed]] = {MINUTE: ScopeMinute, HOUR: Hour, DAY: Day}

# By key (`metrics.models.key_of`).
Additions = dict[int, Figures]


def rows_at_once() -> int:
    """SQLite has one writer: others wait for a step."""
    return int(seconds_alone() / _SECONDS_PER_ROW)


@contextmanager
def turn(*, wait: bool = False) -> Iterator[bool]:
    """One transaction; yields whether it is this runner's turn, and true where it may wait for it."""
    MetricsMark.objects.get_or_create(pk=1)
    with transaction.atomic():
        marks = MetricsMark.objects.select_for_update(skip_locked=not wait).filter(pk=1)
        yield marks.first() is not None


def _repeated(step: Callable[[datetime], bool], now: datetime) -> None:
    ends_at = time.monotonic() + TURN_SECONDS
    while step(now) and time.monotonic() < ends_at:
        let_others_write()


# -- minutes into the wider scopes ---------------------------------------------------------------------------


def fold_all(now: datetime) -> None:
    _repeated(fold, now)


def fold(now: datetime) -> bool:
    """Returns whether there may be more."""
    with turn() as mine:
        if not mine:
            return False
        most = rows_at_once()
        rows = list(Minute.objects.filter(folded=False).order_by("span")[:most])
        if not rows:
            return False
        rows, more = _some(rows), len(rows) == most
        _add_to_wider(rows, now)
        crash.point("metrics: added, not marked")
        Minute.objects.filter(pk__among=[row.pk for row in rows]).update(folded=True)
        MetricsMark.objects.filter(pk=1).update(folded_at=now)
        crash.point("metrics: marked, not committed")
    return more


def _some(rows: Sequence[Minute]) -> list[Minute]:
    """As many as have not too many shares, but one at least."""
    taken: list[Minute] = []
    shares = 0
    for row in rows:
        shares += min(744, max(1, (row.ended_at - row.began_at) // timedelta(minutes=1)))
        if taken and shares > _MOST_SHARES:
            break
        taken.append(row)
    return taken


def _add_to_wider(rows: Sequence[Minute], now: datetime) -> None:
    scopes = Scope.objects.in_bulk({row.scope_id for row in rows})
    names = {pk: _wider(scopes.get(pk)) for pk in {row.scope_id for row in rows}}
    wider = scopes_of({each for several in names.values() for each in several})
    sums: dict[int, Additions] = {unit: defaultdict(Figures) for unit in TABLES}
    for row in rows:
        into = [wider[each] for each in names[row.scope_id]]
        for minute, figures in shares_of(row):
            for scope in into:
                for unit in TABLES:
                    sums[unit][key_of(scope, minute // unit)].add(figures)
    for unit, additions in sums.items():
        add(unit, additions, now)


def _wider(scope: Scope | None) -> set[tuple[int | None, int | None]]:
    """Returns whose rows hold what is reported of it; of one that is gone, what is left of it."""
    setting, server = (scope.setting_id, scope.server_id) if scope else (None, None)
    return {(setting, None), (None, server), (None, None)}


def shares_of(row: Minute) -> Iterator[tuple[int, Figures]]:
    return shared(figures_of(row), row.began_at, row.ended_at)


def figures_of(row: Sums) -> Figures:
    values = {name: getattr(row, name) for name in FIGURES}
    return Figures(**{**values, "processing": of_text(row.processing), "critical": of_text(row.critical)})


def columns_of(figures: Figures) -> dict[str, Any]:
    values = {name: getattr(figures, name) for name in FIGURES}
    return {**values, "processing": as_text(figures.processing), "critical": as_text(figures.critical)}


# -- sums that are added to ----------------------------------------------------------------------------------
# Call these with the lock: they read what is there and write the sum.


def add(unit: int, additions: Additions, now: datetime) -> None:
    """Adds to rows of the table of that unit; makes those that are missing. Leaves out what is too old."""
    table = TABLES[unit]
    oldest = oldest_kept(unit, now)
    new = {key: figures for key, figures in additions.items() if key & 0xFFFFFFFF >= oldest}
    there = {row.key: row for row in table._default_manager.filter(key__among=list(new))}
    made = []
    for key, figures in sorted(new.items()):
        if row := there.get(key):
            figures.add(figures_of(row))
            for name, value in columns_of(figures).items():
                setattr(row, name, value)
        else:
            made.append(_new(table, key, **columns_of(figures)))
    bulk.insert_rows(made)
    upsert(table, list(there.values()), FIGURES)


def upsert(table: type[Summed], rows: Sequence[Summed], columns: Iterable[str]) -> None:
    """Writes these columns of rows, whether they are there or not."""
    table._default_manager.bulk_create(
        rows, update_conflicts=True, unique_fields=["key"], update_fields=list(columns)
    )


def _new(table: type[Summed], key: int, **columns: Any) -> Summed:
    return table(key=key, scope_id=key >> 32, span=key & 0xFFFFFFFF, **columns)


def oldest_kept(unit: int, now: datetime) -> int:
    """Returns the first minute, hour or day of which rows stay."""
    kept = {MINUTE: MINUTES_KEPT, HOUR: HOURS_KEPT, DAY: DAYS_KEPT}[unit]
    return (minute_of(now) - kept) // unit


# -- hours of a setting on a server --------------------------------------------------------------------------


def pack_all(now: datetime) -> None:
    """Adds what is reported of hours that are over to these, the oldest first."""
    _repeated(pack, now)


def pack(now: datetime) -> bool:
    """Returns whether there may be more."""
    with turn() as mine:
        before = minute_of(now - GRACE) // HOUR * HOUR
        rows = _due(before, rows_at_once()) if mine else []
        if not rows:
            return False
        hours: Additions = defaultdict(Figures)
        days: Additions = defaultdict(Figures)
        minutes: dict[int, Additions] = defaultdict(lambda: defaultdict(Figures))
        own = {
            pk
            for pk, scope in Scope.objects.in_bulk({row.scope_id for row in rows}).items()
            if is_pair(scope)
        }
        for row in rows:
            # Of no setting that is known: it is in the rows of its server already.
            for minute, figures in shares_of(row) if row.scope_id in own else ():
                hour = key_of(row.scope_id, minute // HOUR)
                hours[hour].add(figures)
                days[key_of(row.scope_id, minute // DAY)].add(figures)
                minutes[hour][minute % HOUR].add(figures)
        add(HOUR, hours, now)
        add(DAY, days, now)
        _add_minutes(minutes, now)
        crash.point("metrics: packed, not deleted")
        raw_delete(Minute.objects.filter(pk__among=[row.pk for row in rows]))
        crash.point("metrics: deleted, not committed")
    return True


def _due(before: int, most: int) -> list[Minute]:
    """Returns rows of the oldest hour that has some, scope by scope."""
    folded = Minute.objects.filter(folded=True, span__lt=before)
    oldest = folded.order_by("span").values_list("span", flat=True).first()
    if oldest is None:
        return []
    hour = oldest // HOUR * HOUR
    rows = folded.filter(span__gte=hour, span__lt=hour + HOUR)
    return _some(list(rows.order_by("scope_id", "span")[:most]))


def is_pair(scope: Scope) -> bool:
    return scope.setting_id is not None and scope.server_id is not None


def _add_minutes(minutes: Mapping[int, Additions], now: datetime) -> None:
    oldest = oldest_kept(MINUTE, now) // HOUR
    new = {key: each for key, each in minutes.items() if key & 0xFFFFFFFF >= oldest}
    there = dict(HourMinutes.objects.filter(key__among=list(new)).values_list("key", "minutes"))
    for key, packed_already in there.items():
        for minute, figures in unpack_minutes(bytes(packed_already)).items():
            new[key][minute].add(figures)
    rows = [
        HourMinutes(key=key, span=key & 0xFFFFFFFF, minutes=pack_minutes(each)) for key, each in new.items()
    ]
    HourMinutes.objects.bulk_create(
        sorted(rows, key=lambda row: row.key),
        update_conflicts=True,
        unique_fields=["key"],
        update_fields=["minutes"],
    )


# -- what is too old, and what nobody asks for any more ------------------------------------------------------


def forget_all(now: datetime) -> None:
    _repeated(forget, now)


def forget(now: datetime) -> bool:
    """Deletes some of what is older than it is kept, or of scopes whose setting or server is gone. Returns
    whether there may be more."""
    with turn() as mine:
        if not mine:
            return False
        deleted = any(_delete_old(table, oldest) for table, oldest in _bounds(now)) or _sweep()
        crash.point("metrics: forgotten, not committed")
    return deleted


def _bounds(now: datetime) -> Iterator[tuple[type[Model], int]]:
    yield from ((table, oldest_kept(unit, now)) for unit, table in TABLES.items())
    yield HourMinutes, oldest_kept(MINUTE, now) // HOUR


def _delete_old(table: type[Model], oldest: int) -> int:
    old = table._default_manager.filter(span__lt=oldest).order_by("span").values_list("pk", flat=True)
    keys = list(old[:DELETED_AT_ONCE])
    return raw_delete(table._default_manager.filter(pk__among=keys)) if keys else 0


def _sweep() -> bool:
    """The scope goes last: who finds it, finds the rest of its rows."""
    gone = next((each for each in Scope.objects.filter(_maybe_gone()) if _is_gone(each)), None)
    if gone is None or Minute.objects.filter(scope=gone, folded=False).exists():
        return False
    own = Q(pk__gte=key_of(gone.pk, 0), pk__lt=key_of(gone.pk + 1, 0))
    tables: tuple[type[Model], ...] = (*TABLES.values(), HourMinutes)
    for table in tables:
        keys = list(
            table._default_manager.filter(own).order_by().values_list("pk", flat=True)[:DELETED_AT_ONCE]
        )
        if keys:
            raw_delete(table._default_manager.filter(pk__among=keys))
            return True
    raw_delete(Minute.objects.filter(scope=gone, folded=True))
    raw_delete(Scope.objects.filter(pk=gone.pk))
    return True


def _maybe_gone() -> Q:
    return Q(setting=None, key__startswith="s") | Q(server=None, key__contains="h")


def _is_gone(scope: Scope) -> bool:
    return ("s" in scope.key and scope.setting_id is None) or ("h" in scope.key and scope.server_id is None)
