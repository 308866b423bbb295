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
    "remove_json": gettext_lazy("remove a field of the JSON body"),
}


def edit_reason(code: str) -> str:
    """Returns the text of a code of EditRefused that a rule may give for a dead letter; empty for another
    one."""
    words = {
        "no_json": _("the body is no JSON"),
        "pointer_missing": _("the body has nothing at the place that the rule names"),
        "unchanged": _("the rule changes nothing in it"),
        "locked": _("the rule touches what may not be changed in it"),
        "truncated": _("only the head of its body is kept here: it is too large to be edited"),
        "too_large": _("the edited body is too large"),
        "no_message": _("its bytes are no message"),
        "body_fixed": _("its body is no text that could be edited"),
        "bad_text": _("the text has characters that are no good Unicode"),
        "unsendable": _("the edited message cannot be sent"),
        "copy_sent": _("its edited copy was given back, but the letter itself stayed: discard it"),
    }
    return words.get(code, "")


def reason(code: str) -> str:
    """Returns why dead letters are left out, could not be moved, or came into a job later
    (`ReplayItem.why`)."""
    words = {
        rules.GONE: _("not in the queue any more"),
        rules.HELD: _("in delivery to another consumer"),
        rules.OUTSTANDING: _("another job is moving them at this moment"),
        rules.MUTED: _("known, being worked on (muted)"),
        rules.OFTEN: _("given back more than %(n)s times without success")
        % {"n": number(settings.MA_GIVEN_BACK_OFTEN)},
        rules.COPY_SENT: _("the original of an edited letter: its copy was given back already"),
        rules.NO_ID: _("somebody sent them to the dead-letter queue: they never were in a subscription"),
        rules.OTHER_BROKER: _("they died at another broker"),
        rules.NO_SUBSCRIPTION: _("the subscription that should get them is not there"),
        "stuck": _("the broker left it in its queue at each try"),
        "refused": _("the broker refused the move"),
        "late": _("dead-lettered while the job was moving its neighbours"),
    }
    return words.get(code) or edit_reason(code) or code


def sentence(warning: Warning) -> str:
    """What to think about first."""
    return _SENTENCES[warning.code](warning)


def _same_version(warning: Warning) -> str:
    text = _("Same agent version as at the failure: %(n)s of %(of)s will likely fail again.")
    return text % {"n": number(warning.n), "of": number(warning.of)}


def _ordered(warning: Warning) -> str:
    if not warning.n:
        return _(
            "The subscription keeps an order: these come after what was sent later and is handled already."
        )
    text = ngettext(
        "The subscription keeps an order: these come after %(n)s newer message.",
        "The subscription keeps an order: these come after %(n)s newer messages.",
        warning.n,
    )
    return text % {"n": number(warning.n)}


def _hold(warning: Warning) -> str:
    held = ngettext(
        "The subscription is held for at most %(n)s minute, while these go ahead of what waits.",
        "The subscription is held for at most %(n)s minutes, while these go ahead of what waits.",
        warning.n,
    )
    wait = ngettext(
        "Meanwhile its %(n)s message waits, and whoever publishes may go on: that waits too.",
        "Meanwhile its %(n)s messages wait, and whoever publishes may go on: that waits too.",
        warning.of,
    )
    if not warning.of:
        wait = _("Meanwhile whoever publishes may go on: that waits.")
    after = _("What is not handled when the time is over follows behind.")
    return f"{held % {'n': number(warning.n)}} {wait % {'n': number(warning.of)}} {after}"


def _stopping(warning: Warning) -> str:
    text = ngettext(
        "Stopping, %(n)s consumer open: it could still process what comes now. The job waits until it is "
        "closed, "
        "60 s at most, and then pauses.",
        "Stopping, %(n)s consumers open: they could still process what comes now. The job waits until they "
        "are closed, "
        "60 s at most, and then pauses.",
        warning.n,
    )
    return text % {"n": number(warning.n)}


def _ladder(warning: Warning) -> str:
    text = _(
        "%(n)s of %(of)s died of the same: a ladder tries a few of them first, and stops when they fail "
        "again."
    )
    return text % {"n": number(warning.n), "of": number(warning.of)}


def _other_destination(warning: Warning) -> str:
    text = ngettext(
        "The setting belongs to another destination: handling differs in %(n)s point.",
        "The setting belongs to another destination: handling differs in %(n)s points.",
        warning.n,
    )
    return text % {"n": number(warning.n)}


_SENTENCES: dict[str, Callable[[Warning], str]] = {
    rules.OTHER_DESTINATION: _other_destination,
    rules.DISABLED: lambda _w: _(
        "The setting is switched off: the letters wait in its subscription until it is switched on. Giving "
        "back first "
        "and then switching on is the normal order."
    ),
    rules.TRIPPED: lambda _w: _(
        "The setting was switched off by its breaker: the letters wait in its subscription until a person "
        "switches it "
        "on. Giving back first and then switching on is the normal order, once the cause is mended."
    ),
    rules.STOPPING: _stopping,
    rules.STOPPING_UNKNOWN: lambda _w: _(
        "Switched off, but the broker does not answer: whether consumers are still open is unknown. The job "
        "asks the "
        "broker before it moves anything, waits for open consumers 60 s at most, and then pauses."
    ),
    rules.NO_CONSUMER: lambda _w: _(
        "Nobody consumes from the subscription now: no server that is alive runs it."
    ),
    rules.SAME_VERSION: _same_version,
    rules.ORDERED: _ordered,
    rules.HOLD: _hold,
    rules.OTHER_HOLDS: lambda _w: _(
        "Another replay holds the subscription: until that ends nothing else of it is handled, and no other "
        "replay goes ahead."
    ),
    rules.LADDER: _ladder,
    rules.MUTED: lambda _w: _("This fault is known and being worked on: the letter is muted."),
    rules.OFTEN: lambda _w: (
        _("It was given back more than %(n)s times without success.")
        % {"n": number(settings.MA_GIVEN_BACK_OFTEN)}
    ),
    rules.COPY_SENT: lambda _w: _(
        "This is the original of an edited letter, and its copy was given back already. Put back and given "
        "back once "
        "more, the message would be handled twice."
    ),
}


# -- a redirect to another destination: how handling differs there -------------------------------------------


DIFFERENCES: Mapping[str, Promise] = {
    "destination": gettext_lazy("Destination"),
    "agent": gettext_lazy("Agent"),
    "versions": gettext_lazy("Versions that live servers offer"),
    "mode": gettext_lazy("Acknowledgement mode"),
    "ordered": gettext_lazy("Ordered"),
    "max_attempts": gettext_lazy("Attempts at most"),
    "delay_ms": gettext_lazy("Redelivery delay"),
    "multiplier": gettext_lazy("Multiplier of the delay"),
    "after_last": gettext_lazy("After the last attempt"),
    "exception_destination": gettext_lazy("Exception destination"),
    "duplicate_key": gettext_lazy("Repeats are known by"),
    "duplicate_window_seconds": gettext_lazy("Repeats are remembered for"),
    "handling_timeout_seconds": gettext_lazy("Handling timeout"),
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
        return _("The count begins again: they have every attempt of the other destination before them.")
    if found.code == MASKED:
        return _("The masks of the other setting count for what is shown there.")
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
    "max_attempts": lambda most: number(most) if most >= 0 else _("without end"),
    "delay_ms": lambda delay: _time(delay / 1000),
    "after_last": lambda policy: str(PoisonPolicy(policy).label),
    "duplicate_window_seconds": _time,
    "handling_timeout_seconds": _time,
    ATTEMPTED: _between,
}


def tick(warning: Warning) -> str:
    """Returns the text beside the box that acknowledges it."""
    words = {
        rules.OTHER_DESTINATION: _("Yes, redirect to the other destination"),
        rules.DISABLED: _("Yes, they shall wait there"),
        rules.TRIPPED: _("Yes, they shall wait there"),
        rules.STOPPING: _("Yes, wait for the consumers"),
        rules.STOPPING_UNKNOWN: _("Yes, wait for the consumers"),
        rules.NO_CONSUMER: _("Yes, they shall wait there"),
        rules.SAME_VERSION: _("Yes, try them again all the same"),
        rules.ORDERED: _("Yes, out of their order"),
        rules.HOLD: _("Yes, hold the subscription"),
        rules.OTHER_HOLDS: _("Yes, after that replay"),
        rules.LADDER: _("Yes, all at once without a ladder"),
        rules.COPY_SENT: _("Yes, put the original back all the same"),
    }
    return words.get(warning.code, _("Yes, give it back all the same"))


def acknowledged(code: str) -> str:
    """What somebody ticked before it began."""
    words = {
        rules.OTHER_DESTINATION: _("the setting belongs to another destination"),
        rules.DISABLED: _("the setting was switched off"),
        rules.TRIPPED: _("its breaker had switched it off"),
        rules.STOPPING: _("consumers of the disabled setting were still open"),
        rules.STOPPING_UNKNOWN: _("the broker did not say whether consumers were still open"),
        rules.NO_CONSUMER: _("nobody consumed from the subscription"),
        rules.SAME_VERSION: _("the same agent version as at the failure"),
        rules.ORDERED: _("the subscription keeps an order"),
        rules.HOLD: _("the subscription is held meanwhile"),
        rules.OTHER_HOLDS: _("another replay held the subscription"),
        rules.LADDER: _("a ladder was advised"),
    }
    return words.get(code) or reason(code)
