"""What is told of a group beside its size: since when, an example, versions, who works on it, what replays did.

Bounded questions for the groups of one page: some for all of them, three for each.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from agents.pages.amounts import number
from contract.properties import DEAD_LETTER_PREFIX
from dlq import remarks
from dlq.finding.quick import quick
from dlq.groups.counting import COARSE, DEAD, Group
from dlq.groups.days import begin_of
from dlq.masking import Masks
from dlq.models import DeadLetter, KnownFault, LetterState, Outcome, ReplayItem, Taking
from failures.models import FailureProtocol

# Of the latest letters of a group: whose versions are told, and whose replays are looked at.
VERSIONS_OF, REPLAYS_OF = 20, 200
# Protocols of the examples; one message has some of them.
PROTOCOLS = 1000
FAILED_AGAIN = (Outcome.FAILED_AGAIN, Outcome.DEAD_AGAIN)


@dataclass(frozen=True, slots=True)
class Facts:
    """`example` is the number of the latest letter; `text` what its exception said, `body` the head of its body,
    masked. `given_back` counts letters that left the group by a replay, for people; of the latest `judged` of them
    `failed_again` failed or died again. `faults` and `takings` of this group or of the whole setting."""

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
    """Of the setting whose dead letters lie there."""
    return queue.removeprefix(DEAD_LETTER_PREFIX)


def facts_of(groups: Sequence[Group], masks: Masks) -> list[Facts]:
    """In the order of the groups."""
    with quick():
        letters = _letters(number for group in groups for number in (group.first, group.last))
        texts = _texts([letters[group.last] for group in groups if group.last in letters])
        faults, takings = _remarks(groups)
        return [_facts(group, letters, texts, faults, takings, masks) for group in groups]


def _letters(numbers: Iterable[int]) -> dict[int, DeadLetter]:
    light = DeadLetter.objects.filter(pk__in=set(numbers)).defer("encoded", "properties", "annotations")
    return {letter.pk: letter for letter in light}


def _texts(letters: Sequence[DeadLetter]) -> dict[tuple[str, str], str]:
    """What the last exception of each message said."""
    keys = {letter.message_key for letter in letters if letter.message_key}
    rows = FailureProtocol.objects.filter(message_key__in=keys, setting_key__in={each.setting_key for each in letters})
    wanted = rows.order_by("occurred_at").values_list("setting_key", "message_key", "exception_text")
    return {(setting, key): text.strip() for setting, key, text in wanted[:PROTOCOLS]}


def _facts(
    group: Group,
    letters: dict[int, DeadLetter],
    texts: dict[tuple[str, str], str],
    faults: Sequence[KnownFault],
    takings: Sequence[Taking],
    masks: Masks,
) -> Facts:
    first, last = letters.get(group.first), letters.get(group.last)
    given, judged, failed = _replays(group)
    return Facts(
        since=first.seen_at if first else None,
        latest=last.seen_at if last else None,
        example=last.pk if last else None,
        exception=last.exception_type if last else "",
        place=last.place if last else "",
        text=texts.get((last.setting_key, last.message_key), "") if last else "",
        body=masks.head_of_body(last) if last else "",
        versions=_versions(group),
        given_back=given,
        judged=judged,
        failed_again=failed,
        faults=[each for each in faults if _is_about(each, group)],
        takings=[each for each in takings if _is_about(each, group)],
    )


def rows_of(group: Group, state: str, queues: Sequence[str]) -> QuerySet[DeadLetter]:
    """Letters of the group in these queues, by an index."""
    places = Q(queue=queues[0]) if len(queues) == 1 else Q(queue__in=queues)
    rows = DeadLetter.objects.filter(places, state=state).order_by()
    if not group.kind.column:
        return rows.filter(seen_at__gte=begin_of(group.value), seen_at__lt=begin_of(group.value + timedelta(days=1)))
    return rows.filter(**_value(group))


def _value(group: Group) -> dict[str, Any]:
    if group.value or group.kind.name != "activation":
        return {group.kind.column: group.value}
    return {f"{group.kind.column}__isnull": True}


def _versions(group: Group) -> list[str]:
    rows = rows_of(group, DEAD, [group.parts[0].queue])
    rows = rows.order_by("-pk" if group.kind.column else "-seen_at")
    counts = Counter(filter(None, rows.values_list("agent_version", flat=True)[:VERSIONS_OF]))
    return [version for version, _count in counts.most_common()]


def _replays(group: Group) -> tuple[str, int, int]:
    """How many were given back, for people; how many of the latest of them are known, and of these failed again."""
    rows = rows_of(group, LetterState.GIVEN_BACK, [part.queue for part in group.parts])
    count = rows[: COARSE + 1].count()
    if not count:
        return "", 0, 0
    if len(group.parts) == 1:
        rows = rows.order_by("-pk" if group.kind.column else "-seen_at")
    latest = list(rows.values_list("pk", flat=True)[:REPLAYS_OF])
    ended = ReplayItem.objects.filter(letter__in=latest).order_by().values_list("outcome", flat=True)
    outcomes = Counter(filter(None, ended))
    failed = sum(outcomes[outcome] for outcome in FAILED_AGAIN)
    return f"{number(COARSE)}+" if count > COARSE else number(count), sum(outcomes.values()), failed


def _remarks(groups: Sequence[Group]) -> tuple[list[KnownFault], list[Taking]]:
    keys = {key_of(part.queue) for group in groups for part in group.parts}
    named = {"", *(group.value for group in groups if group.kind.name == "fingerprint")}
    about: dict[str, Any] = {"setting_key__in": keys, "fingerprint__in": named, "message_key": ""}
    faults = remarks.active_faults(timezone.now()).filter(**about)
    return list(faults), list(remarks.open_takings().filter(trip=None, **about))


def _is_about(remark: KnownFault | Taking, group: Group) -> bool:
    if remark.fingerprint and (group.kind.name != "fingerprint" or remark.fingerprint != group.value):
        return False
    return remark.setting_key in {key_of(part.queue) for part in group.parts}
