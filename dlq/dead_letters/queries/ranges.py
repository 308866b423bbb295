"""Distinct values of what is dead, by a loose index scan: one step into the index per value, however many
dead letters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from console.database.bulk import WHOLE, values_table
from dlq.models import DeadLetter, LetterState

TABLE = DeadLetter._meta.db_table
# Each has an index (queue, column) of what is dead.
COLUMNS = frozenset({"fingerprint", "exception_type", "server_name", "activation_uuid"})
# Written out: an index of some dead letters serves a question that says the same.
IS_DEAD = f"state = '{LetterState.DEAD.value}'"
# Queries of one statement: SQLite takes no more than 500.
AT_ONCE = 200
QUEUE = "varchar(300)"


def type_of(column: str) -> str:
    """Returns the type of a column of the dead letters."""
    return str(DeadLetter._meta.get_field(column).db_type(connection))


def queues_table(name: str, queues: Iterable[str]) -> tuple[str, list[Any]]:
    """Returns a table of queues alone: the column `q`."""
    return values_table(name, {"q": QUEUE}, [(queue,) for queue in queues])


@dataclass(frozen=True, slots=True)
class ValueCount:
    """The dead letters of one queue with one value. `count` up to the bound that was asked for; `first` and
    `last` are the lowest and the highest of their numbers."""

    queue: str
    value: Any
    count: int
    first: int
    last: int


def distinct(queue: str, column: str, most: int) -> list[Any]:
    """The values of `column` among the dead letters of one queue, ascending; at most `most`. None is no
    value.

    Raises ValueError for a column without an index for it."""
    _check(column)
    where = f"{column} IS NOT NULL AND queue = %s AND {IS_DEAD}"
    return _steps(column, where, [queue], most)


def queues(most: int = 2000) -> list[str]:
    """Names of all queues that ever held a dead letter."""
    return _steps("queue", "queue IS NOT NULL", [], most)


def distinct_in(queues_: Iterable[str], column: str, most: int) -> set[Any]:
    """Returns them over several queues; may stop at `most` + 1 values: then there are more."""
    found: set[Any] = set()
    for queue in queues_:
        found.update(distinct(queue, column, most + 1))
        if len(found) > most:
            break
    return found


def counted(queues_: Sequence[str], column: str, *, most: int, up_to: int) -> list[ValueCount]:
    """Every value of `column` in every queue that has dead letters of it, each counted up to `up_to`; at most
    `most` of them. Dead letters without a value are one more of each queue, with the value None."""
    _check(column)
    if not queues_:
        return []
    here = f"FROM {TABLE} WHERE queue = step.q AND {IS_DEAD}"
    places, given = queues_table("places", queues_)
    sql = (
        f"WITH RECURSIVE {places}, "
        f"step(q, v) AS ("
        f"SELECT q, (SELECT {column} FROM {TABLE} WHERE queue = places.q AND {IS_DEAD} AND {column} IS NOT "
        f"NULL "
        f"ORDER BY {column} LIMIT 1) FROM places UNION ALL "
        f"SELECT q, (SELECT {column} {here} AND {column} > step.v ORDER BY {column} LIMIT 1) "
        f"FROM step WHERE v IS NOT NULL) "
        f"SELECT q, v, {_scan('step.q', f'{column} = step.v', column)} FROM step WHERE v IS NOT NULL LIMIT "
        f"%s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*given, up_to, most])
        rows = cursor.fetchall()
    found = _with_ends(rows, column, up_to)
    return [*found, *(_without(queues_, column, up_to) if DeadLetter._meta.get_field(column).null else [])]


def counted_values(
    queues_: Sequence[str], column: str, values: Sequence[Any], *, up_to: int
) -> list[ValueCount]:
    """The same of these values only, none of which is None."""
    _check(column)
    if not queues_ or not values:
        return []
    places, queues_given = queues_table("places", queues_)
    wanted, given = values_table(
        "wanted", {"v": type_of(column)}, [(_adapted(column, value),) for value in values]
    )
    sql = (
        f"WITH {places}, {wanted} "
        f"SELECT q, v, {_scan('places.q', f'{column} = wanted.v', column)} FROM places CROSS JOIN wanted"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*queues_given, *given, up_to])
        rows = cursor.fetchall()
    return _with_ends(rows, column, up_to)


def count_each(wanted: Sequence[tuple[str, Any]], column: str, *, up_to: int) -> list[int]:
    """Returns how many dead letters each of these queues has with this value (None: without one), up to
    `up_to`."""
    answers = _of_each(wanted, column, f"SELECT count(*) FROM (SELECT 1 {{here}} LIMIT {int(up_to)}) AS few")
    return [int(answer or 0) for answer in answers]


def _of_each(wanted: Sequence[tuple[str, Any]], column: str, question: str) -> list[Any]:
    """The answer of each, where `{here}` is from where its dead letters come."""
    _check(column)
    answers: list[Any] = [None] * len(wanted)
    for known in (True, False):
        some = [
            (place, queue, value)
            for place, (queue, value) in enumerate(wanted)
            if (value is not None) is known
        ]
        if not some:
            continue
        which = f"{column} = wanted.v" if known else f"{column} IS NULL"
        here = f"FROM {TABLE} WHERE queue = wanted.q AND {IS_DEAD} AND {which}"
        rows = [(place, queue, _adapted(column, value)) for place, queue, value in some]
        given, parameters = values_table("wanted", {"place": WHOLE, "q": QUEUE, "v": type_of(column)}, rows)
        with connection.cursor() as cursor:
            cursor.execute(
                f"WITH {given} SELECT place, ({question.format(here=here)}) FROM wanted", parameters
            )
            for place, answer in cursor.fetchall():
                answers[place] = answer
    return answers


def of_latest(queues_: Sequence[str], column: str, *, each: int) -> Counter[Any]:
    """Returns how often each value is among the latest `each` dead letters of every queue; None is no
    value."""
    _check(column)
    found: Counter[Any] = Counter()
    one = (
        f"SELECT v, count(*) FROM (SELECT {column} AS v FROM {TABLE} WHERE queue = %s AND {IS_DEAD} "
        f"ORDER BY id DESC LIMIT %s) AS latest WHERE v IS NOT NULL GROUP BY v"
    )
    for begin in range(0, len(queues_), AT_ONCE):
        some = queues_[begin : begin + AT_ONCE]
        with connection.cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join([one] * len(some)), [value for queue in some for value in (queue, each)]
            )
            for value, count in cursor.fetchall():
                found[value] += count
    return found


def _without(queues_: Sequence[str], column: str, up_to: int) -> list[ValueCount]:
    places, given = queues_table("places", queues_)
    sql = f"WITH {places} SELECT q, NULL, {_scan('places.q', f'{column} IS NULL', column)} FROM places"
    with connection.cursor() as cursor:
        cursor.execute(sql, [*given, up_to])
        rows = cursor.fetchall()
    return _with_ends(rows, column, up_to)


def _scan(queue: str, which: str, column: str) -> str:
    """Returns how many dead letters there are, and the lowest and highest number of those that were counted,
    as one text: one look into the index instead of three. Value: bound."""
    return (
        f"(SELECT count(*) || ' ' || min(id) || ' ' || max(id) FROM (SELECT id FROM {TABLE} WHERE queue = "
        f"{queue} "
        f"AND {IS_DEAD} AND {which} ORDER BY {column}, id LIMIT %s) AS few)"
    )


def _with_ends(rows: Iterable[tuple[Any, ...]], column: str, up_to: int) -> list[ValueCount]:
    """Asks for the highest number of those that were not counted to the end."""
    found = [ValueCount(queue, value, *map(int, looked.split())) for queue, value, looked in rows if looked]
    large = [place for place, each in enumerate(found) if each.count >= up_to]
    wanted = [(found[place].queue, found[place].value) for place in large]
    last = _of_each(wanted, column, f"SELECT id {{here}} ORDER BY {column} DESC, id DESC LIMIT 1")
    for place, number in zip(large, last, strict=True):
        found[place] = replace(found[place], last=max(found[place].last, number or 0))
    return found


def _adapted(column: str, value: Any) -> Any:
    field: Any = DeadLetter._meta.get_field(column)
    return field.get_db_prep_value(value, connection)


def _check(column: str) -> None:
    if column not in COLUMNS:
        raise ValueError(f"no index for {column}")


def _steps(column: str, where: str, parameters: list[str], most: int) -> list[Any]:
    # Not min(): PostgreSQL has none for ids of activations.
    lowest = f"SELECT {column} FROM {TABLE} WHERE {where}"
    end = f"ORDER BY {column} LIMIT 1"
    sql = (
        f"WITH RECURSIVE step(v) AS (SELECT ({lowest} {end}) UNION ALL "
        f"SELECT ({lowest} AND {column} > step.v {end}) FROM step WHERE step.v IS NOT NULL) "
        "SELECT v FROM step WHERE v IS NOT NULL LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*parameters, *parameters, most])
        return [value for (value,) in cursor.fetchall()]


def letters_numbered(node_id: str, queue: str, numbers: Iterable[int]) -> QuerySet[DeadLetter]:
    """Those of the broker's numbers that the index has of this queue, in any state.

    They lie side by side mostly. Their ends are asked for too: for a list alone PostgreSQL reads all dead
    letters of the queue while nobody has analysed the table, as an index is that was just rebuilt."""
    wanted = list(numbers)
    if not wanted:
        return DeadLetter.objects.none()
    between = {"orig_message_id__range": (min(wanted), max(wanted))}
    return DeadLetter.objects.filter(node_id=node_id, queue=queue, orig_message_id__among=wanted, **between)
