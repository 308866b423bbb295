"""Reasons that the services keep in rows, in the reader's language. One that is not known here is shown as it
is."""

import re
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import ActivationState, Trigger
from agents.services.endings import REASONS
from agents.services.planning import NOT_PLANNED
from agents.services.pools import NOT_ALLOWED_ANY_MORE

# What is stored, and how it is said. A group named `state` is the value of an activation's state, one named
# `reason` is itself a reason.
_TEXTS: tuple[tuple[str, Any], ...] = (
    (r"epoch (?P<n>\d+)", _("epoch %(n)s")),
    (r"The pool “(?P<pool>[^”]*)” has no server\.", _("The pool “%(pool)s” has no server.")),
    (r"No server of the pool “(?P<pool>[^”]*)” is alive\.", _("No server of the pool “%(pool)s” is alive.")),
    (
        r"No live server of the pool “(?P<pool>[^”]*)” offers the agent “(?P<agent>[^”]*)”\.",
        _("No live server of the pool “%(pool)s” offers the agent “%(agent)s”."),
    ),
    (
        r"The pool “(?P<pool>[^”]*)” does not allow the agent “(?P<agent>[^”]*)”\.",
        _("The pool “%(pool)s” does not allow the agent “%(agent)s”."),
    ),
    (re.escape(NOT_ALLOWED_ANY_MORE), _("its pool does not allow its agent any more")),
    (r"the server is silent", _("the server is silent")),
    (
        r"the server left the pool or no longer offers the agent",
        _("the server left the pool or no longer offers the agent"),
    ),
    (
        r"the server drains, left the pool, or no longer offers the agent",
        _("the server drains, left the pool, or no longer offers the agent"),
    ),
    (
        r"Every live server of the pool “(?P<pool>[^”]*)” that offers the agent “(?P<agent>[^”]*)” is "
        r"cordoned or "
        r"draining\.",
        _(
            "Every live server of the pool “%(pool)s” that offers the agent “%(agent)s” is cordoned or "
            "draining."
        ),
    ),
    (
        r"Every live server of the pool “(?P<pool>[^”]*)” is heard but does not take what it is sent\.",
        _("Every live server of the pool “%(pool)s” is heard but does not take what it is sent."),
    ),
    (re.escape(NOT_PLANNED), _("It cannot be planned; the log of the site says why.")),
    (r"The run before is still stopping\.", _("The run before is still stopping.")),
    *((trigger.value, trigger.label) for trigger in Trigger),
    *((re.escape(text), ending.label) for ending, text in REASONS.items()),
    (
        r"(?P<n>\d+) messages failed and were not handled well later",
        _("messages that failed and were not handled well later: %(n)s"),
    ),
    (r"the agent failed", _("the agent failed")),
    (r"a run failed", _("a run failed")),
    (r"late records", _("records that came after the end")),
    (
        r"breaker: failures of one type in a row \((?P<type>.*)\) on (?P<servers>[^()]*)",
        _("by the breaker: failures of one type in a row (%(type)s) on %(servers)s"),
    ),
    (
        r"breaker: failures in a row, last (?P<type>.*) on (?P<servers>\S+(?:, \S+)*)",
        _("by the breaker: failures in a row, last %(type)s, on %(servers)s"),
    ),
    (
        r"breaker: the message tried first failed \((?P<type>.*)\) on (?P<servers>[^()]*)",
        _("by the breaker: the message tried first failed (%(type)s) on %(servers)s"),
    ),
    (
        r"epoch (?P<n>\d+): (?P<same>\d+) × (?P<type>.*) in a row, (?P<any>\d+) failures in a row",
        _("epoch %(n)s: in a row %(same)s × %(type)s, of any type %(any)s"),
    ),
    (r"resumed, epoch (?P<n>\d+)", _("resumed, epoch %(n)s")),
    (r"(?P<key>[a-z0-9-]+): (?P<reason>breaker: .+)", _("%(key)s: %(reason)s")),
    (r"its time was over", _("its time was over")),
    (r"a later window was due at the same time", _("a later window was due at the same time")),
    (r"missed: nobody could start it then", _("missed: nobody could start it then")),
    (
        r"missed: (?P<count>\d+\+?) windows from (?P<first>.*) to (?P<last>.*), nobody could start them then",
        _("missed: %(count)s windows from %(first)s to %(last)s, nobody could start them then"),
    ),
    (r"started late, once for all missed windows", _("started late, once for all missed windows")),
    (
        r"The activation of the group before still runs, with member (?P<step>\d+) of (?P<count>\d+)\.",
        _("The activation of the group before still runs, with member %(step)s of %(count)s."),
    ),
    (r"Its member “(?P<key>[^”]*)” still runs\.", _("Its member “%(key)s” still runs.")),
    (r"(?P<key>\S+) did not finish well: (?P<state>[a-z]+)", _("%(key)s did not finish well: %(state)s")),
    (r"(?P<key>\S+) is not there any more", _("%(key)s is not there any more")),
    (r"(?P<key>\S+) could not be started: (?P<reason>.+)", _("%(key)s could not be started: %(reason)s")),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), text) for pattern, text in _TEXTS)


def in_words(reason: str) -> str:
    for pattern, text in _PATTERNS:
        if match := pattern.fullmatch(reason):
            return str(text) % _facts(match.groupdict())
    # A refusal is stored as it was said: in English.
    return gettext(reason) if reason else ""


def _facts(facts: dict[str, str]) -> dict[str, str]:
    if facts.get("state") in ActivationState:
        facts["state"] = str(ActivationState(facts["state"]).label)
    if "reason" in facts:
        facts["reason"] = in_words(facts["reason"])
    return facts
