"""Describes what a pre-flight found, for people."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.models import PoisonPolicy
from agents.models.setting import AckMode
from console.ui.amounts import duration, number
from dlq.replay.preflight import rules
from dlq.replay.preflight.handling import ATTEMPTED, MASKED, Difference, Value
from dlq.replay.preflight.rules import Warning

# -- why a rule leaves dead letters out, and what it does, for people ----------------------------------------


OPERATION_WORDS: Mapping[str, Promise] = {
    "set_property": gettext_lazy("set a property"),
    "remove_property": gettext_lazy("remove a property"),
    "set_json": gettext_lazy("set a field of the JSON body"),
    "remove_json": gettext_lazy("remove a field from the JSON body"),
}


def edit_reason(code: str) -> str:
    """Returns the text of a code of EditRefused that a rule may give for a dead letter; empty for another
    one."""
    words = {
        "no_json": _("the body is not JSON"),
        "pointer_missing": _("the body has no field at the path given in the rule"),
        "unchanged": _("the rule changes nothing in the message"),
        "locked": _("the rule changes a protected part of the message"),
        "truncated": _("only the beginning of the body is stored: the message is too large to edit"),
        "too_large": _("the edited body is too large"),
        "no_message": _("the stored bytes are not a message"),
        "body_fixed": _("the body is not text, so it cannot be edited"),
        "bad_text": _("the text contains invalid Unicode"),
        "unsendable": _("the edited message cannot be sent"),
        "copy_sent": _("the edited copy was replayed, but the original remains: discard the original"),
    }
    return words.get(code, "")


def reason(code: str) -> str:
    """Returns why dead letters are left out, could not be moved, or came into a job later
    (`ReplayItem.why`)."""
    words = {
        rules.GONE: _("no longer in the queue"),
        rules.HELD: _("being delivered to another consumer"),
        rules.OUTSTANDING: _("being moved by another job"),
        rules.MUTED: _("the error is marked as known"),
        rules.OFTEN: _("replayed more than %(n)s times without success")
        % {"n": number(settings.MA_GIVEN_BACK_OFTEN)},
        rules.COPY_SENT: _("original of an edited message: the copy was already replayed"),
        rules.NO_ID: _("sent directly to the dead-letter queue, bypassing subscriptions"),
        rules.OTHER_BROKER: _("dead-lettered on another broker"),
        rules.NO_SUBSCRIPTION: _("the target subscription does not exist"),
        "stuck": _("the broker left the message in the queue on every attempt"),
        "refused": _("the broker refused the move"),
        "late": _("dead-lettered while the job was moving neighbouring messages"),
    }
    return words.get(code) or edit_reason(code) or code


def sentence(warning: Warning) -> str:
    """What to think about first."""
    return _SENTENCES[warning.code](warning)


def _same_version(warning: Warning) -> str:
    text = _(
        "The agent version has not changed since the failure. Messages likely to fail again: %(n)s of %(of)s."
    )
    return text % {"n": number(warning.n), "of": number(warning.of)}


def _ordered(warning: Warning) -> str:
    if not warning.n:
        return _(
            "The subscription is ordered, and newer messages have already been processed. The "
            "messages of this job will be processed out of order."
        )
    text = ngettext(
        "The subscription is ordered: these messages will be processed after %(n)s newer message.",
        "The subscription is ordered: these messages will be processed after %(n)s newer messages.",
        warning.n,
    )
    return text % {"n": number(warning.n)}


def _hold(warning: Warning) -> str:
    held = ngettext(
        "These messages are processed before the waiting ones. Meanwhile, the subscription is "
        "held for up to %(n)s minute.",
        "These messages are processed before the waiting ones. Meanwhile, the subscription is "
        "held for up to %(n)s minutes.",
        warning.n,
    )
    wait = ngettext(
        "Meanwhile %(n)s message waits in the subscription. Publishing continues; new messages wait too.",
        "Meanwhile %(n)s messages wait in the subscription. Publishing continues; new messages wait too.",
        warning.of,
    )
    if not warning.of:
        wait = _("Meanwhile, publishing continues; new messages wait.")
    after = _("Messages not processed within this time are placed after the waiting ones.")
    return f"{held % {'n': number(warning.n)}} {wait % {'n': number(warning.of)}} {after}"


def _stopping(warning: Warning) -> str:
    text = ngettext(
        "Stopping, %(n)s consumer open: it could still process these messages. If it does not "
        "close within 60 s, the job pauses.",
        "Stopping, %(n)s consumers open: they could still process these messages. If they do "
        "not close within 60 s, the job pauses.",
        warning.n,
    )
    return text % {"n": number(warning.n)}


def _ladder(warning: Warning) -> str:
    text = _(
        "%(n)s of %(of)s messages have the same error. A ladder tries a few first and stops "
        "if they fail again."
    )
    return text % {"n": number(warning.n), "of": number(warning.of)}


def _other_destination(warning: Warning) -> str:
    text = ngettext(
        "The setting belongs to another destination: %(n)s processing parameter differs.",
        "The setting belongs to another destination: %(n)s processing parameters differ.",
        warning.n,
    )
    return text % {"n": number(warning.n)}


_SENTENCES: dict[str, Callable[[Warning], str]] = {
    rules.OTHER_DESTINATION: _other_destination,
    rules.DISABLED: lambda _w: _(
        "The setting is disabled: the messages wait in its subscription until it is enabled. "
        "The usual order is to replay the messages first, then enable the setting."
    ),
    rules.TRIPPED: lambda _w: _(
        "The breaker disabled the setting: the messages wait in its subscription until "
        "someone enables it. The usual order is to fix the cause, replay the messages, then "
        "enable the setting."
    ),
    rules.STOPPING: _stopping,
    rules.STOPPING_UNKNOWN: lambda _w: _(
        "Disabled, but the broker is not responding: consumers may still be open. The job "
        "checks with the broker before it moves messages. If consumers do not close within 60 "
        "s, the job pauses."
    ),
    rules.NO_CONSUMER: lambda _w: _(
        "The subscription has no consumers now: no online server is running the setting."
    ),
    rules.SAME_VERSION: _same_version,
    rules.ORDERED: _ordered,
    rules.HOLD: _hold,
    rules.OTHER_HOLDS: lambda _w: _(
        "The subscription is on hold for another replay. Until that replay ends, no other "
        "messages are processed, and other replays cannot place messages before the waiting "
        "ones."
    ),
    rules.LADDER: _ladder,
    rules.MUTED: lambda _w: _("The error of this message is marked as known."),
    rules.OFTEN: lambda _w: (
        _("This message was replayed more than %(n)s times without success.")
        % {"n": number(settings.MA_GIVEN_BACK_OFTEN)}
    ),
    rules.COPY_SENT: lambda _w: _(
        "The edited copy of this message was already replayed. If you also restore and replay "
        "the original, the message is processed twice."
    ),
}


# -- a redirect to another destination: how handling differs there -------------------------------------------


DIFFERENCES: Mapping[str, Promise] = {
    "destination": gettext_lazy("Destination"),
    "agent": gettext_lazy("Agent"),
    "versions": gettext_lazy("Versions on online servers"),
    "mode": gettext_lazy("Acknowledgement mode"),
    "ordered": gettext_lazy("Ordered"),
    "max_attempts": gettext_lazy("Maximum attempts"),
    "delay_ms": gettext_lazy("Redelivery delay"),
    "multiplier": gettext_lazy("Delay multiplier"),
    "after_last": gettext_lazy("After the last attempt"),
    "exception_destination": gettext_lazy("Exception destination"),
    "duplicate_key": gettext_lazy("Identify repeats by"),
    "duplicate_window_seconds": gettext_lazy("Period for detecting repeats"),
    "handling_timeout_seconds": gettext_lazy("Processing timeout"),
    "masked_properties": gettext_lazy("Masked properties"),
    "attempted": gettext_lazy("Attempts so far"),
}


@dataclass(frozen=True, slots=True)
class DifferenceWords:
    """One row of the table. `follows` is the consequence of the difference, empty where it says itself."""

    label: str
    source: str
    target: str
    follows: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.label}: {self.source} → {self.target}. {self.follows}".strip()


def difference_words(found: Difference) -> DifferenceWords:
    source, target = (_value(found.code, value) for value in (found.source, found.target))
    return DifferenceWords(str(DIFFERENCES[found.code]), source, target, _follows(found))


def _follows(found: Difference) -> str:
    if found.code == ATTEMPTED:
        return _(
            "The attempt count restarts: the messages get as many attempts as the other destination allows."
        )
    if found.code == MASKED:
        return _("The masks of the other setting apply to these messages.")
    return ""


def _value(code: str, value: Value) -> str:
    if code in _VALUES:
        return _VALUES[code](value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or _("none")
    return (value or _("none")) if isinstance(value, str) else number(value, 2)


def _time(seconds: float) -> str:
    return duration(seconds) if seconds else _("none")


def _between(ends: Sequence[int]) -> str:
    least, most = ends
    if least == most:
        return number(most)
    return _("%(least)s to %(most)s") % {"least": number(least), "most": number(most)}


_VALUES: dict[str, Callable[[Any], str]] = {
    "mode": lambda mode: str(AckMode(mode).label),
    "max_attempts": lambda most: number(most) if most >= 0 else _("unlimited"),
    "delay_ms": lambda delay: _time(delay / 1000),
    "after_last": lambda policy: str(PoisonPolicy(policy).label),
    "duplicate_window_seconds": _time,
    "handling_timeout_seconds": _time,
    ATTEMPTED: _between,
}


def tick(warning: Warning) -> str:
    """Returns the text beside the box that acknowledges it."""
    words = {
        rules.OTHER_DESTINATION: _("Redirect to the other destination"),
        rules.DISABLED: _("Queue them anyway"),
        rules.TRIPPED: _("Queue them anyway"),
        rules.STOPPING: _("Wait for the consumers to close"),
        rules.STOPPING_UNKNOWN: _("Wait for the consumers to close"),
        rules.NO_CONSUMER: _("Queue them anyway"),
        rules.SAME_VERSION: _("Replay anyway"),
        rules.ORDERED: _("Continue out of order"),
        rules.HOLD: _("Hold the subscription"),
        rules.OTHER_HOLDS: _("Start after the other replay"),
        rules.LADDER: _("Continue without a ladder, all at once"),
        rules.COPY_SENT: _("Restore the original anyway"),
    }
    return words.get(warning.code, _("Replay anyway"))


def acknowledged(code: str) -> str:
    """What somebody ticked before it began."""
    words = {
        rules.OTHER_DESTINATION: _("the setting belongs to another destination"),
        rules.DISABLED: _("the setting was disabled"),
        rules.TRIPPED: _("the setting was disabled by the breaker"),
        rules.STOPPING: _("consumers of the disabled setting were still open"),
        rules.STOPPING_UNKNOWN: _("the broker did not report whether consumers were still open"),
        rules.NO_CONSUMER: _("the subscription had no consumers"),
        rules.SAME_VERSION: _("the agent version had not changed since the failure"),
        rules.ORDERED: _("the subscription is ordered"),
        rules.HOLD: _("the subscription is held during the replay"),
        rules.OTHER_HOLDS: _("the subscription was on hold for another replay"),
        rules.LADDER: _("a ladder was recommended"),
    }
    return words.get(code) or reason(code)
