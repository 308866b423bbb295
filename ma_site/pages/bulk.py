"""The pages of what is done to many settings at once: the pre-flight, and what happened to each. GET looks,
POST does it to the settings that are named."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from agents.pages.settings import VIEW
from agents.pools.rights import check_anywhere, may_anywhere
from agents.settings.bulk import MOST_AT_ONCE, RIGHTS, VERBS, BulkItem, Fate, carry_out, foresee, happened
from agents.settings.operations import SETTINGS
from console.audit import web as audit
from console.audit.models import AuditEntry
from console.operations.operation import Operation
from console.operations.refusals import Refused
from console.ui.page import StateLabel, Text, link, needs, page
from ma_site.pages.table import Selection, setting_rows

FATES: dict[str, StateLabel] = {
    Fate.DONE: StateLabel(Fate.DONE.label, "ok", "ok"),
    Fate.UNCHANGED: StateLabel(Fate.UNCHANGED.label, "off", "info"),
    Fate.REFUSED: StateLabel(Fate.REFUSED.label, "bad", "bad"),
    Fate.GONE: StateLabel(Fate.GONE.label, "warn", "trash"),
    Fate.FAILED: StateLabel(Fate.FAILED.label, "bad", "warn"),
}
WILL_CHANGE = StateLabel(_("will change"), "ok", "run")
TITLES: dict[str, Text] = {
    "enable": _("Enable settings"),
    "disable": _("Disable settings"),
    "stop": _("Stop settings"),
    "label": _("Label settings"),
}
# Of the audit, where somebody may not even see settings.
ACTION = "setting.bulk"


@dataclass(frozen=True, slots=True)
class BulkRow:
    item: BulkItem
    state: StateLabel
    url: str

    @property
    def goes(self) -> bool:
        return self.item.fate == Fate.DONE


def bulk_links(user: Any, selection: Selection) -> list[tuple[Text, str]]:
    """Returns the label and the address of what this person may do somewhere to what is selected."""
    allowed = [verb for verb in VERBS if may_anywhere(user, RIGHTS[verb])]
    return [(VERBS[verb].label, f"{link('bulk', verb)}?{selection.query}") for verb in allowed]


@require_http_methods(["GET", "HEAD", "POST"])
@needs(VIEW)
def bulk_page(request: HttpRequest, verb: str) -> HttpResponseBase:
    if verb not in VERBS:
        raise Http404
    if request.method != "POST":
        return _ask(request, verb, _form(VERBS[verb]))
    check_anywhere(request.user, RIGHTS[verb])
    form, keys = _form(VERBS[verb], request.POST), request.POST.getlist("settings")
    problem = _problem(keys)
    if problem or not form.is_valid() or request.POST.get("again"):
        if problem and not request.POST.get("again"):
            messages.error(request, problem)
        return _ask(request, verb, form)
    whole, _items = carry_out(verb, keys, request.user, _inputs(form, timezone.now(), verb))
    return HttpResponseRedirect(link("bulk_result", whole))


def _problem(keys: Sequence[str]) -> str:
    if not keys:
        return gettext("No setting is selected. Select at least one.")
    if len(keys) > MOST_AT_ONCE:
        return gettext("Too many settings are selected. Select at most %(most)s.") % {"most": MOST_AT_ONCE}
    return ""


def _form(operation: type[Operation[Any]], given: Any = None) -> forms.Form:
    form = forms.Form(given)
    form.fields = {name: one.form_field() for name, one in operation.inputs.items()}
    return form


def _ask(request: HttpRequest, verb: str, form: forms.Form) -> HttpResponseBase:
    operation, now = VERBS[verb], timezone.now()
    selection = Selection.of(request.GET)
    found = sorted(selection.among(setting_rows(now, request.user)), key=lambda row: row.setting.key)
    settings = [row.setting for row in found[:MOST_AT_ONCE]]
    rows: list[BulkRow] = []
    try:
        rows = [
            _foreseen(item) for item in foresee(verb, settings, request.user, now, _inputs(form, now, verb))
        ]
    except Refused as refused:
        messages.error(request, refused.sentence)
    return page(
        request,
        "ma_site/bulk.html",
        title=TITLES[verb],
        section="settings",
        crumbs=[(gettext("Settings"), link("settings"))],
        verb=verb,
        button=operation.label,
        icon=operation.icon,
        tone=operation.tone,
        form=form,
        rows=sorted(rows, key=lambda row: not row.goes),
        counts=_counts([row.item for row in rows]),
        left_out=len(found) - len(settings),
        asks_first=verb == "label",
        back=f"{link('settings')}?{selection.query}",
    )


def _inputs(form: forms.Form, now: datetime, verb: str) -> dict[str, Any]:
    """What the form says so far; of a new one what an input is where nothing is given. What nobody ticks is
    as each setting says."""
    inputs = VERBS[verb].inputs
    said = {name: one.default for name, one in inputs.items()}
    if form.is_bound and form.is_valid():
        said |= {name: inputs[name].from_form(value, now) for name, value in form.cleaned_data.items()}
    return {name: None if value is False else value for name, value in said.items()}


def _foreseen(item: BulkItem) -> BulkRow:
    state = WILL_CHANGE if item.fate == Fate.DONE else FATES[item.fate]
    return BulkRow(item, state, link("setting", item.key))


def _counts(items: Sequence[BulkItem]) -> dict[str, int]:
    found = Counter(item.fate for item in items)
    return {fate: found[fate] for fate in Fate.values}


@require_safe
@needs(VIEW)
def bulk_result(request: HttpRequest, whole: UUID) -> HttpResponseBase:
    """Shows what the audit has of it, to who did it and to who may see the audit."""
    mine = AuditEntry.objects.filter(operation=whole)
    if not request.user.has_perm(audit.VIEW):
        mine = mine.filter(by=request.user.pk)
    first = mine.order_by("pk").first()
    items = happened(whole) if first is not None else []
    if first is None or not items:
        raise Http404
    verb = first.action.rpartition(".")[2]
    known = set(SETTINGS.rows().filter(key__in=[item.key for item in items]).values_list("key", flat=True))
    rows = [
        BulkRow(item, FATES[item.fate], link("setting", item.key) if item.key in known else "")
        for item in items
    ]
    return page(
        request,
        "ma_site/bulk_result.html",
        title=TITLES.get(verb, gettext_lazy("Settings")),
        section="settings",
        crumbs=[(gettext("Settings"), link("settings"))],
        rows=rows,
        counts=_counts(items),
        at=first.at,
        by=first.by_name,
        audit_url=f"{link('audit')}?operation={whole}" if request.user.has_perm(audit.VIEW) else "",
    )
