"""Reads what edits changed in dead letters, as one person may see it: for the case file, the replay and the
audit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from console import hooks
from console.audit.models import AuditEntry, AuditResult
from dlq.dead_letters.masks import Masks, masks_for
from dlq.edit.rules.diff import Change, visible_changes
from dlq.models import Action, LetterEdit, ReplayItem
from dlq.replay.creation import EDIT_OF_ONE
from dlq.search.visibility import letters_for


@dataclass(frozen=True, slots=True)
class VisibleEdit:
    """`changes` as in `dlq.edit.rules.diff`; `deleted_at`: when retention deleted them."""

    changes: list[Change]
    deleted_at: datetime | None


def edits_of(items: Iterable[ReplayItem], masks: Masks) -> dict[int, VisibleEdit]:
    """Returns by item those of its edits; asks nothing where no job of them edits."""
    ids = [item.pk for item in items if item.job.action == Action.EDIT]
    rows = _edits().filter(item__in=ids) if ids else ()
    return {edit.item_id: visible_edit(edit, masks) for edit in rows}


def visible_edit(edit: LetterEdit, masks: Masks) -> VisibleEdit:
    return VisibleEdit(visible_changes(edit.diff, masks.names(edit.item.letter)), edit.body_deleted_at)


def _edits() -> QuerySet[LetterEdit]:
    names = ("diff", "body_deleted_at", "item__letter__queue", "item__letter__setting_key")
    return LetterEdit.objects.select_related("item__letter").only("item__letter", "item__job", *names)


@hooks.message_changes.implement
def edits_of_entries(entries: Sequence[AuditEntry], user: Any) -> dict[int, hooks.MessageChanges]:
    """Of entries about the edit of one dead letter. Who reads the audit need not be allowed to see that one;
    an edit by rule has a page that tells of each message."""
    edits = [entry for entry in entries if entry.action == EDIT_OF_ONE and entry.result == AuditResult.DONE]
    if not edits:
        return {}
    rows = _edits().filter(item__job__in=[entry.operation for entry in edits])
    found = {edit.item.job_id: edit for edit in rows}
    letters = letters_for(user).filter(pk__in=[edit.item.letter_id for edit in found.values()])
    seen = set(letters.values_list("pk", flat=True))
    masks = masks_for(user)
    return {
        entry.pk: _told(visible_edit(edit, masks) if edit.item.letter_id in seen else None)
        for entry in edits
        if entry.operation and (edit := found.get(entry.operation)) is not None
    }


def _told(edit: VisibleEdit | None) -> hooks.MessageChanges:
    if edit is None:
        return hooks.MessageChanges([], _("hidden: you have no permission to see this message"))
    return hooks.MessageChanges(edit.changes, _("deleted by retention") if edit.deleted_at else "")
