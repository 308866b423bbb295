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
    text = _("%(when)s, missed runs: %(missed)s")
    return text % {"when": when, "missed": Missed(missed).label}


def subject_word(what: str) -> str:
    words = {
        "setting": _("Setting"),
        "activation": _("Activation"),
        "ending": _("Activation"),
        "run": _("Instance"),
        "provision": _("Broker"),
        "server": _("Server"),
        "schedule": _("Schedule"),
        "group": _("Group"),
        "trial": _("Trial"),
        "policy": _("Redelivery policy"),
        "agent": _("Agent"),
        "version": _("Version"),
    }
    return words.get(what, what)


def state_word(what: str, state: str) -> str:
    """One word for a state of it; empty where there was none before."""
    words: dict[str, Any] = {}
    for states in (Duty, Ending, RunPhase, ActivationState):
        words |= dict(states.choices)
    words |= dict(ProvisionState.choices) if what == "provision" else {}
    words |= {"one message": _("one message"), "full speed": _("full speed")}
    words |= {"enabled": _("enabled"), "disabled": _("disabled"), "withdrawn": _("withdrawn")}
    return str(words.get(state, state))


def _words() -> dict[tuple[str, str], str]:
    return {
        ("setting", "enabled"): _("Enabled"),
        ("setting", "disabled"): _("Disabled"),
        ("run", "tried again"): _("Retry requested"),
        ("run", "given up"): _("Requested: move the blocking message to the DLQ"),
        ("activation", "pending"): _("Activation started"),
        ("activation", "succeeded"): _("Activation succeeded"),
        ("activation", "failed"): _("Activation failed"),
        ("activation", "interrupted"): _("Activation interrupted"),
        ("activation", "stopped"): _("Activation stopped"),
        ("ending", "drained"): _("Queue drained: instances are ending"),
        ("ending", "limit"): _("Limit reached: instances are ending"),
        ("ending", "waited"): _("Delayed messages did not arrive in time; instances are stopping"),
        ("ending", "finished"): _("All instances ended"),
        ("ending", "stopped"): _("Stopped manually: instances are ending"),
        ("server", "cordoned"): _("Server cordoned: no new instances start on it"),
        ("server", "draining"): _("Server draining: its instances end or move to other servers"),
        ("server", "active"): _("Server uncordoned"),
        ("run", "wanted"): _("Assigned to a server"),
        ("run", "withdrawn"): _("Unassigned from a server"),
        ("run", "interrupted"): _("Interrupted on a server"),
        ("run", "lost"): _("Instance lost with its server"),
        ("server_stop", "stopped"): _("Stopped on a server"),
        ("server_stop", "started"): _("Started again on a server"),
        ("provision", "ready"): _("Ready on the broker"),
        ("provision", "failed"): _("Provisioning failed"),
        ("provision", "pending"): _("Being created on the broker"),
        ("agent", "not_allowed"): _(
            "The pool no longer allows the agent: the setting is not sent to the pool's servers"
        ),
        ("agent", "allowed"): _("The pool allows the agent again"),
        ("policy", "applying"): _("Writing the redelivery policy to the broker"),
        ("policy", "applied"): _("Redelivery policy written to the broker"),
        ("policy", "apply_failed"): _("The redelivery policy could not be written to the broker"),
        ("policy", "adopted"): _("Redelivery policy adopted from the broker"),
    }
