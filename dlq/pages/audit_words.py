"""What the audit holds as stable words, as people read it; what has no words is shown as it is stored."""

from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dlq.models import ItemState, Outcome, Scope
from dlq.models.waiting import WaitingPart

ACTIONS: dict[str, str | Promise] = {
    "give_back": _("give back"),
    "redirect": _("redirect"),
    "discard": _("discard"),
    "put_back": _("put back from the bin"),
    "edit": _("edit and give back"),
    "edit_rule": _("rule of an edit"),
    "export": _("export"),
    "import": _("import"),
    "import_begun": _("begin of an import"),
    "replay_pause": _("pause"),
    "replay_paused": _("pause"),
    "replay_resume": _("resume"),
    "replay_resumed": _("resume"),
    "replay_cancel": _("cancel"),
    "replay_cancelled": _("cancel"),
    "replay_cancelled_done": _("cancelled, and told apart what had left"),
    "replay_approve": _("approve"),
    "replay_approved": _("approve"),
    "replay_refuse": _("refuse"),
    "replay_refused": _("refuse"),
    "replay_done": _("replay: done"),
    "replay_failed": _("replay: failed"),
    "replay_stopped": _("replay: stopped by itself"),
    "replay_stopped_done": _("stopped, and told apart what had left"),
    "bin_expired": _("removed from the bin for good"),
    "note": _("note"),
    "mute": _("known, being worked on"),
    "unmute": _("no longer known"),
    "take": _("taken"),
    "hand_over": _("handed over"),
    "end_taking": _("no longer taken"),
    "foreign_named": _("follow a foreign queue"),
    "foreign_forgotten": _("do not follow a foreign queue any more"),
    "adopted": _("letters sorted into queues of settings"),
    "whole_asked": _("fetch a body whole"),
    "whole_downloaded": _("download a whole body"),
    "whole_cancelled": _("stop fetching a body whole"),
    "change_filter": _("change a saved filter"),
    "waiting_try_now": _("try waiting messages now"),
    "waiting_to_dlq": _("waiting messages to the dead letters"),
    "waiting_hold": _("hold waiting messages back"),
    "waiting_release": _("release waiting messages"),
    "waiting_stop": _("stop an action on waiting messages"),
    "waiting_done": _("action on waiting messages: done"),
    "waiting_stopped": _("action on waiting messages: stopped"),
    "waiting_failed": _("action on waiting messages: failed"),
}
_SCOPES: dict[str, str | Promise] = {**dict(WaitingPart.choices), **dict(Scope.choices)}
_COUNTS: dict[str, str | Promise] = {
    **dict(ItemState.choices),
    **{value: label for value, label in Outcome.choices if value},
    "letters": _("letters"),
    "messages": _("messages"),
}


def action_words(action: str) -> str | Promise:
    return ACTIONS.get(action, action)


def scope_words(scope: str) -> str | Promise:
    return _SCOPES.get(scope, scope)


def count_words(counts: Any) -> list[tuple[Any, Any]]:
    """What is none is left out."""
    pairs = counts.items() if isinstance(counts, dict) else []
    return [(_COUNTS.get(name, name), value) for name, value in pairs if value]
