"""Editing many dead letters by a rule: a form, what the rule does to some of them, then a job. Nothing is
stored before."""

import json
from dataclasses import dataclass, replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import LaunchSetting
from console.operations.refusals import Refused
from console.rest.body_limits import FILE, takes_up_to
from console.ui.amounts import number
from console.ui.page import link, page
from dlq.edit.operations import rule_for, ruled, try_rule
from dlq.edit.rules.bulk_rule import Rule
from dlq.edit.rules.values import TYPES, EditRefused
from dlq.models import Action, Scope
from dlq.pages.edit.form import CONFIRM, LOOK, RuleRow, frozen_in, operations_in, rows_in, with_empty
from dlq.pages.edit.form import rows_of as form_rows
from dlq.pages.page_head import crumbs_of, no_job
from dlq.pages.preflight import ChosenScope, chosen_scope, ticks_of
from dlq.pages.preflight_form import PreflightForm
from dlq.replay import creation, requests
from dlq.replay.preflight import text
from dlq.replay.preflight.rules import PreflightResult
from dlq.replay.preflight.text import OPERATION_WORDS
from dlq.replay.requests import ReplayRequest
from dlq.replay.scopes import LISTED, source_rows


@dataclass(frozen=True, slots=True)
class RuleContext:
    """Holds whose dead letters, and which of them. `foreign`: how many were named that are none of this
    setting."""

    setting: LaunchSetting
    what: ChosenScope
    foreign: int = 0

    @property
    def replay_request(self) -> ReplayRequest:
        return ReplayRequest(
            self.setting,
            Action.EDIT,
            self.what.scope,
            letters=self.what.letters,
            query=self.what.query,
            up_to=self.what.up_to,
        )

    @property
    def back(self) -> str:
        query = f"?{self.what.query}" if self.what.query else ""
        return link("dead_letters_of", self.setting.key) + query


@takes_up_to(FILE)
@require_http_methods(["GET", "HEAD", "POST"])
def edit_letters_page(request: HttpRequest, key: str) -> HttpResponseBase:
    """What the address names says `chosen_scope`. `step` of a POST: `look` at what the rule of
    the form does, `again` to the form, `confirm` what was looked at."""
    setting = get_object_or_404(LaunchSetting.objects.select_related("destination", "pool"), key=key)
    requests.check_rights(request.user, ReplayRequest(setting, Action.EDIT, Scope.ALL))
    what = chosen_scope(request)
    if what is None:
        messages.warning(request, _("Select at least one message first."))
        return HttpResponseRedirect(link("dead_letters_of", key))
    context = _context(setting, what)
    rows: list[RuleRow] = []
    try:
        if request.POST.get("step") == LOOK:
            rows = rows_in(request.POST)
            return _check(request, context, rule_for(operations_in(request.POST), setting, request.user))
        if request.method == "POST":
            rule = rule_for(frozen_in(request, "rule"), setting, request.user)
            rows = form_rows(rule.to_json()["operations"])
            if request.POST.get("step") == CONFIRM:
                return _confirm(request, context, rule)
    except EditRefused as refused:
        return _form(request, context, rows, str(refused))
    except Refused as refused:
        return no_job(request, refused, context.back)
    return _form(request, context, rows, "")


def _context(setting: LaunchSetting, what: ChosenScope) -> RuleContext:
    if what.scope not in LISTED:
        return RuleContext(setting, what)
    mine = source_rows(Action.EDIT, setting.key).filter(pk__in=what.letters).values_list("pk", flat=True)
    known = tuple(sorted(mine))
    return RuleContext(
        setting, ChosenScope(requests.listed_scope(known), known), len(what.letters) - len(known)
    )


def _form(request: HttpRequest, context: RuleContext, rows: list[RuleRow], problem: str) -> HttpResponseBase:
    return page(
        request,
        "dlq/edit_rule.html",
        title=_("Edit messages by rule"),
        section="dead_letters",
        crumbs=crumbs_of(context.setting.key),
        setting=context.setting,
        scope=context.what,
        back=context.back,
        rows=with_empty([row for row in rows if row.op]),
        operations=OPERATION_WORDS.items(),
        types=TYPES,
        problem=problem,
    )


def _check(
    request: HttpRequest,
    context: RuleContext,
    rule: Rule,
    form: PreflightForm | None = None,
    verdict: PreflightResult | None = None,
) -> HttpResponseBase:
    """Raises Refused. `form` and `verdict`: those that a confirmation was not enough for."""
    now = timezone.now()
    form = form or PreflightForm(None, action=Action.EDIT, setting=context.setting, user=request.user)
    unticked = verdict is not None and form.lacks(verdict, request.POST.getlist("acknowledge"))
    verdict = verdict or requests.check_request(context.replay_request, by=request.user, now=now)
    if verdict.advises_ladder:
        form.recommend_ladder(ticked=context.what.scope == Scope.GROUP)
    trial = try_rule(rule, context.replay_request.rows(request.user), request.user, now)
    return page(
        request,
        "dlq/edit_rule_check.html",
        title=_("Edit and replay these messages?"),
        section="dead_letters",
        crumbs=crumbs_of(context.setting.key),
        setting=context.setting,
        scope=context.what,
        back=context.back,
        frozen=json.dumps(rule.to_json()["operations"]),
        trial=trial,
        left_out=sorted(trial.left_out.values(), key=lambda each: -each.count),
        verdict=verdict,
        going=number(verdict.going),
        seen=number(verdict.seen),
        skipped=[(number(count), text.reason(code)) for code, count in verdict.skipped.items()],
        foreign=context.foreign,
        ticks=ticks_of(verdict, request.POST.getlist("acknowledge")),
        unticked=unticked,
        second=creation.second_above(Action.EDIT, verdict.at_most),
        form=form,
    )


def _confirm(request: HttpRequest, context: RuleContext, rule: Rule) -> HttpResponseBase:
    """Raises Refused."""
    now = timezone.now()
    form = PreflightForm(request.POST, action=Action.EDIT, setting=context.setting, user=request.user)
    acknowledged = tuple(request.POST.getlist("acknowledge"))
    valid = form.is_valid()
    asked = replace(context.replay_request, acknowledged=acknowledged)
    if valid:
        asked = replace(asked, options=form.options, reason=form.cleaned_data["reason"])
    asked, by = ruled(asked, rule), request.user
    with creation.attempted(asked, by):
        verdict = requests.check_request(asked, by=by, now=now)
        if valid and verdict.typed:
            form.check_typed(verdict.going)
        if form.is_valid() and not verdict.missing(acknowledged):
            job = creation.run(asked, verdict, by=by, now=now)
            return HttpResponseRedirect(link("replay", job.pk))
    return _check(request, context, rule, form, verdict)
