"""Describes which dead letters of a scope are left out, and why: the same answer before a job and while it is
planned."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from dlq.models import Action, DeadLetter, EditState, ItemState, KnownFault, LetterState, ReplayItem
from dlq.models.dead_letter import BIN_QUEUE

# -- originals in the trash whose edited copy was replayed ---------------------------------------------------
# Restored and replayed, the message would be processed twice.
#
# A move gives a message a new id, so what brought it into the trash follows from its message key and the ids,
# which only grow: of the dead letters of this message that went there, it was the one with the greatest id
# below its own. Equal messages without a producer's id cannot be told apart: where one of them was edited, it
# may be any.


KEYS_AT_ONCE = 400
Case = tuple[str, str, str]


class TrashedMessage(NamedTuple):
    """Holds what is asked of a dead letter that lies in the trash."""

    pk: int
    node_id: str
    number: int
    setting_key: str
    message_key: str


def with_copies(letters: Iterable[TrashedMessage]) -> frozenset[int]:
    """Those of the dead letters, by their rows, whose copy is on its way or was handled already."""
    cases: dict[Case, list[TrashedMessage]] = defaultdict(list)
    for letter in letters:
        if letter.message_key:
            cases[letter.node_id, letter.setting_key, letter.message_key].append(letter)
    keys = sorted({key for _node, _setting, key in cases})
    found: set[int] = set()
    for start in range(0, len(keys), KEYS_AT_ONCE):
        found |= _of_messages(keys[start : start + KEYS_AT_ONCE], cases)
    return frozenset(found)


def _of_messages(keys: list[str], cases: dict[Case, list[TrashedMessage]]) -> set[int]:
    into_bin = ReplayItem.objects.filter(letter__message_key__in=keys, job__target_queue=BIN_QUEUE)
    edited = _numbers(
        into_bin.filter(job__action=Action.EDIT, edit__state__in=(EditState.SENT, EditState.DONE))
    )
    if not edited:
        return set()
    discarded = _numbers(into_bin.filter(job__action=Action.DISCARD, state=ItemState.GIVEN_BACK))
    found = set()
    for case in cases.keys() & edited.keys():
        others = [number for number, _weak in discarded[case]]
        copies = [number for number, _weak in edited[case]]
        weak = any(weak for _number, weak in edited[case])
        found |= {
            letter.pk for letter in cases[case] if weak or _last(copies, letter) > _last(others, letter)
        }
    return found


def _last(numbers: list[int], letter: TrashedMessage) -> int:
    return max((number for number in numbers if number < letter.number), default=-1)


def _numbers(items: QuerySet[ReplayItem]) -> dict[Case, list[tuple[int, bool]]]:
    """The ids of these dead letters, and whether their key stands for equal messages too."""
    found: dict[Case, list[tuple[int, bool]]] = defaultdict(list)
    fields = ("node_id", "setting_key", "message_key", "orig_message_id", "message_key_weak")
    rows: Any = items.order_by().values_list(*(f"letter__{name}" for name in fields))
    for node, setting, key, number, weak in rows:
        found[node, setting, key].append((number, weak))
    return found


# Stable words, as in `ReplayJob.skipped` and `ReplayItem.why`.
GONE = "gone"
HELD = "held"
OUTSTANDING = "outstanding"
MUTED = "muted"
OFTEN = "given_back_often"
COPY_SENT = "edited_copy_sent"
NO_ID = "no_id"
OTHER_BROKER = "other_broker"
NO_SUBSCRIPTION = "no_subscription"
REASONS = (GONE, OUTSTANDING, MUTED, OFTEN, COPY_SENT, NO_ID, OTHER_BROKER, NO_SUBSCRIPTION)

# What brings a dead letter before its agent again. A fault that is known would only fail again.
RETURNING = (Action.GIVE_BACK, Action.EDIT)


class Letter(NamedTuple):
    """Holds what is read of each dead letter of a scope; small, for there may be 10,000 of them in memory."""

    pk: int
    state: str
    number: int
    node_id: str
    setting_key: str
    fingerprint: str
    message_key: str
    chapter: int
    agent_version: str
    outstanding: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """`node_id`: the broker that is asked, empty while nobody knows. `muted_*`: faults that are known now.
    `returns`: how often messages were replayed without success, of those that may have been too often.
    `copied`: dead letters in the trash whose edited copy was replayed."""

    action: str
    one: bool = False
    node_id: str = ""
    often: int = 5
    muted_fingerprints: frozenset[str] = frozenset()
    muted_messages: frozenset[str] = frozenset()
    muted_all: bool = False
    returns: dict[tuple[str, str], int] = field(default_factory=dict)
    copied: frozenset[int] = frozenset()

    def why_not(self, letter: Letter) -> str:
        """Returns why this dead letter is left out; empty: it goes. What a person names alone goes although
        it is muted, was replayed often or has a copy: that is a warning then."""
        if letter.state != LetterState.DEAD:
            return GONE
        if letter.number < 0:
            return NO_ID
        if self.node_id and letter.node_id != self.node_id:
            return OTHER_BROKER
        if letter.outstanding:
            return OUTSTANDING
        return "" if self.one else self.doubt(letter)

    def doubt(self, letter: Letter) -> str:
        """Returns why somebody should think twice before this dead letter comes before its agent again."""
        if self.action == Action.PUT_BACK and letter.pk in self.copied:
            return COPY_SENT
        if self.action in RETURNING and self._muted(letter):
            return MUTED
        returned = self.returns.get((letter.setting_key, letter.message_key), 0)
        return OFTEN if self.action == Action.GIVE_BACK and returned > self.often else ""

    def _muted(self, letter: Letter) -> bool:
        by_message = bool(letter.message_key) and letter.message_key in self.muted_messages
        return (
            self.muted_all
            or by_message
            or (letter.fingerprint in self.muted_fingerprints and letter.fingerprint != "")
        )


def policy_for(
    setting_key: str, action: str, *, now: datetime, one: bool = False, node_id: str = ""
) -> Policy:
    """Returns what is muted for dead letters of this setting now; one query."""
    known = KnownFault.objects.filter(setting_key=setting_key, ended_at=None).filter(
        Q(until=None) | Q(until__gt=now)
    )
    faults = list(known.values_list("fingerprint", "message_key"))
    return Policy(
        action=action,
        one=one,
        node_id=node_id,
        often=settings.MA_GIVEN_BACK_OFTEN,
        muted_fingerprints=frozenset(fingerprint for fingerprint, _key in faults if fingerprint),
        muted_messages=frozenset(key for _fingerprint, key in faults if key),
        muted_all=any(not fingerprint and not key for fingerprint, key in faults),
    )


def read(rows: QuerySet[DeadLetter]) -> list[Letter]:
    """The dead letters of `rows`, which is ordered and sliced by who asks: all of them are in memory then."""
    # Asked dead letter by dead letter: the index of outstanding replays answers it.
    held = ReplayItem.objects.filter(letter=OuterRef("pk"), released_as="")
    fields = [name for name in Letter._fields if name not in ("number", "outstanding")]
    fields.insert(2, "orig_message_id")
    return [Letter(*row) for row in rows.values_list(*fields, Exists(held))]


def with_past(letters: Iterable[Letter], policy: Policy) -> Policy:
    """The policy for these dead letters: how often each message was replayed, and which have an edited
    copy."""
    if policy.action != Action.PUT_BACK:
        return replace(policy, returns=_returns(letters, policy))
    lying = (
        TrashedMessage(each.pk, each.node_id, each.number, each.setting_key, each.message_key)
        for each in letters
    )
    return replace(policy, copied=with_copies(lying))


def judged(letters: Sequence[Letter], policy: Policy) -> list[tuple[Letter, str]]:
    """Each with why it is left out, empty where it goes. A query for 400 messages that died often or lie in
    the trash, else none."""
    known = with_past(letters, policy)
    return [(letter, known.why_not(letter)) for letter in letters]


def _returns(letters: Iterable[Letter], policy: Policy) -> dict[tuple[str, str], int]:
    """Only of those that died more often than that: no dead letter was replayed more often than its message
    died."""
    if policy.action != Action.GIVE_BACK:
        return {}
    keys = sorted(
        {letter.message_key for letter in letters if letter.chapter > policy.often and letter.message_key}
    )
    found: dict[tuple[str, str], int] = {}
    for start in range(0, len(keys), KEYS_AT_ONCE):
        items = ReplayItem.objects.filter(
            letter__message_key__in=keys[start : start + KEYS_AT_ONCE],
            state=ItemState.GIVEN_BACK,
            job__action__in=RETURNING,
        )
        counted = (
            items.order_by().values_list("letter__setting_key", "letter__message_key").annotate(Count("pk"))
        )
        found |= {(setting_key, key): count for setting_key, key, count in counted}
    return found
