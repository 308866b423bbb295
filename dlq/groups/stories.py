"""Of many groups at once: which versions of the agent their letters died under, and what replays of them did."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection

from agents.pages.amounts import number
from dlq.groups.counting import DEAD, Group
from dlq.groups.days import begin_of
from dlq.loose import TABLE
from dlq.models import DeadLetter, LetterState, Outcome, ReplayItem

# Of the latest letters of a group: whose versions are told, and whose replays are looked at.
VERSIONS_OF, REPLAYS_OF = 20, 200
# So many letters that were given back are counted of a group.
COUNTED = 1_000
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
        where, values = _letters(group, [group.parts[0].queue], DEAD)
        latest = f"SELECT agent_version AS v FROM {TABLE} WHERE {where} ORDER BY {_latest(group)} LIMIT {VERSIONS_OF}"
        asked.append((f"SELECT {place}, v, count(*) FROM ({latest}) AS latest GROUP BY v", values))
    found: list[Counter[str]] = [Counter() for _group in groups]
    for place, version, count in _rows(asked):
        if version:
            found[place][version] = count
    return [[version for version, _count in each.most_common()] for each in found]


def replays_of(groups: Sequence[Group]) -> list[Replays]:
    """How many of each were given back, for people; how many of the latest of them are known, and of these failed
    again."""
    wheres = [_letters(group, [part.queue for part in group.parts], GIVEN_BACK) for group in groups]
    counts = dict(
        _rows(
            [
                (
                    f"SELECT {place}, (SELECT count(*) FROM "
                    f"(SELECT 1 FROM {TABLE} WHERE {where} LIMIT {COUNTED + 1}) AS few)",
                    values,
                )
                for place, (where, values) in enumerate(wheres)
            ]
        )
    )
    items = ReplayItem._meta.db_table
    asked = []
    for place, group in enumerate(groups):
        if not counts[place]:
            continue
        where, values = wheres[place]
        order = f" ORDER BY {_latest(group)}" if len(group.parts) == 1 else ""
        latest = f"SELECT id FROM {TABLE} WHERE {where}{order} LIMIT {REPLAYS_OF}"
        asked.append(
            (
                f"SELECT {place}, outcome, count(*) FROM {items} WHERE letter_id IN "
                f"(SELECT id FROM ({latest}) AS latest) GROUP BY outcome",
                values,
            )
        )
    outcomes: list[Counter[str]] = [Counter() for _group in groups]
    for place, outcome, count in _rows(asked):
        if outcome:
            outcomes[place][outcome] = count
    return [_told(counts[place], outcomes[place]) for place in range(len(groups))]


def _told(count: int, outcomes: Counter[str]) -> Replays:
    if not count:
        return Replays()
    words = f"{number(COUNTED)}+" if count > COUNTED else number(count)
    return Replays(words, sum(outcomes.values()), sum(outcomes[outcome] for outcome in FAILED_AGAIN))


def _letters(group: Group, queues: Sequence[str], state: str) -> tuple[str, list[Any]]:
    """Which letters of these queues are of the group, for an index; and the values."""
    where, values = f"queue IN ({', '.join(['%s'] * len(queues))}) AND state = %s", [*queues, state]
    if not group.kind.column:
        ends = begin_of(group.value), begin_of(group.value + timedelta(days=1))
        adapt = connection.ops.adapt_datetimefield_value
        return f"{where} AND seen_at >= %s AND seen_at < %s", [*values, *map(adapt, ends)]
    field: Any = DeadLetter._meta.get_field(group.kind.column)
    if field.null and not group.value:
        return f"{where} AND {group.kind.column} IS NULL", values
    return f"{where} AND {group.kind.column} = %s", [*values, field.get_db_prep_value(group.value, connection)]


def _latest(group: Group) -> str:
    return "id DESC" if group.kind.column else "seen_at DESC"


def _rows(asked: Sequence[tuple[str, list[Any]]]) -> Iterator[tuple[Any, ...]]:
    for begin in range(0, len(asked), AT_ONCE):
        some = asked[begin : begin + AT_ONCE]
        with connection.cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join(statement for statement, _values in some),
                [value for _statement, values in some for value in values],
            )
            yield from cursor.fetchall()
