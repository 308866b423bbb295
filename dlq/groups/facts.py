"""Describes what is told of a group beside its size: since when, an example, versions, who works on it, what
replays did.

Bounded questions, some for all the groups of one page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from console.database.statements import quick
from console.ui.amounts import number
from contract.names import DEAD_LETTER_PREFIX
from dlq.dead_letters.masks import Masks
from dlq.dead_letters.queries.counts import ends_of, instant
from dlq.dead_letters.queries.ranges import IS_DEAD, TABLE
from dlq.groups.queries import Group
from dlq.models import DeadLetter, ItemState, KnownFault, LetterState, Outcome, ReplayItem, Taking
from dlq.models.annotation import active_faults, open_takings
from dlq.models.content import with_heads
from failures.models import FailureProtocol

# -- versions and replays of many groups at once -------------------------------------------------------------


# Of the latest dead letters of a group: whose versions are told.
VERSIONS_OF = 20
# Of the latest dead letters that were replayed from all queues together: those that belong to a group are
# told.
LATEST, FEWEST_OF_QUEUE = 5_000, 50
FAILED_AGAIN = (Outcome.FAILED_AGAIN, Outcome.DEAD_AGAIN)
# Queries of one statement: SQLite takes no more than 500.
AT_ONCE = 100
GIVEN_BACK = LetterState.GIVEN_BACK.value


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """As `GroupFacts` has them."""

    given_back: str = ""
    judged: int = 0
    failed_again: int = 0


def versions_of(groups: Sequence[Group]) -> list[list[str]]:
    """Those of the latest dead letters of each group, in its largest part; the most frequent first."""
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


def replays_of(groups: Sequence[Group]) -> list[ReplayCounts]:
    """Returns how many of each were replayed, among the latest that were; how many of these have an outcome,
    and of those failed again."""
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
        _replay_counts(found[at], any(read[part.queue] >= most for part in each.parts))
        for at, each in enumerate(groups)
    ]


def _replay_counts(outcomes: Counter[str], more: bool) -> ReplayCounts:
    """`more`: older dead letters that were replayed were not looked at, so that none is not said."""
    if not outcomes and not more:
        return ReplayCounts()
    known = outcomes.total() - outcomes[""] - outcomes[Outcome.UNKNOWN]
    words = number(outcomes.total()) + ("+" if more else "")
    return ReplayCounts(words, known, sum(outcomes[outcome] for outcome in FAILED_AGAIN))


def _day(stored: object) -> date | None:
    at = instant(stored)
    return timezone.localtime(at).date() if at else None


def _dead(group: Group, queue: str) -> tuple[str, list[Any]]:
    """Returns which dead letters of the queue are of the group, for an index; and the values."""
    where, values = f"queue = %s AND {IS_DEAD}", [queue]
    if not group.kind.column:
        ends = ends_of(group.value)
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


# Protocols of the examples; one message has some of them.
PROTOCOLS = 1000


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """`example` is the number of the latest dead letter; `text` what its exception said, `body` the head of
    its body, masked. `given_back` counts dead letters of the group among the latest that left by a replay,
    for people; of `judged` of them `failed_again` failed or died again. `faults` and `takings` of this group
    or of the whole setting."""

    since: datetime | None = None
    latest: datetime | None = None
    example: int | None = None
    exception: str = ""
    place: str = ""
    text: str = ""
    body: str = ""
    versions: Sequence[str] = ()
    given_back: str = ""
    judged: int = 0
    failed_again: int = 0
    faults: Sequence[KnownFault] = field(default_factory=tuple)
    takings: Sequence[Taking] = field(default_factory=tuple)


def key_of(queue: str) -> str:
    """Returns the key of the setting whose dead letters lie there."""
    return queue.removeprefix(DEAD_LETTER_PREFIX)


def facts_of_groups(groups: Sequence[Group], masks: Masks) -> list[GroupFacts]:
    """Returns them in the order of the groups."""
    with quick():
        rows = DeadLetter.objects.filter(pk__in={group.first for group in groups}).order_by()
        firsts = dict(rows.values_list("pk", "seen_at"))
        letters = _letters(group.last for group in groups)
        texts = _texts([letters[group.last] for group in groups if group.last in letters])
        faults, takings = _annotations(groups)
        versions, replays = versions_of(groups), replays_of(groups)
        return [
            GroupFacts(
                since=firsts.get(group.first),
                **_of_last(letters.get(group.last), texts, masks),
                versions=versions[place],
                given_back=replays[place].given_back,
                judged=replays[place].judged,
                failed_again=replays[place].failed_again,
                faults=[each for each in faults if _is_about(each, group)],
                takings=[each for each in takings if _is_about(each, group)],
            )
            for place, group in enumerate(groups)
        ]


def _letters(numbers: Iterable[int]) -> dict[int, DeadLetter]:
    light = with_heads(DeadLetter.objects.filter(pk__in=set(numbers)))
    return {letter.pk: letter for letter in light}


def _texts(letters: Sequence[DeadLetter]) -> dict[tuple[str, str], str]:
    """Returns what the last exception of each message said."""
    keys = {letter.message_key for letter in letters if letter.message_key}
    rows = FailureProtocol.objects.filter(
        message_key__in=keys, setting_key__in={each.setting_key for each in letters}
    )
    wanted = rows.order_by("occurred_at").values_list("setting_key", "message_key", "exception_text")
    return {(setting, key): text.strip() for setting, key, text in wanted[:PROTOCOLS]}


def _of_last(last: DeadLetter | None, texts: dict[tuple[str, str], str], masks: Masks) -> dict[str, Any]:
    if last is None:
        return {}
    return {
        "latest": last.seen_at,
        "example": last.pk,
        "exception": last.exception_type,
        "place": last.place,
        "text": texts.get((last.setting_key, last.message_key), ""),
        "body": masks.head_of_body(last),
    }


def _annotations(groups: Sequence[Group]) -> tuple[list[KnownFault], list[Taking]]:
    keys = {key_of(part.queue) for group in groups for part in group.parts}
    named = {"", *(group.value for group in groups if group.kind.name == "fingerprint")}
    about: dict[str, Any] = {"setting_key__in": keys, "fingerprint__in": named, "message_key": ""}
    faults = active_faults(timezone.now()).filter(**about)
    return list(faults), list(open_takings().filter(trip=None, **about))


def _is_about(annotation: KnownFault | Taking, group: Group) -> bool:
    if annotation.fingerprint and (group.kind.name != "fingerprint" or annotation.fingerprint != group.value):
        return False
    return annotation.setting_key in {key_of(part.queue) for part in group.parts}
