"""What is told of a group beside its size: since when, an example, versions, who works on it, what replays
did.

Bounded questions, some for all the groups of one page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from console.database import quick
from contract.properties import DEAD_LETTER_PREFIX
from dlq.groups.counting import Group
from dlq.groups.stories import replays_of, versions_of
from dlq.masking import Masks
from dlq.models import DeadLetter, KnownFault, Taking
from dlq.models.content import with_heads
from dlq.models.remark import active_faults, open_takings
from failures.models import FailureProtocol

# Protocols of the examples; one message has some of them.
PROTOCOLS = 1000


@dataclass(frozen=True, slots=True)
class Facts:
    """`example` is the number of the latest letter; `text` what its exception said, `body` the head of its
    body, masked. `given_back` counts letters of the group among the latest that left by a replay, for people;
    of `judged` of them `failed_again` failed or died again. `faults` and `takings` of this group or of the
    whole setting."""

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
        firsts = _instants({group.first for group in groups})
        letters = _letters(group.last for group in groups)
        texts = _texts([letters[group.last] for group in groups if group.last in letters])
        faults, takings = _remarks(groups)
        versions, replays = versions_of(groups), replays_of(groups)
        return [
            Facts(
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


def _instants(numbers: set[int]) -> dict[int, datetime]:
    return dict(DeadLetter.objects.filter(pk__in=numbers).order_by().values_list("pk", "seen_at"))


def _letters(numbers: Iterable[int]) -> dict[int, DeadLetter]:
    light = with_heads(DeadLetter.objects.filter(pk__in=set(numbers)))
    return {letter.pk: letter for letter in light}


def _texts(letters: Sequence[DeadLetter]) -> dict[tuple[str, str], str]:
    """What the last exception of each message said."""
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


def _remarks(groups: Sequence[Group]) -> tuple[list[KnownFault], list[Taking]]:
    keys = {key_of(part.queue) for group in groups for part in group.parts}
    named = {"", *(group.value for group in groups if group.kind.name == "fingerprint")}
    about: dict[str, Any] = {"setting_key__in": keys, "fingerprint__in": named, "message_key": ""}
    faults = active_faults(timezone.now()).filter(**about)
    return list(faults), list(open_takings().filter(trip=None, **about))


def _is_about(remark: KnownFault | Taking, group: Group) -> bool:
    if remark.fingerprint and (group.kind.name != "fingerprint" or remark.fingerprint != group.value):
        return False
    return remark.setting_key in {key_of(part.queue) for part in group.parts}
