"""Runs of the pipeline on pages: how one goes, its stages and log."""

from hashlib import sha256
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from console.ui.page import StateLabel, link, needs, page
from insights.models import PipelineRun, PipelineState
from insights.runs.folder import LABELS, tail_of_log
from insights.runs.operations import MAY_CANCEL, MAY_RUN
from insights.runs.queries import PipelineStatus, standing

VIEW = "insights.view_pipelinerun"

SHOWN: dict[str, StateLabel] = {
    PipelineState.WAITING: StateLabel(PipelineState.WAITING.label, "info", "wait"),
    PipelineState.RUNNING: StateLabel(PipelineState.RUNNING.label, "info", "play"),
    PipelineState.DONE: StateLabel(PipelineState.DONE.label, "ok", "ok"),
    PipelineState.PARTIAL: StateLabel(PipelineState.PARTIAL.label, "warn", "warn"),
    PipelineState.FAILED: StateLabel(PipelineState.FAILED.label, "bad", "bad"),
    PipelineState.CANCELLED: StateLabel(PipelineState.CANCELLED.label, "off", "off"),
    PipelineState.DEAD: StateLabel(PipelineState.DEAD.label, "bad", "silent"),
}


def run_facts(request: HttpRequest, of: PipelineStatus) -> dict[str, Any]:
    """Returns what the bar above the insights needs."""
    return {
        "standing": of,
        "may_run": request.user.has_perm(MAY_RUN.name),
        "may_cancel": request.user.has_perm(MAY_CANCEL.name),
        "stage": stage_words(of.open) if of.open else "",
        "last_shown": SHOWN[of.last.state] if of.last else None,
        "open_shown": SHOWN[of.open.state] if of.open else None,
    }


def stage_words(run: PipelineRun) -> str:
    """The stage at hand, for people."""
    if run.cancel_asked_at:
        return _("cancelling")
    if run.state == PipelineState.WAITING:
        return _("queued")
    at_hand = next((stage for stage in run.stages if stage.get("state") == "running"), None)
    if at_hand is None:
        return _("preparing") if not run.stages else ""
    return stage_label(at_hand["stage"])


def stage_label(name: str) -> str:
    return str(LABELS.get(name, _("archive") if name == "archive" else name))


@require_safe
@needs(VIEW)
def run_bar(request: HttpRequest) -> HttpResponseBase:
    """The bar alone, for who looks every few seconds; 304 where nothing has changed."""
    of = standing(timezone.now())
    context = run_facts(request, of)
    html = render_to_string("insights/run_bar.html", context, request)
    told = [repr(run and (run.pk, run.state, run.stages, run.cancel_asked_at)) for run in _runs(of)]
    etag = (
        f'"{sha256("".join([*told, repr(of.damage), str(request.LANGUAGE_CODE)]).encode()).hexdigest()[:16]}"'
    )
    response = HttpResponse(html)
    response["ETag"] = etag
    return get_conditional_response(request, etag=etag, response=response) or response


def _runs(of: PipelineStatus) -> list[PipelineRun | None]:
    return [of.open, of.last, of.loaded]


@require_safe
@needs(VIEW)
def run_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    run = get_object_or_404(PipelineRun.objects.select_related("asked_by"), pk=pk)
    stages = [
        {**stage, "label": stage_label(stage["stage"]), "shown": _stage_label(stage)} for stage in run.stages
    ]
    may_see_log = request.user.has_perm(MAY_RUN.name)
    return page(
        request,
        "insights/run.html",
        title=_("Pipeline run"),
        section="insights",
        crumbs=[(_("Insights"), link("insights"))],
        run=run,
        shown=SHOWN[run.state],
        stage=stage_words(run) if run.is_open else "",
        stages=stages,
        jobs=[stage_label(name) for name in run.jobs],
        may_cancel=request.user.has_perm(MAY_CANCEL.name),
        may_see_log=may_see_log,
        log=tail_of_log(run) if may_see_log else "",
        took=run.ended_at - run.started_at if run.ended_at and run.started_at else None,
    )


def _stage_label(stage: dict[str, Any]) -> StateLabel:
    words = {
        "waiting": StateLabel(_("pending"), "off", "wait"),
        "running": StateLabel(_("running"), "info", "play"),
        "done": StateLabel(_("done"), "ok", "ok"),
        "skipped": StateLabel(_("no new data"), "off", "ok"),
        "failed": StateLabel(_("failed"), "bad", "bad"),
    }
    return words.get(str(stage.get("state")), words["failed"])
