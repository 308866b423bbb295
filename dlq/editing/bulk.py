"""A rule for many letters: what it would do with some of them, and the job that does it. Rows only; a worker
works."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agents.models import LaunchSetting
from dlq.asking import Wish
from dlq.editing.applying import encoded_copy, message_of
from dlq.editing.diff import Change
from dlq.editing.refusal import EditRefused
from dlq.editing.rules import Rule, apply, rule_of, told
from dlq.masking import Masks
from dlq.masks import everybodys_masks, masks_for
from dlq.models import DeadLetter, LetterEdit, LetterState

# What a trial looks at, at most: letters, bytes of them, seconds. What it shows: letters with their diffs.
TRIED, BYTES, SECONDS = 200, 8 * 1024 * 1024, 2.0
SHOWN = 10
EXAMPLES = 5
AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Tried:
    """A letter that the rule fits, and what it would change in it."""

    letter: int
    changes: list[Change]


@dataclass(slots=True)
class LeftOut:
    """Letters that the rule does not fit, for one reason; `letters` are some of them."""

    code: str
    reason: str
    count: int = 0
    letters: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Trial:
    """Of the newest `seen` letters the rule fits `fits`; `more`: there are others that nobody looked at."""

    seen: int = 0
    fits: int = 0
    more: bool = False
    shown: list[Tried] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)

    def leave_out(self, letter: int, refused: EditRefused) -> None:
        each = self.left_out.setdefault(refused.code, LeftOut(refused.code, refused.reason))
        each.count += 1
        if len(each.letters) < EXAMPLES:
            each.letters.append(letter)


def rule_for(data: Any, setting: LaunchSetting, by: Any) -> Rule:
    """Of what a person wrote: it leaves alone what this person may not see. Raises EditRefused."""
    operations = data.get("operations") if isinstance(data, dict) else data
    return rule_of(operations, masks_for(by).names_of([setting.key]))


def try_rule(rule: Rule, rows: QuerySet[DeadLetter], by: Any, now: datetime) -> Trial:
    """The rule on the newest of these letters, as this person sees them. Changes nothing."""
    trial, masks = Trial(), masks_for(by)
    dead = rows.filter(state=LetterState.DEAD).order_by("-pk")
    sizes = list(dead.values_list("pk", "size")[: TRIED + 1])
    chosen = _bounded(sizes[:TRIED])
    end = time.monotonic() + SECONDS
    for letter in _letters(chosen):
        trial.seen += 1
        _try(trial, rule, letter, masks, now)
        if time.monotonic() > end:
            break
    trial.more = trial.seen < len(sizes)
    return trial


def _try(trial: Trial, rule: Rule, letter: DeadLetter, masks: Masks, now: datetime) -> None:
    names = masks.names(letter)
    try:
        before = message_of(letter)
        made = apply(rule, before, names, letter.jms_kind, locked=names)
        encoded_copy(letter, before, made.message, LetterEdit().pk, now)
    except EditRefused as refused:
        trial.leave_out(letter.pk, refused)
        return
    trial.fits += 1
    if len(trial.shown) < SHOWN:
        trial.shown.append(Tried(letter.pk, made.changes))


def _bounded(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """One at least, whatever its size."""
    chosen: list[int] = []
    held = 0
    for pk, size in sizes:
        held += size
        if chosen and held > BYTES:
            break
        chosen.append(pk)
    return chosen


def _letters(ids: Sequence[int]) -> Iterator[DeadLetter]:
    for start in range(0, len(ids), AT_ONCE):
        yield from (
            DeadLetter.objects.filter(pk__in=ids[start : start + AT_ONCE])
            .select_related("content")
            .order_by("-pk")
        )


def ruled(wish: Wish, rule: Rule) -> Wish:
    """To give edited copies of the letters back that the rule fits, and to put these letters into the bin;
    the others are left out, each with why."""
    words = told(rule, everybodys_masks().names_of([wish.setting.key]))
    options = replace(wish.options, edit_rule=rule.to_json())
    return replace(wish, options=options, detail={"rule": words})
