"""The rows of the history as sentences."""

from django.utils.translation import gettext as _

from agents.models import ProvisionState, RunPhase, StateChange

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
    subject = {"setting": _("Setting"), "activation": _("Activation"), "run": _("Run"), "provision": _("Broker")}
    states = dict(RunPhase.choices) | dict(ProvisionState.choices)
    old, new = states.get(change.old, change.old), states.get(change.new, change.new)
    arrow = f"{old} → {new}" if change.old else str(new)
    return f"{subject.get(change.what, change.what)}: {arrow}"


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
