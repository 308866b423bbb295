"""Rows of figures as they lie in the tables after minutes, hours and days; without the way that led there."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from contract.histogram import packed
from metrics.models import Day, Hour, Scope, ScopeMinute, Summed, key_of
from metrics.rules import DAY, HOUR, MINUTE, minute_of

TABLES: dict[int, type[Summed]] = {MINUTE: ScopeMinute, HOUR: Hour, DAY: Day}


def fill(
    scope: str,
    now: datetime,
    *,
    minutes: int = 0,
    hours: int = 0,
    days: int = 0,
    values: Callable[[int], dict[str, Any]] | None = None,
    **parts: Any,
) -> Scope:
    """So many of each up to `now`. `values`: the columns of the one that begins at a minute, as of a minute;
    counts grow with the length."""
    row, _made = Scope.objects.get_or_create(key=scope, defaults=parts)
    last = minute_of(now)
    for unit, number in ((MINUTE, minutes), (HOUR, hours), (DAY, days)):
        spans = range(last // unit - number + 1, last // unit + 1)
        TABLES[unit]._default_manager.bulk_create(_rows(row, unit, spans, values or steady), batch_size=500)
    return row


def steady(minute: int) -> dict[str, Any]:
    """Ten handled each minute, two failed, one of them for a time."""
    return {
        "succeeded": 10,
        "failed": 1,
        "temporary": 1,
        "processing": {30: 12},
        "critical": {44: 10},
        "waiting": 5,
    }


GAUGES = ("waiting", "delayed", "in_delivery", "dead", "oldest_seconds")


def _rows(
    scope: Scope, unit: int, spans: Iterable[int], values: Callable[[int], dict[str, Any]]
) -> Iterable[Summed]:
    for span in spans:
        columns = {}
        for name, value in values(span * unit).items():
            if name in ("processing", "critical"):
                columns[name] = packed({bucket: number * unit for bucket, number in value.items()})
            elif value is not None:
                columns[name] = value if name in GAUGES else value * unit
        yield TABLES[unit](key=key_of(scope.pk, span), scope=scope, span=span, **columns)
