"""The rows of the history as sentences."""

from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from agents.models import ActivationState, Duty, Ending, ProvisionState, RunPhase, StateChange
from agents.models.schedule import Missed
from agents.schedules.text import crontab_in_words, interval_in_words

TONES = {
    "enabled": "ok",
    "disabled": "warn",
    ProvisionState.READY.value: "ok",
    ProvisionState.FAILED.value: "bad",
    ActivationState.SUCCEEDED.value: "ok",
    ActivationState.INTERRUPTED.value: "bad",
    Ending.WAITED.value: "bad",
    Duty.CORDONED.value: "warn",
    Duty.DRAINING.value: "warn",
    RunPhase.RUNNING.value: "ok",
    RunPhase.LOST.value: "bad",
    "not_allowed": "bad",
    "allowed": "ok",
}


def tone(change: StateChange) -> str:
    return TONES.get(change.new, "")


def sentence(change: StateChange) -> str:
    """`what`, `old` and `new` are stable words of the services; one that is new here is shown as it is."""
    words = _words()
    known = words.get((change.what, change.new))
    if known:
        return known
    word = _timetable if change.what == "schedule" else partial(state_word, change.what)
    old, new = word(change.old), word(change.new)
    return f"{subject_word(change.what)}: {f'{old} → {new}' if change.old else new}"


def _timetable(stored: str) -> str:
    """Returns it as `schedules` notes it: `0 2 * * * Europe/Berlin, skip`, cut where it is long."""
    when, _comma, missed = stored.rpartition(", ")
    if missed not in Missed:
        return stored
    crontab, _space, time_zone = when.rpartition(" ")
    if time_zone == "s" and crontab.isdigit():
        when = interval_in_words(int(crontab))
    elif len(crontab.split()) == 5:
        when = crontab_in_words(crontab, time_zone)
    text = _("%(when)s, missed windows: %(missed)s")
    return text % {"when": when, "missed": Missed(missed).label}


def subject_word(what: str) -> str:
    words = {
        "setting": _("Setting"),
        "activation": _("Activation"),
        "ending": _("Activation"),
        "run": _("Run"),
        "provision": _("Broker"),
        "server": _("Server"),
        "schedule": _("Schedule"),
        "group": _("Group"),
        "trial": _("Trial"),
        "policy": _("Redelivery policy"),
        "agent": _("Agent"),
    }
    return words.get(what, what)


def state_word(what: str, state: str) -> str:
    """One word for a state of it; empty where there was none before."""
    words: dict[str, Any] = {}
    for states in (Duty, Ending, RunPhase, ActivationState):
        words |= dict(states.choices)
    words |= dict(ProvisionState.choices) if what == "provision" else {}
    words |= {"one message": _("one message"), "full speed": _("full speed")}
    words |= {"enabled": _("switched on"), "disabled": _("switched off"), "withdrawn": _("withdrawn")}
    return str(words.get(state, state))


def _words() -> dict[tuple[str, str], str]:
    return {
        ("setting", "enabled"): _("Switched on"),
        ("setting", "disabled"): _("Switched off"),
        ("run", "tried again"): _("Another attempt was asked for"),
        ("run", "given up"): _("Asked: the message that blocks it to the dead letters"),
        ("activation", "pending"): _("Activation begun"),
        ("activation", "succeeded"): _("Activation ended well"),
        ("activation", "failed"): _("Activation ended with an error"),
        ("activation", "interrupted"): _("Activation ended, interrupted"),
        ("activation", "stopped"): _("Activation ended, stopped"),
        ("ending", "drained"): _("Drained: the runs end"),
        ("ending", "limit"): _("Limit reached: the runs end"),
        ("ending", "waited"): _("Delayed messages did not come in time: the runs end"),
        ("ending", "finished"): _("Every run ended by itself"),
        ("ending", "stopped"): _("Stopped by a person: the runs end"),
        ("server", "cordoned"): _("Server cordoned: nothing new begins there"),
        ("server", "draining"): _("Server draining: its runs end or move"),
        ("server", "active"): _("Server back in service"),
        ("run", "wanted"): _("Wanted on a server"),
        ("run", "withdrawn"): _("Not wanted on a server any more"),
        ("run", "interrupted"): _("Given up on a server"),
        ("run", "lost"): _("Run lost with its server"),
        ("provision", "ready"): _("Ready on the broker"),
        ("provision", "failed"): _("Could not be made on the broker"),
        ("provision", "pending"): _("To be made on the broker"),
        ("agent", "not_allowed"): _(
            "Its pool does not allow its agent any more: it is not sent to its servers"
        ),
        ("agent", "allowed"): _("Its pool allows its agent again"),
        ("policy", "applying"): _("The redelivery policy is being written to the broker"),
        ("policy", "applied"): _("Redelivery policy written to the broker"),
        ("policy", "apply_failed"): _("The redelivery policy could not be written to the broker"),
        ("policy", "adopted"): _("Redelivery policy adopted from the broker"),
    }
