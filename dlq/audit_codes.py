"""Codes of the audit that this app gives to entries, their words and pages."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console import hooks
from console.audit import text
from dlq.exports import EXPORT
from dlq.models import ItemState, Outcome, ReplayItem, Scope
from dlq.models.message_action import WaitingKind, WaitingPart
from dlq.models.replay import AT_LEAST
from dlq.replay.counts import OPEN_OUTCOMES
from dlq.replay.preflight.text import OPERATION_WORDS, acknowledged

# Jobs that one dead letter can have been in: it is replayed once, and may have been left out or cancelled
# before.
JOBS_OF_LETTER = 200

text.ACTIONS.declare(
    {
        "dead_letters.replay": _("replay"),
        "dead_letters.redirect": _("redirect"),
        "dead_letters.discard": _("discard"),
        "dead_letters.restore": _("restore from the trash"),
        "dead_letters.edit": _("edit by rule and replay"),
        "dead_letter.edit": _("edit and replay"),
        EXPORT: _("export"),
        "messages.import_begun": _("import started"),
        "foreign_queue.adopt": _("messages moved to the queues of their settings"),
        "message_action.done": _("action on waiting messages: done"),
        "message_action.stopped": _("action on waiting messages: stopped"),
        "message_action.failed": _("action on waiting messages: failed"),
        "replay.cancelled": _("cancelled; final state resolved"),
        "replay.done": _("replay: done"),
        "replay.failed": _("replay: failed"),
        "replay.hold": _("replay: subscription on hold"),
        "replay.hold_ended": _("replay: hold released"),
        "replay.stopped": _("replay: stopped automatically"),
        "replay.stopped_done": _("stopped; final state resolved"),
        "trash.purged": _("permanently deleted from the trash"),
    }
)
text.SCOPES.declare({**dict(WaitingPart.choices), **dict(Scope.choices)})
text.COUNTS.declare(
    {
        **dict(ItemState.choices),
        **{value: label for value, label in Outcome.choices if value},
        "left": _("placed after the waiting messages"),
        "letters": _("messages"),
        AT_LEAST: _("messages, at least"),
        OPEN_OUTCOMES: _("awaiting outcome"),
        "letters_at_least": _("messages, at least"),
        "messages": _("messages"),
        "dead letters": _("dead letters"),
        "saved views": _("saved failure filters"),
    }
)
text.DETAILS.declare(
    {
        "account": _("system account"),
        "acknowledged": _("acknowledged"),
        "address": _("address"),
        "bodies": _("with bodies"),
        "fault": _("known error id"),
        "from": _("from queue"),
        "kind": _("kind"),
        "letters": _("messages"),
        "lines": _("checksum of the lines"),
        "minutes": _("maximum hold time, minutes"),
        "note": _("note id"),
        "part": _("part"),
        "problem": _("problem"),
        "rule": _("rule"),
        "server": _("server"),
        "settings": _("messages by setting"),
        "taking": _("assignment id"),
        "to": pgettext_lazy("where something went", "to"),
        "trip": _("breaker trip"),
        "until": _("until"),
    }
)


def _operation(step: Any) -> str:
    """Describes the rule of an edit, as `dlq.edit.rules.bulk_rule.describe_rule` gives it."""
    if not isinstance(step, dict) or "op" not in step:
        return str(step)
    place, value = step.get("place", ""), step.get("value", "")
    return f"{OPERATION_WORDS.get(step['op'], step['op'])}: {place}" + (f" = {value}" if value else "")


text.VALUES.declare(
    {
        "acknowledged": acknowledged,
        "kind": dict(WaitingKind.choices),
        "part": dict(WaitingPart.choices),
        "rule": _operation,
    }
)
text.PAGES.declare(
    {
        "letter": text.TargetPage("letter", "letter"),
    }
)


@hooks.operations_of_letter.implement
def replay_jobs(letter: int) -> list[UUID]:
    items = ReplayItem.objects.filter(letter=letter).order_by("-pk")
    return list(items.values_list("job", flat=True)[:JOBS_OF_LETTER])
