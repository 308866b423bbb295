"""Counts of dead letters of many queues, and by the day of the site's zone that they died on: each
bounded, many to a statement, however many dead letters there are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from console.database.bulk import INSTANT, WHOLE, values_table
from dlq.dead_letters.queries.ranges import IS_DEAD, QUEUE, TABLE, ValueCount, queues_table

# Queues of one statement. They are its values: a statement with a part for each takes longer to plan than to
# carry out.
AT_ONCE = 1000
# Queries of one statement: SQLite takes no more than 500.
QUERIES = 200


@dataclass(frozen=True, slots=True)
class CountedRange:
    """Dead letters in `queue` that are dead, or in any state (`ever`), seen from `since` on and before
    `until`."""

    queue: str
    since: datetime | None = None
    until: datetime | None = None
    ever: bool = False

    @property
    def shape(self) -> tuple[bool, bool, bool]:
        return self.since is not None, self.until is not None, self.ever


def count_ranges(wanted: Sequence[CountedRange], most: int) -> list[int]:
    """One count each, at most `most`; each reads one range of an index."""
    counts = [0] * len(wanted)
    for shape in {each.shape for each in wanted}:
        alike = [(place, each) for place, each in enumerate(wanted) if each.shape == shape]
        for first in range(0, len(alike), AT_ONCE):
            for place, count in _counted(alike[first : first + AT_ONCE], shape, most):
                counts[place] = int(count)
    return counts


def _counted(
    alike: Sequence[tuple[int, CountedRange]], shape: tuple[bool, bool, bool], most: int
) -> Iterator[tuple[Any, ...]]:
    since, until, ever = shape
    which = [
        "queue = wanted.q",
        *(["seen_at >= wanted.since"] if since else []),
        *(["seen_at < wanted.until"] if until else []),
        *([] if ever else [IS_DEAD]),
    ]
    adapt = connection.ops.adapt_datetimefield_value
    rows = [
        (place, each.queue, each.since and adapt(each.since), each.until and adapt(each.until))
        for place, each in alike
    ]
    columns = {"place": WHOLE, "q": QUEUE, "since": INSTANT, "until": INSTANT}
    given, parameters = values_table("wanted", columns, rows)
    return _rows(
        f"WITH {given} SELECT place, (SELECT count(*) FROM ("
        f"SELECT 1 FROM {TABLE} WHERE {' AND '.join(which)} LIMIT {int(most)}) AS part) FROM wanted",
        parameters,
    )


def ends(queues: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Returns, by queue, the number of its oldest dead letter (as the feed saw it) and of its newest. One
    without dead letters is left out."""
    found = {}
    dead = f"SELECT id FROM {TABLE} WHERE queue = wanted.q AND {IS_DEAD} ORDER BY"
    for first in range(0, len(queues), AT_ONCE):
        some = queues[first : first + AT_ONCE]
        given, parameters = queues_table("wanted", some)
        statement = f"WITH {given} SELECT q, ({dead} seen_at LIMIT 1), ({dead} id DESC LIMIT 1) FROM wanted"
        for queue, oldest, newest in _rows(statement, parameters):
            if oldest is not None and newest is not None:
                found[queue] = (oldest, newest)
    return found


def kinds(queues: Sequence[str], latest: int) -> dict[str, tuple[str, str, int, int]]:
    """Returns, by queue, of its `latest` dead letters: exception type and fingerprint of most of them, how
    many these are, of how many that was judged."""
    what = "exception_type, fingerprint"
    some = f"SELECT {what} FROM {TABLE} WHERE queue = %s AND {IS_DEAD} ORDER BY id DESC LIMIT {int(latest)}"
    one = f"SELECT %s AS queue, {what}, count(*) AS letters FROM ({some}) AS part GROUP BY {what}"
    found: dict[str, tuple[str, str, int, int]] = {}
    for first in range(0, len(queues), QUERIES):
        part = queues[first : first + QUERIES]
        values = [value for queue in part for value in (queue, queue)]
        for queue, kind, fingerprint, count in _rows(" UNION ALL ".join([one] * len(part)), values):
            before = found.get(queue, ("", "", 0, 0))
            best = (kind, fingerprint, count) if count > before[2] else before[:3]
            found[queue] = (*best, before[3] + count)
    return found


def _rows(statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    if not statement:
        return
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        yield from cursor.fetchall()


# Days with dead letters that are shown, and how many days of the calendar are looked at together.
MOST_DAYS = DAYS_AT_ONCE = 31


def by_day(queues: Sequence[str], *, up_to: int) -> tuple[list[ValueCount], bool]:
    """Per day and queue, each counted up to `up_to`; and whether there are older days. Two statements, and as
    many more for each month without any."""
    found: list[ValueCount] = []
    shown: set[date] = set()
    latest = _latest(queues, None)
    while latest is not None and len(shown) < MOST_DAYS:
        last = timezone.localtime(latest).date()
        days = [last - timedelta(days=back) for back in range(DAYS_AT_ONCE)]
        counted = _counted_by_day(queues, days, up_to)
        kept = sorted({each.value for each in counted} | {last}, reverse=True)[: MOST_DAYS - len(shown)]
        found += [each for each in counted if each.value in kept]
        shown.update(kept)
        latest = _latest(queues, begin_of(kept[-1] if len(shown) == MOST_DAYS else days[-1]))
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


def _counted_by_day(queues: Sequence[str], days: Sequence[date], up_to: int) -> list[ValueCount]:
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
