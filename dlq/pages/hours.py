"""How many letters died in each of the last hours, for a sparkline: bounded reads of one index, however many died.

An hour that is over does not change any more, so it is counted once per process and kept.
"""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection

from dlq.models import DeadLetter, LetterState

HOURS = 24
HOUR = timedelta(hours=1)
# Of one hour no more are counted: the line has its full height there.
MOST = 2000
# Closed hours of so many queues are kept; then all are forgotten.
MOST_KEPT = 20_000

_lock = threading.Lock()
_kept: dict[tuple[str, datetime], int] = {}


def deaths_by_hour(queue: str, now: datetime) -> list[int]:
    """The last HOURS hours of the clock, oldest first, the one at hand last; each at most MOST."""
    this = now.replace(minute=0, second=0, microsecond=0)
    hours = [this - HOUR * back for back in range(HOURS - 1, -1, -1)]
    with _lock:
        known = {hour: _kept[queue, hour] for hour in hours[:-1] if (queue, hour) in _kept}
    missing = [hour for hour in hours if hour not in known]
    counted = dict(zip(missing, _counts(queue, [(hour, hour + HOUR) for hour in missing]), strict=True))
    with _lock:
        if len(_kept) > MOST_KEPT:
            _kept.clear()
        _kept.update({(queue, hour): count for hour, count in counted.items() if hour != this})
    return [known[hour] if hour in known else counted[hour] for hour in hours]


def forget() -> None:
    """For tests: as in a process that has just started."""
    with _lock:
        _kept.clear()


def _counts(queue: str, spans: Sequence[tuple[datetime, datetime]]) -> list[int]:
    """One statement with one bounded count per span and state: each a range of `letters_by_time`."""
    table = connection.ops.quote_name(DeadLetter._meta.db_table)
    states = LetterState.values
    one = f"SELECT 1 FROM {table} WHERE queue = %s AND state = %s AND seen_at >= %s AND seen_at < %s LIMIT {MOST}"
    columns, values = [], []
    adapt = connection.ops.adapt_datetimefield_value
    for since, until in spans:
        columns.append(" + ".join(f"(SELECT count(*) FROM ({one}) AS some)" for _state in states))
        for state in states:
            values += [queue, state, adapt(since), adapt(until)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)}", values)
        row = cursor.fetchone()
    return [min(MOST, int(count)) for count in row or ()]
