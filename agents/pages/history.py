"""The rows of the history as sentences."""

from typing import Any

from django.utils.translation import gettext as _

from agents.models import ActivationState, ProvisionState, RunPhase, StateChange

TONES = {
    "enabled": "ok",
    "disabled": "warn",
    ProvisionState.READY.value: "ok",
    ProvisionState.FAILED.value: "bad",
    RunPhase.RUNNING.value: "ok",
    RunPhase.LOST.value: "bad",
}


def tone(change: StateChange) -> str:
    return TONES.get(change.new, "")


def sentence(change: StateChange) -> str:
    """`what`, `old` and `new` are stable words of the services; one that is new here is shown as it is."""
    words = _words()
    known = words.get((change.what, change.new))
    if known:
        return known
    old, new = state_word(change.old), state_word(change.new)
    return f"{subject_word(change.what)}: {f'{old} → {new}' if change.old else new}"


def subject_word(what: str) -> str:
    words = {"setting": _("Setting"), "activation": _("Activation"), "run": _("Run"), "provision": _("Broker")}
    return words.get(what, what)


def state_word(state: str) -> str:
    """One word for a state, of whatever it is; empty where there was none before."""
    words: dict[str, Any] = dict(ActivationState.choices) | dict(RunPhase.choices) | dict(ProvisionState.choices)
    words |= {"enabled": _("switched on"), "disabled": _("switched off"), "withdrawn": _("withdrawn")}
    return str(words.get(state, state))


def _words() -> dict[tuple[str, str], str]:
    return {
        ("setting", "enabled"): _("Switched on"),
        ("setting", "disabled"): _("Switched off"),
        ("run", "wanted"): _("Wanted on a server"),
        ("run", "withdrawn"): _("Not wanted on a server any more"),
        ("run", "lost"): _("Run lost with its server"),
        ("provision", "ready"): _("Ready on the broker"),
        ("provision", "failed"): _("Could not be made on the broker"),
        ("provision", "pending"): _("To be made on the broker"),
    }
