"""Rows of dead letters that forget what their messages held: the row stays, as evidence that a message
died."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict

from console.models import SavedFilter
from dlq.index.broker import LetterQueues
from dlq.models import (
    DeadLetter,
    KnownFault,
    LetterContent,
    LetterEdit,
    LetterReport,
    Note,
    ReplayJob,
    Taking,
    WaitingItem,
    WholeFetch,
)
from dlq.models.content import OPEN_FETCHES, FetchState
from dlq.models.replay import UNFINISHED_JOBS
from dlq.search import rebuild
from dlq.search.word_index import property_texts
from dlq.trash.removal import remove_from_broker
from retention.erasure.protocols import Case, ErasureTarget, of_cases, rekey, substitute

# Letters of one step; each holds up to 1 MB.
PIECE, WALKED = 100, 200
# Why letters were left, in words.
Left = set[str]
ROW = {
    "exception_text": "",
    "message_id": "",
    "correlation_id": "",
    "reply_to": "",
    "problem": "erased",
    "body_kind": "",
    "truncated": False,
}
CONTENT = {"encoded": b"", "body_text": "", "properties": [], "annotations": []}


def letter_cases_by_property(wanted: ErasureTarget, seen: Callable[[int], object]) -> Iterator[set[Case]]:
    """The cases of letters that have it, piece by piece of all of them: an index of words has no masked
    ones."""
    last = 0
    while True:
        rows = (
            LetterContent.objects.filter(pk__gt=last).order_by("pk").select_related("letter").defer("encoded")
        )
        piece = list(rows[:WALKED])
        if not piece:
            return
        last = piece[-1].pk
        seen(len(piece))
        have = [each.letter for each in piece if each.letter.message_key and _has(each, wanted)]
        found = {(letter.setting_key, letter.message_key) for letter in have}
        yield {case for case in found if wanted.setting in ("", case[0])}


def _has(content: LetterContent, wanted: ErasureTarget) -> bool:
    texts: Any = content  # it has the same `properties`
    return (wanted.name, wanted.value) in property_texts(texts)


def erase_letters(
    queues: LetterQueues | None, cases: Collection[Case], now: datetime
) -> tuple[Mapping[str, int], Left]:
    """Returns how much by kind, and why others are left. `queues` None: only says how much. Raises
    BrokerError."""
    rows: QuerySet[DeadLetter] = of_cases(DeadLetter.objects.all(), cases)
    if queues is None:
        return {"dead letters": rows.count()}, set()
    left: Left = set()
    counts: dict[str, int] = defaultdict(int)
    last = 0
    while letters := list(rows.filter(pk__gt=last).order_by("pk")[:PIECE]):
        last = letters[-1].pk
        removed = remove_from_broker(queues, letters, now)
        left |= removed.left
        for kind, number in _forget(removed.numbers, now).items():
            counts[kind] += number
    return counts, left


@transaction.atomic
def _forget(numbers: Collection[int], now: datetime) -> Mapping[str, int]:
    """The key last: by it the next run finds the letter, if this one does not come to its end."""
    rows = DeadLetter.objects.filter(pk__in=numbers).select_related("content").order_by("pk")
    letters = list(rows.select_for_update(of=("self",)))
    rebuild.forget_words(letters)
    edits = LetterEdit.objects.filter(item__letter__in=numbers).update(encoded=b"", diff=[], problem="")
    fetches = WholeFetch.objects.filter(letter__in=numbers)
    fetches.filter(state__in=OPEN_FETCHES).update(state=FetchState.CANCELLED, ended_at=now)
    wholes = fetches.exclude(encoded=None).update(encoded=None, state=FetchState.DROPPED)
    LetterContent.objects.filter(pk__in=numbers).update(**CONTENT)
    by_key: dict[str, list[int]] = defaultdict(list)
    for letter in letters:
        by_key[letter.message_key].append(letter.pk)
    for key, its in by_key.items():
        DeadLetter.objects.filter(pk__in=its).update(message_key=substitute(key), **ROW)
    return {"dead letters": len(letters), "edits": edits, "whole bodies": wholes}


# -- what people wrote about a message, and what was written down of its way ---------------------------------


SHORT = 4


def erase_annotations(cases: Collection[Case], now: datetime, *, dry: bool) -> Mapping[str, int]:
    """Faults and takings end with it: of one case only one may be open."""
    if not dry:
        for model in (KnownFault, Taking):
            of_cases(model._default_manager.filter(ended_at=None), cases).update(ended_at=now)
    return {
        "notes": rekey(Note.objects.all(), cases, dry=dry, text=""),
        "known faults": rekey(KnownFault.objects.all(), cases, dry=dry, text="", ticket=""),
        "takings": rekey(Taking.objects.all(), cases, dry=dry, text=""),
        "reports": rekey(LetterReport.objects.all(), cases, dry=dry),
        "waiting messages": rekey(WaitingItem.objects.all(), cases, dry=dry),
    }


def settings_of_letters(message_key: str) -> set[str]:
    known: set[str] = set()
    for model in (Note, KnownFault, Taking, LetterReport, WaitingItem):
        rows = model._default_manager.filter(message_key=message_key).order_by()
        known.update(rows.values_list("setting_key", flat=True).distinct())
    return known


def erase_queries(wanted: ErasureTarget, *, dry: bool) -> Mapping[str, int]:
    """Filters that look for it: those with a name are deleted, replays that are over forget theirs."""
    names_it = Q(query__contains=quote(wanted.secret, safe="")) | Q(query__contains=wanted.secret)
    names_it |= Q(query__contains=quote(wanted.secret, safe="").replace("%20", "+"))
    saved = SavedFilter.objects.filter(names_it).values_list("pk", "query")
    named = [pk for pk, query in saved if asks_for(query, wanted)]
    jobs = ReplayJob.objects.filter(names_it).exclude(state__in=UNFINISHED_JOBS).values_list("pk", "query")
    over = [pk for pk, query in jobs if asks_for(query, wanted)]
    if not dry:
        SavedFilter.objects.filter(pk__in=named).delete()
        ReplayJob.objects.filter(pk__in=over).update(query="")
    return {"saved filters": len(named), "replay filters": len(over)}


def asks_for(query: str, wanted: ErasureTarget) -> bool:
    """Returns whether the filter, as of an address, holds what is to be nowhere; what is very short only as a
    whole value."""
    values = [value for _name, each in QueryDict(query).lists() for value in each]
    if len(wanted.secret) < SHORT:
        return any(wanted.secret in (value, value.partition("=")[2].strip()) for value in values)
    return any(wanted.secret in value for value in values)
