"""One activation: who started it, its servers side by side, and what higher apps know of it."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.activations.rules.outcome import is_partial
from agents.models import Activation, ActivationState, Run, Trigger
from agents.pages.settings import failures_by_server
from agents.pages.states import ACTIVATIONS, run_rows
from agents.pages.trips import OfSettingFilter
from console.filters import ListFilter, OneOfFilter, SpanFilter
from console.lists.keyset import keyset_page, list_page
from console.ui.page import link, needs, page, render_panels

VIEW = "agents.view_activation"


@dataclass(frozen=True, slots=True)
class Totals:
    handled: int
    failed: int
    temporary: int
    recovered: int
    restarts: int
    repeats: int


@require_safe
@needs(VIEW)
def activation_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    rows = Activation.objects.select_related("setting__destination", "setting__pool", "started_by")
    activation = get_object_or_404(rows, pk=pk)
    setting = activation.setting
    runs = list(
        activation.runs.select_related("server", "activation__setting").order_by("server__name", "epoch")
    )
    before = setting.activations.filter(started_at__lt=activation.started_at).order_by("-started_at").first()
    after = setting.activations.filter(started_at__gt=activation.started_at).order_by("started_at").first()
    return page(
        request,
        "agents/activation.html",
        title=short(activation),
        section="settings",
        crumbs=[(_("Settings"), link("settings")), (setting.key, link("setting", setting.key))],
        activation=activation,
        setting=setting,
        state=ACTIVATIONS[activation.state],
        partial=activation.ended_at is None and is_partial(runs, timezone.now()),
        lasted=(activation.ended_at or timezone.now()) - activation.started_at,
        totals=totals(runs),
        runs=run_rows(runs, setting, timezone.now()),
        before=before,
        after=after,
        changes=activation.changes.select_related("by", "server")[:30],
        panels=render_panels("activation", request, activation),
    )


def totals(runs: list[Run]) -> Totals:
    return Totals(
        handled=sum(run.handled for run in runs),
        failed=sum(run.failed for run in runs),
        temporary=sum(run.temporary for run in runs),
        recovered=sum(run.recovered for run in runs),
        restarts=sum(run.restarts for run in runs),
        repeats=sum(run.repeats for run in runs),
    )


def short(activation: Activation) -> str:
    """The first part of the id: enough for people on one page."""
    return str(activation.pk)[:8]


# -- every activation of every setting, newest first: who started it and how it ended ------------------------


class ActivationFilter(ListFilter):
    setting = OfSettingFilter()
    state = OneOfFilter(gettext_lazy("State"), ActivationState.choices)
    trigger = OneOfFilter(gettext_lazy("Trigger"), Trigger.choices)
    span = SpanFilter(field_name="started_at")
    quiet = ("trigger",)


@require_safe
@needs(VIEW)
def activation_list(request: HttpRequest) -> HttpResponseBase:
    rows = Activation.objects.select_related("setting", "started_by", "group_activation__group")
    filters = ActivationFilter(request.GET, rows.order_by("-started_at", "-id"))
    listed = keyset_page(request, filters.qs, "started_at")
    failed = failures_by_server(listed.rows)
    return list_page(
        request,
        "agents/activations.html",
        title=_("Activations"),
        section="activations",
        filters=filters,
        listed=listed,
        rows=[
            (activation, ACTIVATIONS[activation.state], failed.get(activation.pk))
            for activation in listed.rows
        ],
    )
