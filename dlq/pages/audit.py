"""The audit: who did what, or was refused, newest first; searched by person, action, setting, result and time."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.pages.consoles import link, needs, page
from agents.pages.keyset import BIGGEST_KEY
from agents.pages.lists import BEFORE, PAGE, counted, page_of
from agents.pages.shown import Shown
from dlq.audit_filter import AuditFilter
from dlq.models import AuditEntry, AuditResult

VIEW = "dlq.view_auditentry"

RESULTS: dict[str, Shown] = {
    AuditResult.DONE: Shown(AuditResult.DONE.label, "ok", "ok"),
    AuditResult.REFUSED: Shown(AuditResult.REFUSED.label, "warn", "warn"),
    AuditResult.FAILED: Shown(AuditResult.FAILED.label, "bad", "bad"),
}
# Words for what is done most; everything else is shown as it is stored.
WORDS: dict[str, str | Promise] = {
    "give_back": gettext_lazy("give back"),
    "redirect": gettext_lazy("redirect"),
    "discard": gettext_lazy("discard"),
    "put_back": gettext_lazy("put back from the bin"),
    "edit": gettext_lazy("edit and give back"),
    "edit_rule": gettext_lazy("rule of an edit"),
    "export": gettext_lazy("export"),
    "import": gettext_lazy("import"),
    "import_begun": gettext_lazy("begin of an import"),
    "replay_paused": gettext_lazy("pause"),
    "replay_resumed": gettext_lazy("resume"),
    "replay_cancelled": gettext_lazy("cancel"),
    "replay_approved": gettext_lazy("approve"),
    "replay_refused": gettext_lazy("refuse"),
    "bin_expired": gettext_lazy("removed from the bin for good"),
    "waiting_try_now": gettext_lazy("try waiting messages now"),
    "waiting_to_dlq": gettext_lazy("waiting messages to the dead letters"),
    "waiting_hold": gettext_lazy("hold waiting messages back"),
    "waiting_release": gettext_lazy("release waiting messages"),
    "waiting_stop": gettext_lazy("stop an action on waiting messages"),
    "waiting_done": gettext_lazy("action on waiting messages: done"),
    "waiting_stopped": gettext_lazy("action on waiting messages: stopped"),
    "waiting_failed": gettext_lazy("action on waiting messages: failed"),
}
# Kept out of the details: columns tell them.
TOLD = ("setting", "counts", "reason", "scope")


@dataclass(frozen=True, slots=True)
class Row:
    entry: AuditEntry
    action: str | Promise
    result: Shown
    url: str
    counts: list[tuple[str, Any]]
    detail: list[tuple[str, Any]]


@require_safe
@needs(VIEW)
def audit_page(request: HttpRequest) -> HttpResponseBase:
    filters = AuditFilter(request.GET, AuditEntry.objects.all())
    entries = filters.qs
    before = request.GET.get(BEFORE, "")
    rows = entries
    if before.isascii() and before.isdecimal() and 0 < int(before) <= BIGGEST_KEY:
        rows = entries.filter(pk__lt=int(before))
    listed = page_of(request, list(rows.select_related("by").order_by("-pk")[: PAGE + 1]), lambda row: str(row.pk))
    return page(
        request,
        "dlq/audit.html",
        title=_("Audit"),
        section="replays",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        filters=filters,
        filtered=any(value for name, value in request.GET.items() if name in filters.filters),
        listed=listed,
        rows=[row_of(entry) for entry in listed.rows],
        total=counted(entries),
    )


def row_of(entry: AuditEntry) -> Row:
    return Row(
        entry,
        WORDS.get(entry.action, entry.action),
        RESULTS[entry.result],
        _url(entry),
        list(entry.counts.items()) if isinstance(entry.counts, dict) else [],
        [(name, value) for name, value in _pairs(entry.detail) if value not in ("", None, [], {}) and name not in TOLD],
    )


def _pairs(detail: Any) -> list[tuple[str, Any]]:
    return list(detail.items()) if isinstance(detail, dict) else []


def _url(entry: AuditEntry) -> str:
    """Of what it was done to, where that has a page."""
    if entry.letter is not None:
        return link("letter", entry.letter)
    if entry.operation is not None and entry.target.startswith("replay:"):
        return link("replay", entry.operation)
    if entry.operation is not None and entry.target.startswith("waiting:"):
        return link("waiting_action", entry.operation)
    return ""
