"""Asking for an edit of one letter. Rows only; a worker does the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from broker.port import Message
from console.audit.log import Person
from contract.properties import DEAD_LETTER_PREFIX, dead_letter_queue
from dlq.asking import Wish, begin
from dlq.editing.applying import edited, encoded_copy, message_of
from dlq.editing.bodies import text_of_body
from dlq.editing.changes import Changes
from dlq.editing.diff import Change, changes_between
from dlq.editing.masked import hides_text
from dlq.editing.refusal import EditRefused
from dlq.masks import everybodys_masks, masks_for
from dlq.models import Action, DeadLetter, LetterEdit, ReplayJob, Scope


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
        raise EditRefused("unchanged", _("Nothing is changed."))
    return Draft(before, after, told)


def wish_of(letter: DeadLetter, *, reason: str = "", acknowledged: Sequence[str] = ()) -> Wish:
    """Editing this letter, as a pre-flight asks for it. Raises EditRefused."""
    return Wish(
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
    """A job that gives the edited copy back and puts the letter into the bin: job, item and copy in one
    transaction, so a worker finds all of them or nothing. Raises EditRefused, NotAllowed, Refused."""
    wish = wish_of(letter, reason=reason, acknowledged=acknowledged)
    made = draft(letter, changes, by)
    told = changes_between(made.before, made.after, everybodys_masks().names(letter), letter.jms_kind)
    edit = LetterEdit(diff=told, planned_at=now)
    edit.encoded = encoded_copy(letter, made.before, made.after, edit.pk, now)

    def store(job: ReplayJob) -> None:
        edit.item = job.items.get()
        edit.save(force_insert=True)

    return begin(wish, by=by, now=now, store=store)


def setting_of(letter: DeadLetter) -> LaunchSetting:
    """By the queue that it lies in: that setting gets the copy. Raises EditRefused."""
    key = letter.queue.removeprefix(DEAD_LETTER_PREFIX)
    setting = LaunchSetting.objects.select_related("destination", "pool").filter(key=key).first()
    if setting is None or letter.queue != dead_letter_queue(key):
        raise EditRefused("no_setting", _("It is no dead letter of a launch setting that could get it back."))
    return setting
