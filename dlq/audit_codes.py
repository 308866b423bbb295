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
from dlq.replay.preflight.text import OPERATION_WORDS, acknowledged

# Jobs that one dead letter can have been in: it is replayed once, and may have been left out or cancelled
# before.
JOBS_OF_LETTER = 200

text.ACTIONS.declare(
    {
        "dead_letters.replay": _("give back"),
        "dead_letters.redirect": _("redirect"),
        "dead_letters.discard": _("discard"),
        "dead_letters.restore": _("put back from the bin"),
        "dead_letters.edit": _("edit by a rule and give back"),
        "dead_letter.edit": _("edit and give back"),
        EXPORT: _("export"),
        "messages.import_begun": _("begin of an import"),
        "foreign_queue.adopt": _("letters sorted into queues of settings"),
        "message_action.done": _("action on waiting messages: done"),
        "message_action.stopped": _("action on waiting messages: stopped"),
        "message_action.failed": _("action on waiting messages: failed"),
        "replay.cancelled": _("cancelled, and told apart what had left"),
        "replay.done": _("replay: done"),
        "replay.failed": _("replay: failed"),
        "replay.hold": _("replay: subscription held"),
        "replay.hold_ended": _("replay: end of a hold"),
        "replay.stopped": _("replay: stopped by itself"),
        "replay.stopped_done": _("stopped, and told apart what had left"),
        "trash.purged": _("removed from the bin for good"),
    }
)
text.SCOPES.declare({**dict(WaitingPart.choices), **dict(Scope.choices)})
text.COUNTS.declare(
    {
        **dict(ItemState.choices),
        **{value: label for value, label in Outcome.choices if value},
        "left": _("followed behind what waits"),
        "letters": _("letters"),
        "messages": _("messages"),
        "dead letters": _("dead letters"),
        "saved views": _("saved views"),
    }
)
text.DETAILS.declare(
    {
        "account": _("account of the system"),
        "acknowledged": _("acknowledged"),
        "address": _("address"),
        "bodies": _("with bodies"),
        "fault": _("number of the known fault"),
        "from": _("out of"),
        "kind": _("kind"),
        "letters": _("letters"),
        "lines": _("sum of the lines"),
        "minutes": _("minutes at most"),
        "note": _("number of the note"),
        "part": _("part"),
        "problem": _("problem"),
        "rule": _("rule"),
        "server": _("server"),
        "settings": _("letters by setting"),
        "taking": _("number of the taking"),
        "to": pgettext_lazy("where something went", "to"),
        "trip": _("trip"),
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
