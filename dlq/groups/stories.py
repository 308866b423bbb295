"""Of many groups at once: which versions of the agent their letters died under, and what replays of them
did."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from console.ui.amounts import number
from dlq.groups.counting import Group
from dlq.groups.days import begin_of, instant
from dlq.loose import IS_DEAD, TABLE
from dlq.models import DeadLetter, ItemState, LetterState, Outcome, ReplayItem

# Of the latest letters of a group: whose versions are told.
VERSIONS_OF = 20
# Of the latest letters that were given back from all queues together: those that belong to a group are told.
LATEST, FEWEST_OF_QUEUE = 5_000, 50
FAILED_AGAIN = (Outcome.FAILED_AGAIN, Outcome.DEAD_AGAIN)
# Queries of one statement: SQLite takes no more than 500.
AT_ONCE = 100
GIVEN_BACK = LetterState.GIVEN_BACK.value


@dataclass(frozen=True, slots=True)
class Replays:
    """As `Facts` has them."""

    given_back: str = ""
    judged: int = 0
    failed_again: int = 0


def versions_of(groups: Sequence[Group]) -> list[list[str]]:
    """Those of the latest letters of each group, in its largest part; the most frequent first."""
    asked = []
    for place, group in enumerate(groups):
        where, values = _dead(group, group.parts[0].queue)
        order = "id DESC" if group.kind.column else "seen_at DESC"
        latest = f"SELECT agent_version AS v FROM {TABLE} WHERE {where} ORDER BY {order} LIMIT {VERSIONS_OF}"
        asked.append((f"SELECT {place}, v, count(*) FROM ({latest}) AS latest GROUP BY v", values))
    found: list[Counter[str]] = [Counter() for _group in groups]
    for place, version, count in _rows(asked):
        if version:
            found[place][version] = count
    return [[version for version, _count in each.most_common()] for each in found]


def replays_of(groups: Sequence[Group]) -> list[Replays]:
    """How many of each were given back, among the latest that were; how many of these have an outcome, and of
    those failed again."""
    places = {(part.queue, group.value): place for place, group in enumerate(groups) for part in group.parts}
    queues = sorted({queue for queue, _value in places})
    if not queues:
        return []
    most = max(FEWEST_OF_QUEUE, LATEST // len(queues))
    kind, items = groups[0].kind, ReplayItem._meta.db_table
    column = kind.column or "seen_at"
    one = (
        f"SELECT latest.queue, latest.v, items.outcome FROM (SELECT id, queue, {column} AS v FROM {TABLE} "
        f"WHERE queue = %s AND state = '{GIVEN_BACK}' ORDER BY id DESC LIMIT {most}) AS latest "
        f"LEFT JOIN {items} AS items ON items.letter_id = latest.id AND items.state = "
        f"'{ItemState.GIVEN_BACK}'"
    )
    found: list[Counter[str]] = [Counter() for _group in groups]
    read: Counter[str] = Counter()
    for queue, value, outcome in _rows([(one, [queue]) for queue in queues]):
        read[queue] += 1
        place = places.get((queue, kind.value(value) if kind.column else _day(value)))
        if place is not None:
            found[place][outcome or ""] += 1
    return [
        _told(found[at], any(read[part.queue] >= most for part in each.parts))
        for at, each in enumerate(groups)
    ]


def _told(outcomes: Counter[str], more: bool) -> Replays:
    """`more`: older letters that were given back were not looked at, so that none is not said."""
    if not outcomes and not more:
        return Replays()
    known = outcomes.total() - outcomes[""] - outcomes[Outcome.UNKNOWN]
    words = number(outcomes.total()) + ("+" if more else "")
    return Replays(words, known, sum(outcomes[outcome] for outcome in FAILED_AGAIN))


def _day(stored: object) -> date | None:
    at = instant(stored)
    return timezone.localtime(at).date() if at else None


def _dead(group: Group, queue: str) -> tuple[str, list[Any]]:
    """Which letters of the queue are of the group, for an index; and the values."""
    where, values = f"queue = %s AND {IS_DEAD}", [queue]
    if not group.kind.column:
        ends = begin_of(group.value), begin_of(group.value + timedelta(days=1))
        adapt = connection.ops.adapt_datetimefield_value
        return f"{where} AND seen_at >= %s AND seen_at < %s", [*values, *map(adapt, ends)]
    field: Any = DeadLetter._meta.get_field(group.kind.column)
    if field.null and not group.value:
        return f"{where} AND {group.kind.column} IS NULL", values
    return f"{where} AND {group.kind.column} = %s", [
        *values,
        field.get_db_prep_value(group.value, connection),
    ]


def _rows(asked: Sequence[tuple[str, list[Any]]]) -> Iterator[tuple[Any, ...]]:
    for begin in range(0, len(asked), AT_ONCE):
        some = asked[begin : begin + AT_ONCE]
        with connection.cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join(statement for statement, _values in some),
                [value for _statement, values in some for value in values],
            )
            yield from cursor.fetchall()
