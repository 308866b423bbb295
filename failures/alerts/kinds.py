"""The kinds of alerts about failures: bounds and words. Type and place of an exception, never its text."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.alerts.deciding import Step, Thresholds
from agents.alerts.kinds import Kind, Text, register
from agents.models import Severity
from console.ui.amounts import number
from console.ui.page import link
from failures.alerts import observing
from failures.links import fingerprint_url


def register_kinds() -> None:
    for kind in (NEW, RETURNED, GROWING):
        register(kind)


def _what(facts: Mapping[str, Any]) -> str:
    """Type and place."""
    return f"{facts['type']} · {facts['place']}" if facts["place"] else str(facts["type"])


def _where(facts: Mapping[str, Any]) -> str:
    """The settings, at most some of them."""
    names = ", ".join(facts["settings"]) or "—"
    return f"{names} +{number(facts['others'])}" if facts["others"] else names


def _new(facts: Mapping[str, Any], value: float) -> str:
    count = round(value)
    if "fingerprint" not in facts:
        text = ngettext(
            "%(n)s kind of failure in the first hours of %(key)s.",
            "%(n)s kinds of failures in the first hours of %(key)s.",
            count,
        )
        return text % {"n": number(count), "key": facts["setting"]}
    text = ngettext(
        "Never seen before: %(what)s, %(n)s time in %(where)s.",
        "Never seen before: %(what)s, %(n)s times in %(where)s.",
        count,
    )
    return text % {"what": _what(facts), "n": number(count), "where": _where(facts)}


def _new_head(facts: Mapping[str, Any], value: float) -> Text:
    one = "fingerprint" in facts or round(value) == 1
    return NEW.label if one else _("New kinds of failures")


def _new_advice(facts: Mapping[str, Any]) -> Text:
    if "fingerprint" in facts:
        return NEW.what_to_do
    return _(
        "See on the page of the setting what fails: while everything is new to it, the setting or its agent "
        "is often "
        "not right yet. It is over by itself a day after the last of these kinds was seen first, or when "
        "they are in "
        "the book of known errors."
    )


def _returned(facts: Mapping[str, Any], value: float) -> str:
    text = _("It was said to be fixed and came again: %(what)s in %(where)s.")
    told = text % {"what": _what(facts), "where": _where(facts)}
    return f"{told} ({facts['ticket']})" if facts["ticket"] else told


def _growing(facts: Mapping[str, Any], value: float) -> str:
    count = int(facts["count"])
    text = ngettext(
        "%(n)s failure within an hour, %(before)s in the hour before: %(what)s in %(where)s.",
        "%(n)s failures within an hour, %(before)s in the hour before: %(what)s in %(where)s.",
        count,
    )
    before = number(facts["before"])
    return text % {"n": number(count), "before": before, "what": _what(facts), "where": _where(facts)}


def _url(facts: Mapping[str, Any]) -> str:
    return (
        fingerprint_url(facts["fingerprint"]) if "fingerprint" in facts else link("setting", facts["setting"])
    )


NEW = Kind(
    name="fingerprint_new",
    label=gettext_lazy("New kind of failure"),
    severity=Severity.WARNING,
    limits=Thresholds(1.0, 1.0, reminders=()),
    unit=gettext_lazy("failures so far"),
    says=_new,
    measure=number,
    what_to_do=gettext_lazy(
        "Look at its protocols; then write into the book of known errors what it is and what is to be done. "
        "It is over "
        "by itself a day after it was seen first, or when it is in the book."
    ),
    url=_url,
    observe=observing.new,
    told=frozenset({Step.OPENED}),
    head=_new_head,
    advice=_new_advice,
)
RETURNED = Kind(
    name="fingerprint_returned",
    label=gettext_lazy("Returned after its fix"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("1 while it comes"),
    says=_returned,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "An agent failed whose version is not older than the fixed one, or that names no version. If the fix "
        "is in "
        "another version, mark the error as fixed again with that version; if the fix does not work, reopen "
        "it."
    ),
    url=_url,
    observe=observing.returned,
)
GROWING = Kind(
    name="fingerprint_growing",
    label=gettext_lazy("Failures growing"),
    severity=Severity.BAD,
    limits=Thresholds(3.0, 1.5, open_after=timedelta(seconds=60), close_after=timedelta(minutes=10)),
    unit=gettext_lazy("failures of an hour against those of the hour before, 20 at least"),
    says=_growing,
    measure=lambda value: f"×{number(value, 1)}",
    what_to_do=gettext_lazy(
        "See on its page which settings and servers it comes from, and what changed there. A setting whose "
        "failures do "
        "not end is switched off by its breaker."
    ),
    url=_url,
    observe=observing.growing,
)
