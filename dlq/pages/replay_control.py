"""Buttons of a replay: pause and resume act at once, what cannot be undone asks first."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.pages.asking import Question, ReasonForm, ask
from console.audit.refusals import audited
from console.operations.refusals import Refused
from console.ui.amounts import number
from console.ui.labels import Button
from console.ui.page import Text, link
from dlq.job_actions import WITH_REASON, act, why_may_not
from dlq.models import OPEN_JOBS, UNFINISHED_JOBS, JobState, ReplayJob
from dlq.pages import replay_words as words
from dlq.pages.refusals import say
from dlq.pages.replay_rights import job_for, why_not_decide
from dlq.replay.refusal import ReplayRefused
from dlq.replay.stopping import CONSUMERS_OPEN, STOPPING

ASKED = ["GET", "HEAD", "POST"]


def buttons_of(user: Any, job: ReplayJob) -> list[Button]:
    """Of a job that is not over."""
    why = why_may_not(user, "pause", job)

    def button(name: str, text: Text, icon: str, tone: str = "", refusal: str = "") -> Button:
        return Button(name, text, link(f"replay_{name}", job.pk), icon, tone, refusal)

    found = []
    if job.state == JobState.AWAITING:
        undecided = why_not_decide(user, job)
        found.append(button("approve", _("Approve…"), "ok", "primary", undecided))
        found.append(button("refuse", _("Refuse…"), "bad", "danger", undecided))
    if job.state in OPEN_JOBS:
        found.append(button("pause", _("Pause"), "pause", "", why))
    if job.state == JobState.PAUSED:
        found.append(button("resume", _("Go on"), "play", "primary", why))
        if job.pause_reason.get("code") == CONSUMERS_OPEN:
            url = f"{link('replay_resume', job.pk)}?acknowledge={STOPPING}"
            found.append(Button("go-on", _("Go on beside open consumers"), url, "play", "danger", why))
    found.append(button("cancel", _("Cancel…"), "off", "danger", why))
    return found


def _page(
    request: HttpRequest,
    job: ReplayJob,
    what: str,
    states: tuple[str, ...],
    title: Text,
    texts: list[Text],
    button: Text,
    icon: str,
    tone: str,
    said: Text,
) -> HttpResponseBase:
    """403 for who may not. What a job of another state refuses is said on its page."""
    if why := why_may_not(request.user, what, job):
        raise PermissionDenied(why)
    back = link("replay", job.pk)
    over = "" if job.state in states else _("The job is %(state)s.") % {"state": job.get_state_display()}
    crumbs: list[tuple[Text, str]] = [(_("Replays"), link("replays")), (str(job.pk)[:8], back)]
    question = Question(title, texts, button, icon, "replays", back, crumbs, tone, over)

    def done(form: Any) -> Text:
        try:
            reason = form.cleaned_data["reason"] if form is not None else ""
            act(what, job, by=request.user, now=timezone.now(), reason=reason)
        except ReplayRefused as refused:
            raise Refused("conflict", refused.reason, refused.what_to_do) from refused
        return said

    # Beside "Cancel the job" a "Cancel" would be either.
    return ask(request, question, done, ReasonForm if what in WITH_REASON else None, go_back=what == "cancel")


@require_POST
@audited("replay_pause")
def pause_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """At once: who pauses has no time for a question, and nothing is lost by it."""
    return _at_once(request, pk, "pause", _("It is paused: it stops after the slice at hand."))


@require_POST
@audited("replay_resume")
def resume_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    return _at_once(request, pk, "resume", _("It goes on."))


def _at_once(request: HttpRequest, pk: UUID, what: str, said: Text) -> HttpResponseBase:
    job = job_for(request, pk)
    if why := why_may_not(request.user, what, job):
        raise PermissionDenied(why)
    try:
        known = request.GET.getlist("acknowledge")
        act(what, job, by=request.user, now=timezone.now(), acknowledged={STOPPING}.intersection(known))
    except ReplayRefused as refused:
        say(request, refused)
    else:
        messages.success(request, str(said))
    return HttpResponseRedirect(link("replay", job.pk))


@require_http_methods(ASKED)
@audited("replay_cancel")
def cancel_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    job = job_for(request, pk)
    return _page(
        request, job, "cancel", UNFINISHED_JOBS,
        _("Cancel: %(job)s?") % {"job": words.title(job)},
        [_("What was not moved stays where it lies. What was moved stays moved."),
        _("This cannot be undone.")],
        _("Cancel the job"), "off", "danger",
        _("It is cancelled."),
    )  # fmt: skip


@require_http_methods(ASKED)
@audited("replay_approve")
def approve_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    job = job_for(request, pk)
    return _page(
        request, job, "approve", (JobState.AWAITING,),
        _("Approve: %(job)s?") % {"job": words.title(job)},
        [*_asked_for(job), _("It begins as soon as you approve it. Both of you stand in the audit.")],
        _("Approve"), "ok", "primary",
        _("It is approved and begins."),
    )  # fmt: skip


@require_http_methods(ASKED)
@audited("replay_refuse")
def refuse_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    job = job_for(request, pk)
    return _page(
        request, job, "refuse", (JobState.AWAITING,),
        _("Refuse: %(job)s?") % {"job": words.title(job)},
        [*_asked_for(job), _("Nothing is moved. Who asked sees who refused, and why.")],
        _("Refuse"), "bad", "danger",
        _("It is refused."),
    )  # fmt: skip


def _asked_for(job: ReplayJob) -> list[Text]:
    text = _("%(name)s asks: %(action)s, %(scope)s of %(key)s, %(n)s letters.")
    facts = {
        "name": job.by.get_username() if job.by else _("unknown person"),
        "action": job.get_action_display(),
        "scope": job.get_scope_display(),
        "key": job.setting_key,
        "n": number(job.total),
    }
    return [text % facts, *([f"“{job.reason}”"] if job.reason else [])]
