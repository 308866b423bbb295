"""Asking for an edit of one dead letter. Rows only; a worker does the rest."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from broker.port import Message
from console.audit.log import Person
from contract.names import DEAD_LETTER_PREFIX, dead_letter_queue
from dlq.dead_letters.masks import Masks, everybodys_masks, masks_for
from dlq.edit.rules.body_text import text_of_body
from dlq.edit.rules.bulk_rule import Rule, apply, describe_rule, rule_of
from dlq.edit.rules.changes import Changes
from dlq.edit.rules.copy import edited, encoded_copy, message_of
from dlq.edit.rules.diff import Change, changes_between, hides_text, stored_changes
from dlq.edit.rules.values import EditRefused
from dlq.models import Action, DeadLetter, LetterEdit, LetterState, ReplayJob, Scope
from dlq.replay.creation import begin_replay
from dlq.replay.requests import ReplayRequest


@dataclass(frozen=True, slots=True)
class Draft:
    """An edit that would be made: `changes` are what this person may see of it."""

    before: Message
    after: Message
    changes: list[Change]


def hidden_names(letter: DeadLetter, by: Any) -> frozenset[str]:
    """Properties and fields of its JSON body that this person may not see, so neither may change."""
    return masks_for(by).names(letter)


def body_is_hidden(letter: DeadLetter, message: Message, names: frozenset[str]) -> bool:
    text = text_of_body(message, letter.jms_kind)
    if text is None:  # bytes, or what no form would bring back: nobody can tell what of it is masked
        return bool(names) and message.body.value is not None
    return hides_text(text, names)


def draft(letter: DeadLetter, changes: Changes, by: Any) -> Draft:
    """Raises EditRefused. Nothing is stored."""
    before, masked = message_of(letter), hidden_names(letter, by)
    hidden = (changes.text is not None or changes.content is not None) and body_is_hidden(
        letter, before, masked
    )
    after = edited(before, changes, masked, jms_kind=letter.jms_kind, body_hidden=hidden)
    told = changes_between(before, after, masked, letter.jms_kind)
    if not told:
        raise EditRefused("unchanged", _("No changes found. Change the body or a property first."))
    return Draft(before, after, told)


def edit_request(letter: DeadLetter, *, reason: str = "", acknowledged: Sequence[str] = ()) -> ReplayRequest:
    """Editing this dead letter, as a pre-flight asks for it. Raises EditRefused."""
    return ReplayRequest(
        setting_of(letter),
        Action.EDIT,
        Scope.ONE,
        letters=[letter.pk],
        reason=reason,
        acknowledged=acknowledged,
    )


def edit_letter(
    letter: DeadLetter,
    changes: Changes,
    *,
    by: Person,
    reason: str = "",
    now: datetime,
    acknowledged: Sequence[str] = (),
) -> ReplayJob:
    """A job that gives the edited copy back and puts the dead letter into the trash: job, item and copy in
    one transaction, so a worker finds all of them or nothing. Raises EditRefused, NotAllowed, Refused."""
    replay_request = edit_request(letter, reason=reason, acknowledged=acknowledged)
    made = draft(letter, changes, by)
    everybodys = everybodys_masks().names(letter)
    told = changes_between(made.before, made.after, everybodys, letter.jms_kind)
    edit = LetterEdit(diff=stored_changes(told, everybodys), planned_at=now)
    edit.encoded = encoded_copy(letter, made.before, made.after, edit.pk, now)

    def store(job: ReplayJob) -> None:
        edit.item = job.items.get()
        edit.save(force_insert=True)

    return begin_replay(replay_request, by=by, now=now, store=store)


def setting_of(letter: DeadLetter) -> LaunchSetting:
    """Finds the setting by the queue that it lies in: that setting gets the copy. Raises EditRefused."""
    key = letter.queue.removeprefix(DEAD_LETTER_PREFIX)
    setting = LaunchSetting.objects.select_related("destination", "pool").filter(key=key).first()
    if setting is None or letter.queue != dead_letter_queue(key):
        raise EditRefused(
            "no_setting",
            _("Cannot edit: the message is not in the dead-letter queue of an existing launch setting."),
        )
    return setting


# -- A rule for many dead letters: what it would do with some of them, and the job that does it --------------
# Rows only; a worker works.


# What a trial looks at, at most: dead letters, bytes of them, seconds. What it shows: dead letters with their
# diffs.
TRIED, BYTES, SECONDS = 200, 8 * 1024 * 1024, 2.0
SHOWN = 10
EXAMPLES = 5
AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Tried:
    """A dead letter that the rule fits, and what it would change in it."""

    letter: int
    changes: list[Change]


@dataclass(slots=True)
class RuleMismatch:
    """Dead letters that the rule does not fit, for one reason; `letters` are some of them."""

    code: str
    reason: str
    count: int = 0
    letters: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Trial:
    """The trial of a rule: it fits `fits` of the newest `seen` dead letters; `more`: there are others that
    were not tried."""

    seen: int = 0
    fits: int = 0
    more: bool = False
    shown: list[Tried] = field(default_factory=list)
    left_out: dict[str, RuleMismatch] = field(default_factory=dict)

    def leave_out(self, letter: int, refused: EditRefused) -> None:
        each = self.left_out.setdefault(refused.code, RuleMismatch(refused.code, refused.reason))
        each.count += 1
        if len(each.letters) < EXAMPLES:
            each.letters.append(letter)


def rule_for(data: Any, setting: LaunchSetting, by: Any) -> Rule:
    """Makes a rule of what a person wrote: it leaves alone what this person may not see. Raises
    EditRefused."""
    operations = data.get("operations") if isinstance(data, dict) else data
    return rule_of(operations, masks_for(by).names_of([setting.key]))


def try_rule(rule: Rule, rows: QuerySet[DeadLetter], by: Any, now: datetime) -> Trial:
    """The rule on the newest of these dead letters, as this person sees them. Changes nothing."""
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


def ruled(replay_request: ReplayRequest, rule: Rule) -> ReplayRequest:
    """Requests replay of edited copies of the dead letters that the rule fits, and moves these dead letters
    to the trash; the others are left out, each with why."""
    words = describe_rule(rule, everybodys_masks().names_of([replay_request.setting.key]))
    options = replace(replay_request.options, edit_rule=rule.to_json())
    return replace(replay_request, options=options, detail={"rule": words})
