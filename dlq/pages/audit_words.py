"""What the audit holds as stable words, as people read it; what has no words is shown as it is stored."""

from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dlq.editing.words import OPERATION_WORDS
from dlq.models import ItemState, Outcome, Scope
from dlq.models.waiting import WaitingKind, WaitingPart
from dlq.preflight.words import acknowledged

# An attempt that was refused may have a code of its own: with the same words, after the first code of these
# words.
ACTIONS: dict[str, str | Promise] = {
    "give_back": _("give back"),
    "redirect": _("redirect"),
    "discard": _("discard"),
    "put_back": _("put back from the bin"),
    "edit": _("edit and give back"),
    "edit_letter": _("edit and give back"),
    "edit_letters": _("edit and give back"),
    "edit_rule": _("rule of an edit"),
    "export": _("export"),
    "export_letters": _("export"),
    "erase_begun": _("begin of an erasure"),
    "erase": _("erasure of personal data"),
    "export_protocols": _("export of protocols"),
    "import": _("import"),
    "import_letters": _("import"),
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
    "pool_agents": _("change which agents a pool allows"),
    "sign_in": _("sign in"),
    "sign_out": _("sign out"),
    "bin_expired": _("removed from the bin for good"),
    "adopt_broker": _("take the broker over"),
    "note": _("note"),
    "mute": _("known, being worked on"),
    "unmute": _("no longer known"),
    "fault_end": _("no longer known"),
    "take": _("taken"),
    "hand_over": _("handed over"),
    "taking_hand_over": _("handed over"),
    "end_taking": _("no longer taken"),
    "taking_end": _("no longer taken"),
    "foreign_named": _("follow a foreign queue"),
    "foreign_queues": _("follow a foreign queue"),
    "foreign_forgotten": _("do not follow a foreign queue any more"),
    "forget_foreign_queue": _("do not follow a foreign queue any more"),
    "adopted": _("letters sorted into queues of settings"),
    "whole_asked": _("fetch a body whole"),
    "whole_letter": _("fetch a body whole"),
    "whole_downloaded": _("download a whole body"),
    "whole_cancelled": _("stop fetching a body whole"),
    "cancel_whole_letter": _("stop fetching a body whole"),
    "save_filter": _("save a filter"),
    "saved_filter_save": _("save a filter"),
    "change_filter": _("change a saved filter"),
    "saved_filter_change": _("change a saved filter"),
    "delete_filter": _("delete a saved filter"),
    "saved_filter_delete": _("delete a saved filter"),
    "waiting_ask": _("do something with waiting messages"),
    "waiting_try_now": _("try waiting messages now"),
    "waiting_to_dlq": _("waiting messages to the dead letters"),
    "waiting_hold": _("hold waiting messages back"),
    "waiting_release": _("release waiting messages"),
    "waiting_give_up": _("asked: the message that blocks to the dead letters"),
    "waiting_stop": _("stop an action on waiting messages"),
    "waiting_done": _("action on waiting messages: done"),
    "waiting_stopped": _("action on waiting messages: stopped"),
    "waiting_failed": _("action on waiting messages: failed"),
}
_SCOPES: dict[str, str | Promise] = {**dict(WaitingPart.choices), **dict(Scope.choices)}
_COUNTS: dict[str, str | Promise] = {
    **dict(ItemState.choices),
    **{value: label for value, label in Outcome.choices if value},
    "agents listed": _("agents listed"),
    "settings withheld": _("settings no longer sent to their servers"),
    "letters": _("letters"),
    "messages": _("messages"),
    "protocols": _("protocols"),
    "dead letters": _("dead letters"),
    "edits": _("edits"),
    "whole bodies": _("whole bodies"),
    "notes": _("notes"),
    "known faults": _("known faults"),
    "takings": _("takings"),
    "reports": _("reports"),
    "waiting messages": _("waiting messages"),
    "recovered": _("recovered"),
    "headlines": _("headlines"),
    "refused records": _("refused records"),
    "conflicts": _("conflicts"),
    "saved filters": _("saved filters"),
    "saved views": _("saved views"),
    "filters of replays": _("filters of replays"),
}
# What stands in `detail`; a reason and what columns tell is not here.
_DETAILS: dict[str, str | Promise] = {
    "account": _("account of the system"),
    "acknowledged": _("acknowledged"),
    "added": _("added"),
    "address": _("address"),
    "allows": _("allows"),
    "before": _("site before"),
    "bodies": _("with bodies"),
    "digest": _("digest of the value"),
    "fault": _("number of the known fault"),
    "file": _("kind of file"),
    "from": _("out of"),
    "kind": _("kind"),
    "letters": _("letters"),
    "lines": _("sum of the lines"),
    "name": _("name"),
    "note": _("number of the note"),
    "part": _("part"),
    "problem": _("problem"),
    "query": _("filter"),
    "removed": _("removed"),
    "rule": _("rule"),
    "server": _("server"),
    "settings": _("letters by setting"),
    "shared": _("for all"),
    "site": _("site id"),
    "taking": _("number of the taking"),
    "to": pgettext_lazy("where something went", "to"),
    "trip": _("trip"),
    "until": _("until"),
    "why": _("why"),
}
_VALUES: dict[str, dict[str, str | Promise]] = {
    "allows": {"every": _("every agent of its servers"), "listed": _("only the listed agents")},
    "kind": dict(WaitingKind.choices),
    "part": dict(WaitingPart.choices),
}


def listed_actions() -> list[tuple[str, str | Promise]]:
    """To choose from: each name once, with its first code."""
    first: dict[str, tuple[str, str | Promise]] = {}
    for code, words in ACTIONS.items():
        first.setdefault(str(words), (code, words))
    return [first[name] for name in sorted(first)]


def codes_of(action: str) -> list[str]:
    """Of a first code every one of its name; of another only itself."""
    same = [code for code, words in ACTIONS.items() if str(words) == str(ACTIONS.get(action, ""))]
    return same if same[:1] == [action] else [action]


def first_code(action: str) -> str:
    """What finds this action and its attempts."""
    return next(
        (code for code, words in ACTIONS.items() if str(words) == str(ACTIONS.get(action, ""))), action
    )


def action_words(action: str) -> str | Promise:
    return ACTIONS.get(action, action)


def scope_words(scope: str) -> str | Promise:
    return _SCOPES.get(scope, scope)


def count_words(counts: Any) -> list[tuple[Any, Any]]:
    """What is none is left out."""
    pairs = counts.items() if isinstance(counts, dict) else []
    return [(_COUNTS.get(name, name), value) for name, value in pairs if value]


def detail_words(name: str, value: Any) -> tuple[str | Promise, str]:
    """A fact of an entry as people read it: no lists and no codes."""
    return _DETAILS.get(name, name), _value_words(name, value)


def _value_words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _now("yes") if value else _now("no")
    if isinstance(value, dict):
        return (
            _operation(value) if "op" in value else ", ".join(f"{key}: {each}" for key, each in value.items())
        )
    if isinstance(value, list):
        return ("; " if name == "rule" else ", ").join(_value_words(name, each) for each in value)
    if name == "acknowledged":
        return acknowledged(str(value))
    return str(_VALUES.get(name, {}).get(str(value), value))


def _operation(told: dict[str, Any]) -> str:
    """Of the rule of an edit, as `dlq.editing.rules.told` gives it."""
    place, value = told.get("place", ""), told.get("value", "")
    return f"{OPERATION_WORDS.get(told['op'], told['op'])}: {place}" + (f" = {value}" if value else "")
