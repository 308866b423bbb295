"""Originals in the bin whose edited copy was given back: put back and given back, the message would be
handled twice.

A move gives a letter a new id, so what brought it into the bin is told by its message and the ids, which only
grow: of the letters of this message that went there, it was the one with the greatest id below its own. Equal
messages without a producer's id cannot be told apart: where one of them was edited, it may be any.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import QuerySet

from dlq.models import Action, EditState, ItemState, ReplayItem
from dlq.models.letter import BIN_QUEUE

KEYS_AT_ONCE = 400
Case = tuple[str, str, str]


class Binned(NamedTuple):
    """What is asked of a letter that lies in the bin."""

    pk: int
    node_id: str
    number: int
    setting_key: str
    message_key: str


def with_copies(letters: Iterable[Binned]) -> frozenset[int]:
    """Those of the letters, by their rows, whose copy is on its way or was handled already."""
    cases: dict[Case, list[Binned]] = defaultdict(list)
    for letter in letters:
        if letter.message_key:
            cases[letter.node_id, letter.setting_key, letter.message_key].append(letter)
    keys = sorted({key for _node, _setting, key in cases})
    found: set[int] = set()
    for start in range(0, len(keys), KEYS_AT_ONCE):
        found |= _of_messages(keys[start : start + KEYS_AT_ONCE], cases)
    return frozenset(found)


def _of_messages(keys: list[str], cases: dict[Case, list[Binned]]) -> set[int]:
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


def _last(numbers: list[int], letter: Binned) -> int:
    return max((number for number in numbers if number < letter.number), default=-1)


def _numbers(items: QuerySet[ReplayItem]) -> dict[Case, list[tuple[int, bool]]]:
    """The ids of these letters, and whether their key stands for equal messages too."""
    found: dict[Case, list[tuple[int, bool]]] = defaultdict(list)
    fields = ("node_id", "setting_key", "message_key", "orig_message_id", "message_key_weak")
    rows: Any = items.order_by().values_list(*(f"letter__{name}" for name in fields))
    for node, setting, key, number, weak in rows:
        found[node, setting, key].append((number, weak))
    return found
