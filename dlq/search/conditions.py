"""Describes what the fields of the filter mean for the rows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Exists, Q
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from console.database.texts import Wanted, parted
from console.filters import SPANS
from contract.names import DEAD_LETTER_PREFIX, dead_letter_queue
from dlq.dead_letters.masks import Masks, everybodys_masks
from dlq.dead_letters.queries import ranges
from dlq.models import LetterState
from dlq.models.annotation import fault_of_row
from dlq.search.word_index import masked_names_digest
from dlq.search.words import INDEX, NoWords, wanted_pairs, wanted_words

# -- conditions of a filter, used alike by pages, counts and jobs --------------------------------------------


@dataclass(frozen=True, slots=True)
class Condition:
    """`by_index`: with queues and states before it an index holds just the dead letters that match, so how
    many these are is told without reading others. `wanted`: the words that it stands for, found by their own
    index."""

    q: Q
    by_index: bool = False
    wanted: tuple[Wanted, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """`queues` None: every queue. `states` None: every state. All conditions hold together. `phrases`,
    `values` of properties: what has their words is among the conditions, what has them only a search of
    `newest` tells."""

    queues: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()
    phrases: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def compares(self) -> bool:
        return bool(self.phrases or self.values)

    @property
    def places(self) -> Q:
        """Queues and states."""
        where = Q()
        if self.queues is not None:
            where &= Q(queue__in=self.queues) if len(self.queues) != 1 else Q(queue=self.queues[0])
        if self.states is not None:
            where &= Q(state__in=self.states) if len(self.states) != 1 else Q(state=self.states[0])
        return where

    @property
    def q(self) -> Q:
        where = self.places
        for condition in self.conditions:
            where &= condition.q
        return where


# Kinds of exceptions that are looked through for a part of their names.
MOST_KINDS = 5000
EXACT = {
    "fingerprint": "fingerprint",
    "exception_type": "exception_type",
    "server": "server_name",
    "activation": "activation_uuid",
}
TIMES = ("since", "until")
RANGES = (TIMES, ("delivered_from", "delivered_to"))
LIMITS = {
    "since": "seen_at__gte",
    "until": "seen_at__lt",
    "delivered_from": "delivery_count__gte",
    "delivered_to": "delivery_count__lte",
}
DEAD = (LetterState.DEAD.value,)
# Problems by field.
Wrong = dict[str, list[str]]


def asked_for(cleaned: Mapping[str, Any], masks: Masks, *, queue: str = "", at: datetime) -> Query:
    """Returns what a person with these masks asked for at this instant, of one queue or of every one. Raises
    ValidationError for what only the rows or the rights of the person tell to be wrong."""
    wrong: Wrong = defaultdict(list)
    queues = _queues(cleaned, queue)
    states = None if cleaned.get("state") == "every" else (cleaned.get("state") or LetterState.DEAD.value,)
    conditions = [*_plain(cleaned, states, at)]
    if part := cleaned.get("exception"):
        conditions.append(
            _kinds_with(wrong, part, queues)
            if states == DEAD
            else Condition(Q(exception_type__icontains=part))
        )
    words = [
        *_pairs(wrong, masks, cleaned.get("prop") or (), queues),
        *_words(wrong, "text", cleaned.get("text") or ""),
        *_words(wrong, "value", cleaned.get("value") or ""),
    ]
    if words:
        conditions.append(Condition(Q(INDEX.condition(words)), wanted=tuple(words)))
    conditions += _unmasked(masks, cleaned)
    if wrong:
        raise ValidationError(wrong)
    values = tuple(filter(None, [cleaned.get("value")]))
    return Query(queues, states, tuple(conditions), parted(cleaned.get("text") or "")[0], values)


def _queues(cleaned: Mapping[str, Any], only: str) -> tuple[str, ...] | None:
    """Those that setting, queue and destination leave; None: every one."""
    sets: list[set[str]] = [{only}] if only else []
    if key := cleaned.get("setting"):
        sets.append({dead_letter_queue(key)})
    if queue := cleaned.get("queue"):
        sets.append({queue})
    if name := cleaned.get("destination"):
        keys = LaunchSetting.objects.filter(destination__name=name).order_by().values_list("key", flat=True)
        sets.append(set(map(dead_letter_queue, keys)))
    return tuple(sorted(set.intersection(*sets))) if sets else None


def _plain(cleaned: Mapping[str, Any], states: tuple[str, ...] | None, at: datetime) -> Iterator[Condition]:
    """Most indexes hold only what is dead; one of times holds every state."""
    dead = states == DEAD
    for name, column in EXACT.items():
        if value := cleaned.get(name):
            yield Condition(Q(**{column: value}), by_index=dead)
    if key := cleaned.get("message_key"):
        yield Condition(Q(message_key=key), by_index=True)
    if unknown := cleaned.get("without"):
        nothing = Q(activation_uuid=None) if unknown == "activation" else Q(**{EXACT[unknown]: ""})
        yield Condition(nothing, by_index=dead)
    for names in RANGES:
        limits = {LIMITS[name]: cleaned[name] for name in names if cleaned.get(name) is not None}
        if limits:
            yield Condition(Q(**limits), by_index=names == TIMES and (dead or states is None))
    if span := cleaned.get("span"):
        yield Condition(Q(seen_at__gte=at - SPANS[span]), by_index=dead or states is None)
    yield from _replays(cleaned.get("replays_from"), cleaned.get("replays_to"), dead)
    if muted := cleaned.get("muted"):
        is_muted = Exists(fault_of_row(at))
        yield Condition(Q(is_muted) if muted == "yes" else ~Q(is_muted))


def _replays(least: int | None, most: int | None, dead: bool) -> Iterator[Condition]:
    """As `DeadLetter.times_replayed`: the first chapter is the one before any replay, and what was replayed
    and is not dead again has one more. An index holds the later chapters of what is dead."""
    replayed = Q(state=LetterState.GIVEN_BACK)
    where = Q()
    if least:
        later = Q(chapter__gte=least + 1)
        where &= Q(later, chapter__gt=1) if dead else later | Q(replayed, chapter__gte=least)
    if most is not None:
        where &= Q(chapter__lte=most + 1) if dead else Q(chapter__lte=most) | Q(~replayed, chapter=most + 1)
    if where:
        yield Condition(where, by_index=dead and bool(least))


def _kinds_with(wrong: Wrong, part: str, queues: Iterable[str] | None) -> Condition:
    """The exceptions with `part` in their names, looked for among the distinct ones: their names are few."""
    there = ranges.distinct_in(ranges.queues() if queues is None else queues, "exception_type", MOST_KINDS)
    if len(there) > MOST_KINDS:
        wrong["exception"].append(_("Too many exception types: choose a setting as well."))
    wanted = part.casefold()
    return Condition(
        Q(exception_type__in=sorted(kind for kind in there if kind and wanted in kind.casefold())),
        by_index=True,
    )


def _words(wrong: Wrong, field: str, text: str) -> list[Wanted]:
    if not text:
        return []
    try:
        return wanted_words(text)
    except NoWords as error:
        texts = {
            "none": _("Enter at least one word of letters or digits."),
            "too_many": _("Too many words: enter fewer."),
            "too_short": _("Enter at least three characters before the *."),
        }
        wrong[field].append(texts[error.code])
        return []


def _pairs(
    wrong: Wrong, masks: Masks, pairs: Iterable[tuple[str, str]], queues: tuple[str, ...] | None
) -> list[Wanted]:
    keys = [queue.removeprefix(DEAD_LETTER_PREFIX) for queue in queues or ()]
    for name, _value in pairs:
        if why := masks.refusal(name, keys):
            wrong["prop"].append(why)
    return wanted_pairs(pairs)


def _unmasked(masks: Masks, cleaned: Mapping[str, Any]) -> Iterator[Condition]:
    """Yields conditions for those who may not see everything: only dead letters whose words reveal nothing of
    what they may not see."""
    if not masks.any:
        return
    if cleaned.get("text") or cleaned.get("value"):
        yield Condition(_searchable(everybodys_masks()))
    for name, _value in cleaned.get("prop") or ():
        # A dead letter may say that it is of another setting than its queue's.
        if masking := [key for key, names in masks.lists.items() if name in names]:
            yield Condition(~Q(setting_key__in=masking))


def _searchable(everybodys: Masks) -> Q:
    """Dead letters in whose words nothing is that is masked now. One whose setting masks more since its words
    were put into the index is not found by them until they are made anew."""
    known = list(everybodys.lists)
    queues = [dead_letter_queue(key) for key in known]
    by_names: dict[frozenset[str], list[str]] = {}
    for key, names in everybodys.lists.items():
        by_names.setdefault(names, []).append(key)
    unknown = ~Q(setting_key__in=known) & ~Q(queue__in=queues)
    found = Q(unknown, words_without=masked_names_digest(everybodys.names_of(())))
    for names, keys in by_names.items():
        own = Q(setting_key__in=keys) | ~Q(setting_key__in=known)
        place = Q(queue__in=[dead_letter_queue(key) for key in keys]) | ~Q(queue__in=queues)
        found |= Q(own, place, ~unknown, words_without=masked_names_digest(names))
    return found


# -- form fields: numbers with an error text -----------------------------------------------------------------


class WholeNumberFilter(django_filters.Filter):
    field_class, kind = forms.IntegerField, int

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=2**31 - 1, **options)
