"""Describes which dead letters a job is about: which of a scope are left out and why, the same before a job
and while it is planned; the rows of the scope, frozen."""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.http import QueryDict
from django.utils.translation import gettext as _

from console.operations.refusals import Refused, WronglyAsked
from dlq.models import (
    Action,
    DeadLetter,
    EditState,
    ItemState,
    KnownFault,
    LetterState,
    ReplayItem,
    ReplayJob,
    Scope,
)
from dlq.models.dead_letter import BIN_QUEUE
from dlq.models.replay import route
from dlq.replay import counts
from dlq.replay.counts import write_items
from dlq.replay.preflight.rules import OUTSTANDING, RETURNING, Letter, Policy
from dlq.search.filter import LetterFilter
from dlq.search.visibility import found

KEYS_AT_ONCE = 400
Case = tuple[str, str, str]


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
    fields = [name for name in Letter._fields if name not in ("number", "outstanding", "attempts")]
    fields.insert(2, "orig_message_id")
    return [Letter(*row) for row in rows.values_list(*fields, Exists(held), "delivery_count")]


def with_past(letters: Iterable[Letter], policy: Policy) -> Policy:
    """The policy for these dead letters: how often each message was replayed, and which have an edited
    copy."""
    if policy.action != Action.PUT_BACK:
        return replace(policy, returns=_returns(letters, policy))
    return replace(policy, copied=with_copies(letters))


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


# -- originals in the trash whose edited copy was replayed ---------------------------------------------------
# Restored and replayed, the message would be processed twice.
#
# A move gives a message a new id, so what brought it into the trash follows from its message key and the ids,
# which only grow: of the dead letters of this message that went there, it was the one with the greatest id
# below its own. Equal messages without a producer's id cannot be told apart: where one of them was edited, it
# may be any.


def with_copies(letters: Iterable[Letter]) -> frozenset[int]:
    """Those of the dead letters, by their rows, whose copy is on its way or was handled already."""
    cases: dict[Case, list[Letter]] = defaultdict(list)
    for letter in letters:
        if letter.message_key:
            cases[letter.node_id, letter.setting_key, letter.message_key].append(letter)
    keys = sorted({key for _node, _setting, key in cases})
    found: set[int] = set()
    for start in range(0, len(keys), KEYS_AT_ONCE):
        found |= _of_messages(keys[start : start + KEYS_AT_ONCE], cases)
    return frozenset(found)


def _of_messages(keys: list[str], cases: dict[Case, list[Letter]]) -> set[int]:
    into_trash = ReplayItem.objects.filter(letter__message_key__in=keys, job__target_queue=BIN_QUEUE)
    edited = _numbers(
        into_trash.filter(job__action=Action.EDIT, edit__state__in=(EditState.SENT, EditState.DONE))
    )
    if not edited:
        return set()
    discarded = _numbers(into_trash.filter(job__action=Action.DISCARD, state=ItemState.GIVEN_BACK))
    found = set()
    for case in cases.keys() & edited.keys():
        others = [number for number, _weak in discarded[case]]
        copies = [number for number, _weak in edited[case]]
        weak = any(weak for _number, weak in edited[case])
        found |= {
            letter.pk for letter in cases[case] if weak or _last(copies, letter) > _last(others, letter)
        }
    return found


def _last(numbers: list[int], letter: Letter) -> int:
    return max((number for number in numbers if number < letter.number), default=-1)


def _numbers(items: QuerySet[ReplayItem]) -> dict[Case, list[tuple[int, bool]]]:
    """The ids of these dead letters, and whether their key stands for equal messages too."""
    found: dict[Case, list[tuple[int, bool]]] = defaultdict(list)
    fields = ("node_id", "setting_key", "message_key", "orig_message_id", "message_key_weak")
    rows: Any = items.order_by().values_list(*(f"letter__{name}" for name in fields))
    for node, setting, key, number, weak in rows:
        found[node, setting, key].append((number, weak))
    return found


# -- the rows of a scope, and the list that people chose -----------------------------------------------------


PIECE = 1000
SHOWN_IDS = 20
LISTED = (Scope.ONE, Scope.SELECTION)


def source_rows(action: str, key: str) -> QuerySet[DeadLetter]:
    """Every dead letter, in any state, of the queue that the action takes dead letters of this setting
    from."""
    from_here = route(action, key)
    letters = DeadLetter.objects.filter(queue=from_here.source)
    if action != Action.PUT_BACK:
        return letters
    # In the trash lie the dead letters of all settings, each with the queue that it came from; the key has an
    # index.
    return letters.filter(setting_key=key, orig_queue=from_here.target)


def matching(
    action: str, key: str, scope: str, query: str, by: object, at: datetime | None = None
) -> QuerySet[DeadLetter]:
    """The dead letters of a scope that is no list, by a filter that was asked `at` (None: now).

    Raises Refused: the filter is not understood."""
    letters = source_rows(action, key).filter(state=LetterState.DEAD)
    if scope == Scope.ALL:
        return letters
    if names := sorted(LetterFilter.page_own.intersection(QueryDict(query))):
        # On a page they choose the dead letters, or the part of a list that is shown; as a filter they would
        # find all.
        raise WronglyAsked(
            "bad_filter",
            _("Nothing was selected. These are page parameters, not filters: %(names)s.")
            % {"names": ", ".join(names)},
            _("Specify message numbers or remove these parameters."),
        )
    if by is None:
        raise Refused(
            "nobody", _("The filter cannot be applied: the user who requested the job no longer exists.")
        )
    filters, rows = found(query, by, rows=letters, at=at)
    if not filters.is_valid():  # what is wrong in it would be left out, and more would go than was meant
        raise WronglyAsked(
            "bad_filter", _("Nothing was selected: the filter is invalid. Correct the filter and try again.")
        )
    if filters.asked.compares:
        raise WronglyAsked(
            "phrase",
            _(
                "Nothing was selected: quoted phrases and searches across all properties cannot be "
                "used to select messages. Remove them from the filter."
            ),
            _("Select messages in the list, or search for them by words or by name=value."),
        )
    return rows


def frozen(job: ReplayJob) -> QuerySet[DeadLetter]:
    """The rows of a job whose scope is no list, as they were when somebody asked: "the last hour" is the one
    before."""
    rows = matching(job.action, job.setting_key, job.scope, job.query, job.by, job.created_at)
    return rows.filter(pk__lte=job.letters_up_to or 0)


def freeze_list(job: ReplayJob, letters: Sequence[int], now: datetime) -> None:
    """An item for each of these dead letters, planned or left out with why. Call it in the transaction that
    makes the job; raises Refused. Of two jobs that take one dead letter at once the database lets one have
    it."""
    for start in range(0, len(letters), PIECE):
        _freeze_piece(job, letters[start : start + PIECE], now)
    counts.recount(job.pk)


def first_numbers(letters: Sequence[int]) -> dict[int, int]:
    """The first id at this broker that is known of the message of each of these dead letters, where that is
    another one than its own. Of messages whose key is weak nobody knows which of them died before."""
    found: dict[int, int] = {}
    for start in range(0, len(letters), PIECE):
        here = DeadLetter.objects.filter(pk__in=letters[start : start + PIECE], chapter__gt=1)
        cases = here.filter(message_key_weak=False).exclude(message_key="")
        earlier = DeadLetter.objects.filter(
            node_id=OuterRef("node_id"),
            setting_key=OuterRef("setting_key"),
            message_key=OuterRef("message_key"),
            orig_message_id__gt=0,
        )
        first = earlier.order_by("orig_message_id").values("orig_message_id")[:1]
        found |= dict(cases.values_list("pk", Subquery(first)))
    return found


def check_of_setting(letters: Iterable[int], known: Set[int]) -> None:
    """A list names dead letters of one setting only: who names others has looked at something else. Raises
    Refused."""
    if foreign := sorted(set(letters) - known):
        raise Refused(
            "not_of_setting",
            _("The request was refused: some messages do not belong to this setting."),
            _("Select messages from one setting only."),
            letters=foreign[:SHOWN_IDS],
        )


def _freeze_piece(job: ReplayJob, ids: Sequence[int], now: datetime) -> None:
    here = read(source_rows(job.action, job.setting_key).filter(pk__in=ids))
    check_of_setting(ids, {letter.pk for letter in here})
    policy = policy_for(job.setting_key, job.action, now=now, one=job.scope == Scope.ONE)
    why = {letter.pk: reason for letter, reason in judged(here, policy)}
    _write(job, {pk: reason for pk, reason in why.items() if not reason}, now)
    taken = set(job.items.filter(letter__in=ids).values_list("letter", flat=True))
    _write(job, {pk: reason or OUTSTANDING for pk, reason in why.items() if pk not in taken}, now)


def _write(job: ReplayJob, why: dict[int, str], now: datetime) -> None:
    by_reason: dict[str, list[int]] = defaultdict(list)
    for pk, reason in sorted(why.items()):
        by_reason[reason].append(pk)
    for reason, letters in by_reason.items():
        state = ItemState.SKIPPED if reason else ItemState.PLANNED
        write_items(job, letters, now, state=state, why=reason)
