"""Describes what an alert says: on pages in the reader's language, in e-mail and webhook in that of the
installation.

Names and types of exceptions come from hostile places: here they become one bounded line. No bodies, no
secrets.
"""

from typing import Any

from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext, pgettext_lazy

from alerts.kinds import MORE, AlertKind, Text
from alerts.models import Alert, AlertTransition, NoticeState, Severity
from alerts.rules import AlertStep
from alerts.sources import kind_of
from console.ui.amounts import instant, number
from console.ui.page import StateLabel
from contract.typed import storable

VERSION = 1
EVENT = "alert"
LONGEST = 300
# Facts that another version of the kind wrote down.
UNREADABLE = (KeyError, TypeError, ValueError, NoReverseMatch)

STEPS: dict[str, Text] = {
    AlertStep.OPENED: pgettext_lazy("an alert", "opened"),
    AlertStep.REPEATED: pgettext_lazy("an alert", "still open"),
    AlertStep.REOPENED: pgettext_lazy("an alert", "reopened"),
    AlertStep.SNOOZED: pgettext_lazy("an alert", "snoozed"),
    AlertStep.CLOSED: pgettext_lazy("an alert", "closed"),
}

NOTICES: dict[str, StateLabel] = {
    NoticeState.PENDING: StateLabel(NoticeState.PENDING.label, "info", "wait"),
    NoticeState.SENT: StateLabel(NoticeState.SENT.label, "ok", "ok"),
    NoticeState.ACTIVE: StateLabel(NoticeState.ACTIVE.label, "ok", "ok"),
    NoticeState.SKIPPED: StateLabel(NoticeState.SKIPPED.label, "off", "off"),
    NoticeState.FAILED: StateLabel(NoticeState.FAILED.label, "bad", "bad"),
}


def one_line(text: object, limit: int = LONGEST) -> str:
    """`text` without line ends and what else does not print, cut to `limit` characters. A number stays whole
    where the line is broken."""
    kept = "\N{NO-BREAK SPACE}"
    plain = "".join(each if each.isprintable() or each == kept else " " for each in storable(str(text)))
    plain = " ".join(filter(None, plain.split(" ")))
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def alert_label(alert: Alert) -> str:
    kind = kind_of(alert.kind)
    if kind is None:
        return alert.kind
    if kind.head is None or alert.subject == MORE:
        return str(kind.label)
    try:
        return str(kind.head(alert.facts, alert.value))
    except UNREADABLE:
        return str(kind.label)


def says(alert: Alert) -> str:
    """One sentence: what is wrong, and where."""
    kind = kind_of(alert.kind)
    if kind is None:
        return one_line(alert.subject)
    if alert.subject == MORE:
        count = round(alert.value)
        text = ngettext("%(n)s more alert of this kind", "%(n)s more alerts of this kind", count)
        return text % {"n": number(count)}
    try:
        return one_line(kind.says(alert.facts, alert.value))
    except UNREADABLE:
        return one_line(alert.subject)


def measured(alert: Alert, value: float | None = None) -> str:
    """The value with its unit; empty where the value says nothing."""
    kind, shown = kind_of(alert.kind), alert.value if value is None else value
    return number(shown) if kind is None or alert.subject == MORE else kind.measure(shown)


def what_to_do(alert: Alert) -> str:
    kind = kind_of(alert.kind)
    if kind is None:
        return ""
    if kind.advice is None or alert.subject == MORE:
        return str(kind.what_to_do)
    try:
        return str(kind.advice(alert.facts))
    except UNREADABLE:
        return str(kind.what_to_do)


def about(alert: Alert) -> str:
    """The path of the page of what it is about; the list of alerts for the one that stands for many."""
    kind = kind_of(alert.kind)
    if kind is None or alert.subject == MORE:
        return reverse("admin:alerts")
    try:
        return kind.url(alert.facts)
    except UNREADABLE:
        return reverse("admin:alerts")


def alert_webhook_body(row: AlertTransition) -> dict[str, Any]:
    """The body of a webhook. `transition` is the same in each repetition: who knows it has nothing to do."""
    alert = row.alert
    with translation.override(settings.LANGUAGE_CODE):
        return {
            "version": VERSION,
            "event": EVENT,
            "alert": alert.pk,
            "transition": row.pk,
            "step": row.step,
            "kind": alert.kind,
            "subject": one_line(alert.subject),
            "severity": Severity(alert.severity).name.lower(),
            "setting": alert.setting.key if alert.setting else None,
            "server": alert.server.name if alert.server else None,
            "pools": sorted(pool.name for pool in alert.pools.all()),
            "value": row.value,
            "says": says(alert),
            "what_to_do": what_to_do(alert),
            "opened_at": alert.opened_at.isoformat() if alert.opened_at else None,
            "at": row.at.isoformat(),
            "by": row.by.get_username() if row.by else None,
            "link": settings.MA_BASE_URL + reverse("admin:alert", args=[alert.pk]),
            "about": settings.MA_BASE_URL + about(alert),
        }


def alert_email(row: AlertTransition) -> tuple[str, str]:
    """(subject, text) of an e-mail, in the language that is in force."""
    alert, kind = row.alert, kind_of(row.alert.kind)
    heads = {
        AlertStep.REPEATED.value: _("Still open: %(what)s"),
        AlertStep.CLOSED.value: _("Resolved: %(what)s"),
    }
    head = heads.get(row.step, "%(what)s") % {"what": f"{alert_label(alert)}: {says(alert)}"}
    lines = [says(alert), "", *_facts(row, kind)]
    if row.step != AlertStep.CLOSED:
        lines += ["", _("Recommended action: %(text)s") % {"text": what_to_do(alert)}]
    lines += [
        "",
        _("Open: %(url)s") % {"url": settings.MA_BASE_URL + about(alert)},
        _("Snooze or close: %(url)s")
        % {"url": settings.MA_BASE_URL + reverse("admin:alert", args=[alert.pk])},
    ]
    return one_line(head, 200), "\n".join(lines)


def _facts(row: AlertTransition, kind: AlertKind | None) -> list[str]:
    alert = row.alert
    value = measured(alert, row.value) if kind else ""
    pools = ", ".join(sorted(pool.name for pool in alert.pools.all()))
    facts = [
        _("Kind: %(kind)s (%(severity)s)")
        % {"kind": alert_label(alert), "severity": alert.get_severity_display()},
        _("Value: %(value)s") % {"value": value} if value else "",
        _("Open since: %(at)s") % {"at": instant(alert.opened_at)} if alert.opened_at else "",
        _("Pools: %(names)s") % {"names": pools} if pools else "",
    ]
    if row.step == AlertStep.CLOSED:
        who = row.by.get_username() if row.by else pgettext("an alert", "automatically")
        facts.append(_("Closed: %(at)s, %(who)s") % {"at": instant(row.at), "who": who})
        facts.append(_("Reason: %(reason)s") % {"reason": one_line(row.reason)} if row.reason else "")
    return [fact for fact in facts if fact]
