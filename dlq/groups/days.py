"""Dead letters by the day that they died on, the latest days first. Days are those of the site's zone."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.pages import lists
from dlq.loose import TABLE, Counted
from dlq.models import LetterState

# Days with letters that are shown.
MOST = 31
DEAD = LetterState.DEAD.value
_PLACE = "(CAST(%s AS varchar(300)))"


def by_day(queues: Sequence[str]) -> tuple[list[tuple[date, Counted]], bool]:
    """Per day and queue, each counted up to COUNTED + 1; and whether there are older days."""
    found: list[tuple[date, Counted]] = []
    latest = _latest(queues, None)
    for _step in range(MOST):
        if latest is None:
            return found, False
        day = timezone.localtime(latest).date()
        begin, end = begin_of(day), begin_of(day + timedelta(days=1))
        found += [(day, each) for each in _counted(queues, begin, end, day)]
        latest = _latest(queues, begin)
    return found, latest is not None


def begin_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))


def _latest(queues: Sequence[str], before: datetime | None) -> datetime | None:
    """When the last one died, of those that died `before`: one step into the index per queue."""
    if not queues:
        return None
    then = " AND seen_at < %s" if before else ""
    sql = (
        f"WITH places(q) AS (VALUES {', '.join([_PLACE] * len(queues))}) "
        f"SELECT max(at) FROM (SELECT (SELECT seen_at FROM {TABLE} WHERE queue = places.q AND state = %s{then} "
        f"ORDER BY seen_at DESC LIMIT 1) AS at FROM places) AS latest"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*queues, DEAD, *([_adapted(before)] if before else [])])
        return _instant((cursor.fetchone() or (None,))[0])


def _counted(queues: Sequence[str], begin: datetime, end: datetime, day: date) -> list[Counted]:
    here = f"FROM {TABLE} WHERE queue = places.q AND state = %s AND seen_at >= %s AND seen_at < %s"
    sql = (
        f"WITH places(q) AS (VALUES {', '.join([_PLACE] * len(queues))}) "
        f"SELECT q, (SELECT count(*) FROM (SELECT 1 {here} LIMIT %s) AS few), "
        f"(SELECT id {here} ORDER BY seen_at LIMIT 1), (SELECT id {here} ORDER BY seen_at DESC LIMIT 1) FROM places"
    )
    where: list[Any] = [DEAD, _adapted(begin), _adapted(end)]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*queues, *where, lists.COUNTED + 1, *where, *where])
        rows = cursor.fetchall()
    return [Counted(queue, day, count, first, last) for queue, count, first, last in rows if count and first and last]


def _adapted(at: datetime | None) -> Any:
    return connection.ops.adapt_datetimefield_value(at)


def _instant(stored: object) -> datetime | None:
    """SQLite keeps it as a text, in UTC."""
    if not isinstance(stored, str):
        return stored  # type: ignore[return-value]
    at = parse_datetime(stored)
    return at if at is None or timezone.is_aware(at) else timezone.make_aware(at)
