"""Asking for an edit: of one letter with changes, of many with a rule. Rows only; a worker does the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from broker.outgoing import outgoing_bytes
from broker.port import Message
from contract.properties import dead_letter_queue
from dlq.auditing import Person
from dlq.editing.applying import copy_for, edited, message_of
from dlq.editing.bodies import text_of_body
from dlq.editing.changes import Changes
from dlq.editing.diff import Change, changes_between
from dlq.editing.masked import hides_text
from dlq.editing.refusal import EditRefused
from dlq.editing.rules import Rule, apply
from dlq.masks import everybodys_masks, masks_for
from dlq.models import Action, DeadLetter, LetterEdit, ReplayJob, Scope
from dlq.replay.jobs import create_job
from dlq.replay.options import Options

# Letters that a preview of a rule tries it on.
PREVIEWED = 20


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
    return text is not None and hides_text(text, names)


def draft(letter: DeadLetter, changes: Changes, by: Any) -> Draft:
    """Raises EditRefused. Nothing is stored."""
    before, masked = message_of(letter), hidden_names(letter, by)
    hidden = (changes.text is not None or changes.content is not None) and body_is_hidden(letter, before, masked)
    after = edited(before, changes, masked, jms_kind=letter.jms_kind, body_hidden=hidden)
    told = changes_between(before, after, masked, letter.jms_kind)
    if not told:
        raise EditRefused("unchanged", _("Nothing is changed."))
    return Draft(before, after, told)


def edit_letter(
    letter: DeadLetter,
    changes: Changes,
    *,
    by: Person,
    reason: str = "",
    now: datetime,
    acknowledged: Sequence[str] = (),
) -> ReplayJob:
    """A job that gives the edited copy back and puts the letter into the bin: job, item and copy in one transaction,
    so a worker finds all of them or nothing. Raises EditRefused, ReplayRefused."""
    made = draft(letter, changes, by)
    setting = setting_of(letter)
    told = changes_between(made.before, made.after, everybodys_masks().names(letter), letter.jms_kind)
    with transaction.atomic():
        job = create_job(
            setting,
            action=Action.EDIT,
            scope=Scope.ONE,
            letters=[letter.pk],
            by=by,
            now=now,
            reason=reason,
            acknowledged=acknowledged,
        )
        edit = LetterEdit(item=job.items.get(), diff=told, planned_at=now)
        edit.encoded = encoded_copy(letter, made.before, made.after, edit, now)
        edit.save(force_insert=True)
    return job


def encoded_copy(letter: DeadLetter, before: Message, after: Message, edit: LetterEdit, now: datetime) -> bytes:
    """What the worker will send. Raises EditRefused where no queue would take it."""
    try:
        return outgoing_bytes(copy_for(letter, before, after, edit.pk, now))
    except ValueError as error:
        raise EditRefused("unsendable", _("The message cannot be sent: %(why)s.") % {"why": error}) from error


def setting_of(letter: DeadLetter) -> LaunchSetting:
    """By the queue that it lies in: that setting gets the copy. Raises EditRefused."""
    setting = letter.setting
    if setting is None or letter.queue != dead_letter_queue(setting.key):
        raise EditRefused("no_setting", _("It is no dead letter of a launch setting that could get it back."))
    return setting


# -- many -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tried:
    """A letter of a preview: what the rule would change in it, or why it is left out."""

    letter: int
    changes: list[Change]
    why: str = ""
    reason: str = ""


def preview(rule: Rule, letters: QuerySet[DeadLetter], by: Any, count: int = PREVIEWED) -> Iterator[Tried]:
    """The rule on the newest `count` of these, as this person sees it."""
    masks = masks_for(by)
    for letter in letters.order_by("-pk")[: min(count, PREVIEWED)].iterator(chunk_size=PREVIEWED):
        try:
            made = apply(rule, message_of(letter), masks.names(letter), letter.jms_kind)
            yield Tried(letter.pk, made.changes)
        except EditRefused as refused:
            yield Tried(letter.pk, [], refused.code, str(refused))


def edit_letters(
    setting: LaunchSetting,
    rule: Rule,
    *,
    scope: str,
    by: Person,
    now: datetime,
    letters: Sequence[int] | None = None,
    query: str = "",
    reason: str = "",
    options: Options | None = None,
    acknowledged: Sequence[str] = (),
) -> ReplayJob:
    """A job that edits every letter of the scope to which the rule applies; the others stay, each with why. `rule` was
    made with `hidden_in(setting, by)` as its locked names. Raises ReplayRefused."""
    return create_job(
        setting,
        action=Action.EDIT,
        scope=scope,
        by=by,
        now=now,
        letters=letters,
        query=query,
        reason=reason,
        options=replace(options or Options(), edit_rule=rule.to_json()),
        acknowledged=acknowledged,
    )


def hidden_in(setting: LaunchSetting, by: Any) -> frozenset[str]:
    return masks_for(by).names_of([setting.key])
