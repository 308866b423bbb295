"""Editing one dead letter: a form, what it changes, then a job. Nothing is stored before the last step."""

import json
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from broker.port import Message
from console.audit.log import LONGEST_REASON
from console.operations.refusals import Refused
from console.rest.body_limits import FILE, takes_up_to
from console.ui.page import link, page
from dlq.edit.operations import body_is_hidden, draft, edit_letter, edit_request, hidden_names
from dlq.edit.rules.changes import Changes, changes_of
from dlq.edit.rules.copy import message_of
from dlq.edit.rules.values import TYPES, EditRefused
from dlq.models import DeadLetter
from dlq.pages.edit.form import CONFIRM, LOOK, changes_in, form_for, frozen_in
from dlq.pages.preflight import ticks_of
from dlq.replay import requests
from dlq.search.visibility import letters_for


@dataclass(frozen=True, slots=True)
class EditContext:
    """Holds what an edit of this dead letter needs, read once."""

    letter: DeadLetter
    message: Message
    masked: frozenset[str]
    hidden: bool


@takes_up_to(FILE)
@require_http_methods(["GET", "HEAD", "POST"])
def edit_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    """`step` of a POST: `look` at what the form changes, `again` to the form, `confirm` what was looked
    at."""
    letter = get_object_or_404(letters_for(request.user).select_related("setting"), pk=pk)
    try:
        requests.check_rights(request.user, edit_request(letter))
        message, masked = message_of(letter), hidden_names(letter, request.user)
    except EditRefused as refused:
        messages.warning(request, _("This message cannot be edited. %(why)s") % {"why": refused})
        return HttpResponseRedirect(link("letter", letter.pk))
    context = EditContext(letter, message, masked, body_is_hidden(letter, message, masked))
    changes = Changes()
    try:
        changes = _changes(request, context)
        if request.POST.get("step") == LOOK:
            return _check(request, context, changes)
        if request.POST.get("step") == CONFIRM:
            return _confirm(request, context, changes)
    except EditRefused as refused:
        return _form(request, context, changes, str(refused))
    return _form(request, context, changes, "")


def _changes(request: HttpRequest, context: EditContext) -> Changes:
    """Raises EditRefused."""
    if request.method != "POST":
        return Changes()
    if request.POST.get("step") == LOOK:
        return changes_in(request, context.message, context.letter.jms_kind)
    return changes_of(frozen_in(request, "changes"))


def _form(request: HttpRequest, context: EditContext, changes: Changes, problem: str) -> HttpResponseBase:
    """Shows what was typed, and why it is not taken."""
    filled = changes if not problem or request.POST.get("step") != LOOK else _typed(request, changes)
    return page(
        request,
        "dlq/edit.html",
        title=_("Edit message %(n)s") % {"n": context.letter.pk},
        section="dead_letters",
        crumbs=_crumbs(context),
        letter=context.letter,
        form=form_for(
            context.message, context.masked, filled, hidden=context.hidden, jms_kind=context.letter.jms_kind
        ),
        types=TYPES,
        problem=problem,
    )


def _typed(request: HttpRequest, changes: Changes) -> Changes:
    """A value that is none of its type is not kept; the text is, for it is the long part."""
    text = request.POST.get("text")
    return (
        changes
        if text is None
        else replace(changes, text=text, other_form=bool(request.POST.get("other_form")))
    )


def _check(
    request: HttpRequest, context: EditContext, changes: Changes, *, unticked: bool = False
) -> HttpResponseBase:
    """Raises EditRefused."""
    made = draft(context.letter, changes, request.user)
    reason, acknowledged = request.POST.get("reason", ""), request.POST.getlist("acknowledge")
    try:
        verdict = requests.check_request(edit_request(context.letter), by=request.user, now=timezone.now())
    except Refused as refused:
        return _refused(request, context, refused)
    return page(
        request,
        "dlq/edit_check.html",
        title=_("Replay the edited message %(n)s?") % {"n": context.letter.pk},
        section="dead_letters",
        crumbs=[*_crumbs(context), (_("Edit"), link("edit_letter", context.letter.pk))],
        letter=context.letter,
        setting=edit_request(context.letter).setting,
        changes=made.changes,
        frozen=json.dumps(changes.to_json()),
        verdict=verdict,
        ticks=ticks_of(verdict, acknowledged),
        unticked=unticked,
        reason=reason,
        longest=LONGEST_REASON,
    )


def _confirm(request: HttpRequest, context: EditContext, changes: Changes) -> HttpResponseBase:
    """Raises EditRefused."""
    how: dict[str, Any] = {
        "reason": request.POST.get("reason", "").strip()[:LONGEST_REASON],
        "acknowledged": request.POST.getlist("acknowledge"),
    }
    try:
        job = edit_letter(context.letter, changes, by=request.user, now=timezone.now(), **how)
    except Refused as refused:
        if refused.code == "unacknowledged":
            return _check(request, context, changes, unticked=True)
        return _refused(request, context, refused)
    return HttpResponseRedirect(link("replay", job.pk))


def _refused(request: HttpRequest, context: EditContext, refused: Refused) -> HttpResponseBase:
    messages.error(request, refused.sentence)
    return HttpResponseRedirect(link("letter", context.letter.pk))


def _crumbs(context: EditContext) -> list[Any]:
    queue = context.letter.queue
    return [
        (_("Dead letters"), link("dead_letters")),
        (queue, link("dead_letters_of", queue.partition(".")[2] or queue)),
        (_("Message %(n)s") % {"n": context.letter.pk}, link("letter", context.letter.pk)),
    ]
