"""Dead letters by the day that they died on, the latest days first. Days are those of the site's zone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from console.database.bulk import INSTANT, WHOLE, values_table
from dlq.dead_letters.queries.ranges import IS_DEAD, QUEUE, TABLE, ValueCount, queues_table

# Days with dead letters that are shown, and how many days of the calendar are looked at together.
MOST = AT_ONCE = 31


def by_day(queues: Sequence[str], *, up_to: int) -> tuple[list[ValueCount], bool]:
    """Per day and queue, each counted up to `up_to`; and whether there are older days. Two statements, and as
    many more for each month without any."""
    found: list[ValueCount] = []
    shown: set[date] = set()
    latest = _latest(queues, None)
    while latest is not None and len(shown) < MOST:
        last = timezone.localtime(latest).date()
        days = [last - timedelta(days=back) for back in range(AT_ONCE)]
        counted = _counted(queues, days, up_to)
        kept = sorted({each.value for each in counted} | {last}, reverse=True)[: MOST - len(shown)]
        found += [each for each in counted if each.value in kept]
        shown.update(kept)
        latest = _latest(queues, begin_of(kept[-1] if len(shown) == MOST else days[-1]))
    return found, latest is not None


def begin_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))


def ends_of(day: date) -> tuple[datetime, datetime]:
    """Its begin, and that of the next one."""
    return begin_of(day), begin_of(day + timedelta(days=1))


def _latest(queues: Sequence[str], before: datetime | None) -> datetime | None:
    """Returns when the last one died, of those that died `before`: one step into the index per queue."""
    then = " AND seen_at < %s" if before else ""
    places, given = queues_table("places", queues)
    sql = (
        f"WITH {places} SELECT max(at) FROM ("
        f"SELECT (SELECT seen_at FROM {TABLE} WHERE queue = places.q AND {IS_DEAD}{then} "
        f"ORDER BY seen_at DESC LIMIT 1) AS at FROM places) AS latest"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*given, *([_adapted(before)] if before else [])])
        return instant((cursor.fetchone() or (None,))[0])


def _counted(queues: Sequence[str], days: Sequence[date], up_to: int) -> list[ValueCount]:
    """Takes the first and the last dead letter of those that were counted to the end; asks for the last of
    larger ones."""
    here = (
        f"FROM {TABLE} WHERE queue = places.q AND {IS_DEAD} AND seen_at >= days.since AND "
        f"seen_at < days.until"
    )
    few = f"SELECT id {here} ORDER BY seen_at LIMIT {int(up_to)}"
    looked = f"SELECT count(*) || ' ' || min(id) || ' ' || max(id) FROM ({few}) AS few"
    places, given = queues_table("places", queues)
    rows_of_days = [(place, *_ends(day)) for place, day in enumerate(days)]
    wanted, more = values_table("days", {"place": WHOLE, "since": INSTANT, "until": INSTANT}, rows_of_days)
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH {places}, {wanted} SELECT q, place, ({looked}) FROM places CROSS JOIN days",
            [*given, *more],
        )
        rows = cursor.fetchall()
    found = [ValueCount(queue, days[place], *map(int, seen.split())) for queue, place, seen in rows if seen]
    large = [place for place, each in enumerate(found) if each.count >= up_to]
    for place, last in zip(
        large, _last([(found[place].queue, found[place].value) for place in large]), strict=True
    ):
        found[place] = replace(found[place], last=max(found[place].last, last))
    return found


def _last(wanted: Sequence[tuple[str, date]]) -> list[int]:
    """The number of the last dead letter of each queue on this day."""
    if not wanted:
        return []
    rows = [(place, queue, *_ends(day)) for place, (queue, day) in enumerate(wanted)]
    columns = {"place": WHOLE, "q": QUEUE, "since": INSTANT, "until": INSTANT}
    given, parameters = values_table("wanted", columns, rows)
    here = f"queue = wanted.q AND {IS_DEAD} AND seen_at >= wanted.since AND seen_at < wanted.until"
    question = f"SELECT id FROM {TABLE} WHERE {here} ORDER BY seen_at DESC LIMIT 1"
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {given} SELECT place, ({question}) FROM wanted ORDER BY place", parameters)
        return [number or 0 for _place, number in cursor.fetchall()]


def _ends(day: date) -> tuple[Any, Any]:
    since, until = ends_of(day)
    return _adapted(since), _adapted(until)


def _adapted(at: datetime | None) -> Any:
    return connection.ops.adapt_datetimefield_value(at)


def instant(stored: object) -> datetime | None:
    """Returns it as a statement of ours reads it: SQLite keeps it without a zone, in UTC, and now and then
    gives its text."""
    at = parse_datetime(stored) if isinstance(stored, str) else stored
    if not isinstance(at, datetime):
        return None
    return at if timezone.is_aware(at) else at.replace(tzinfo=UTC)
