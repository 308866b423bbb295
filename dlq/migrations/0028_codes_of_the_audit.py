"""Entries of before get the codes and the kinds of targets of today: of every app, since this one imports all
others. Some of before had two codes for one thing, which of the two is not known on the way back. Killed
anywhere, the step has not happened.
"""

from typing import Any

from django.db import migrations
from django.db.models import Exists, F, OuterRef, Value
from django.db.models.functions import Replace

CODES = {
    "dead_letters.replay": ("give_back",),
    "dead_letters.redirect": ("redirect",),
    "dead_letters.discard": ("discard",),
    "dead_letters.restore": ("put_back",),
    "dead_letters.edit": ("edit_letters", "edit_rule"),
    "dead_letter.edit": ("edit_letter", "edit"),
    "dead_letters.export": ("export", "export_letters"),
    "protocols.export": ("export_protocols",),
    "replay.pause": ("replay_paused", "replay_pause"),
    "replay.resume": ("replay_resumed", "replay_resume"),
    "replay.cancel": ("replay_cancelled", "replay_cancel"),
    "replay.approve": ("replay_approved", "replay_approve"),
    "replay.refuse": ("replay_refused", "replay_refuse"),
    "replay.done": ("replay_done",),
    "replay.failed": ("replay_failed",),
    "replay.stopped": ("replay_stopped",),
    "replay.cancelled": ("replay_cancelled_done",),
    "replay.stopped_done": ("replay_stopped_done",),
    "messages.retry_now": ("waiting_try_now",),
    "messages.dead_letter": ("waiting_to_dlq",),
    "messages.hold": ("waiting_hold",),
    "messages.release": ("waiting_release",),
    "messages.give_up_blocked": ("waiting_give_up",),
    "messages.import": ("import", "import_letters"),
    "messages.import_begun": ("import_begun",),
    "message_action.cancel": ("waiting_stop",),
    "message_action.done": ("waiting_done",),
    "message_action.stopped": ("waiting_stopped",),
    "message_action.failed": ("waiting_failed",),
    "body.fetch": ("whole_asked", "whole_letter"),
    "body.cancel": ("whole_cancelled", "cancel_whole_letter"),
    "body.download": ("whole_downloaded",),
    "foreign_queue.follow": ("foreign_named", "foreign_queues"),
    "foreign_queue.unfollow": ("foreign_forgotten", "forget_foreign_queue"),
    "foreign_queue.adopt": ("adopted",),
    "note.add": ("note",),
    "dead_letters.mute": ("mute",),
    "dead_letters.unmute": ("unmute", "fault_end"),
    "assignment.take": ("take",),
    "assignment.hand_over": ("hand_over", "taking_hand_over"),
    "assignment.end": ("end_taking", "taking_end"),
    "saved_filter.save": ("save_filter", "saved_filter_save"),
    "saved_filter.change": ("change_filter", "saved_filter_change"),
    "saved_filter.delete": ("delete_filter", "saved_filter_delete"),
    "trash.purged": ("bin_expired",),
    "pool.change": ("pool_agents",),
}


def name_as_today(apps: Any, schema_editor: Any) -> None:
    entries = apps.get_model("console", "AuditEntry").objects
    # One code was given to an edit of one letter and to one by a rule, which has an entry of its own.
    rules = entries.filter(action="edit_rule", operation=OuterRef("operation"))
    entries.filter(Exists(rules), action="edit").update(action="dead_letters.edit")
    entries.filter(action="edit", operation=None, letter=None).update(action="dead_letters.edit")
    for code, before in CODES.items():
        entries.filter(action__in=before).update(action=code)
    _retarget(entries, "waiting:", "message_action:")


def name_as_before(apps: Any, schema_editor: Any) -> None:
    entries = apps.get_model("console", "AuditEntry").objects
    for code, (before, *_others) in CODES.items():
        entries.filter(action=code).update(action=before)
    _retarget(entries, "message_action:", "waiting:")


def _retarget(entries: Any, before: str, now: str) -> None:
    entries.filter(target__startswith=before).update(target=Replace(F("target"), Value(before), Value(now)))


class Migration(migrations.Migration):
    dependencies = [("console", "0005_saved_filters_of_protocols"), ("dlq", "0027_jobs_with_holders")]
    operations = [migrations.RunPython(name_as_today, name_as_before)]
