"""Before dead letters are replayed, redirected, discarded or put back: what will happen, what not and why,
what to think about first. Then the job is begun."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from agents.models import LaunchSetting
from agents.provisioning.queue_counts import broker_away_since, figures_of
from console.operations.refusals import Refused
from console.ui.amounts import number
from console.ui.page import View, link, page
from dlq.dead_letters.masks import masks_for
from dlq.models import Action, DeadLetter, Scope
from dlq.models.content import with_heads
from dlq.pages.holds import held
from dlq.pages.page_head import crumbs_of, filter_words, no_job
from dlq.pages.preflight_form import PreflightForm, first_target, ticked
from dlq.replay import creation, requests
from dlq.replay.preflight import text
from dlq.replay.preflight.rules import LADDER, PreflightResult
from dlq.replay.requests import LARGEST_SELECTION, listed_scope
from dlq.replay.scopes import LISTED, source_rows
from dlq.replay.text import ACTIONS
from dlq.search.filter import LetterFilter

# -- what has to be acknowledged before dead letters move, as boxes of a form --------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    code: str
    sentence: str
    words: str
    ticked: bool

    @property
    def without_ladder(self) -> bool:
        """Returns whether it only counts where the ladder is not ticked."""
        return self.code == LADDER


def ticks_of(verdict: PreflightResult, acknowledged: Iterable[str]) -> list[Tick]:
    known = frozenset(acknowledged)
    return [
        Tick(each.code, text.sentence(each), text.tick(each), each.code in known) for each in verdict.warnings
    ]


# -- scope of an address or a form: chosen ones, what a filter finds, a group, all of a setting --------------


@dataclass(frozen=True, slots=True)
class ChosenScope:
    """`letters` for the scopes one and selection, `query` for group and matching. `up_to`: the newest dead
    letter that the page counted, which the form sends back."""

    scope: Scope
    letters: tuple[int, ...] = ()
    query: str = ""
    up_to: int | None = None

    @property
    def listed(self) -> str:
        return ",".join(map(str, self.letters))


def chosen_scope(request: HttpRequest) -> ChosenScope | None:
    """`all=1`; `match=1` with a filter, and `group=1` where that filter is a group; else `letter=7&letter=8`
    or `letters=7,8`. A POST carries the filter as one field `query`. None: nothing is named."""
    data = request.POST if request.method == "POST" else request.GET
    up_to = next(iter(parse_numbers([request.POST.get("up_to", "")])), None)
    if data.get("all") == "1":
        return ChosenScope(Scope.ALL, up_to=up_to)
    if data.get("match") == "1" or data.get("group") == "1":
        query = data.get("query", "") if request.method == "POST" else LetterFilter.part_of(data).urlencode()
        scope = Scope.GROUP if data.get("group") == "1" else Scope.MATCHING
        return ChosenScope(scope, query=query, up_to=up_to)
    ids = parse_numbers([*data.getlist("letter"), *data.get("letters", "").split(",")])
    return ChosenScope(listed_scope(ids), tuple(ids)) if ids else None


def parse_numbers(texts: list[str]) -> list[int]:
    """One more than are taken at most: then there are too many."""
    found = {int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 19}
    return sorted(found)[: LARGEST_SELECTION + 1]


# -- the page ------------------------------------------------------------------------------------------------


ASKED = ["GET", "HEAD", "POST"]
# Where the dead letters are listed, if not among the dead letters of the setting.
LISTS: dict[str, str] = {Action.PUT_BACK: "bin_of"}
# What another choice in the form cures: it is said beside the field, and the form stays.
FIELD_OF_REFUSAL = {
    "too_many_in_order": "in_order",
    "target_standalone": "target",
    "target_removed": "target",
    "target_blocked": "target",
}


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """`letters` are some of them."""

    count: str
    why: str
    letters: Sequence[int]


def asking_page(action: Action) -> View:
    @require_http_methods(ASKED)
    def page_of_setting(request: HttpRequest, key: str) -> HttpResponseBase:
        return _page(request, key, action)

    return page_of_setting


def _page(request: HttpRequest, key: str, action: Action) -> HttpResponseBase:
    """Looks, and begins with a POST. What the address names says `chosen_scope`; without anything there is
    nothing to confirm: back to the list."""
    setting = get_object_or_404(LaunchSetting.objects.select_related("destination", "pool"), key=key)
    what = chosen_scope(request)
    if what is None:
        requests.check_rights(request.user, requests.ReplayRequest(setting, action, Scope.ALL))
        messages.warning(request, gettext("Select at least one message first."))
        return HttpResponseRedirect(link(LISTS.get(action, "dead_letters_of"), key))
    what, foreign = _of_setting(request, setting, action, what)
    form = PreflightForm(
        request.POST if request.method == "POST" else None, action=action, setting=setting, user=request.user
    )
    try:
        return _asked(request, setting, action, what, form, foreign)
    except Refused as refused:
        return no_job(request, refused, _list(setting, action, what))


def _of_setting(
    request: HttpRequest, setting: LaunchSetting, action: Action, what: ChosenScope
) -> tuple[ChosenScope, list[int]]:
    """A look leaves out what was named and is no dead letter of this setting; a confirmation that names such
    is refused."""
    if request.method == "POST" or what.scope not in LISTED:
        return what, []
    known = set(source_rows(action, setting.key).filter(pk__in=what.letters).values_list("pk", flat=True))
    foreign = [pk for pk in what.letters if pk not in known]
    left = tuple(pk for pk in what.letters if pk in known)
    return ChosenScope(requests.listed_scope(left), left), foreign


def _asked(
    request: HttpRequest,
    setting: LaunchSetting,
    action: Action,
    what: ChosenScope,
    form: PreflightForm,
    foreign: Sequence[int],
) -> HttpResponseBase:
    """Raises Refused."""
    by, now, posted = request.user, timezone.now(), request.method == "POST"
    valid, missing = posted and form.is_valid(), False
    replay_request = _request_of(request, setting, action, what, form if valid else None)
    try:
        with creation.attempted(replay_request, by) if posted else nullcontext():
            verdict = requests.check_request(replay_request, by=by, now=now)
            missing = form.lacks(verdict, replay_request.acknowledged)
            if valid and verdict.typed:
                form.check_typed(verdict.going)
            if valid and form.is_valid() and not missing:
                return HttpResponseRedirect(
                    link("replay", creation.run(replay_request, verdict, by=by, now=now).pk)
                )
    except Refused as refused:
        if not valid or refused.code not in FIELD_OF_REFUSAL:
            raise
        form.add_error(FIELD_OF_REFUSAL[refused.code], refused.sentence)
        verdict = requests.run_preflight(replay_request, by, now)
    return _shown(request, replay_request, what, verdict, form, foreign, unticked=posted and missing)


def _request_of(
    request: HttpRequest,
    setting: LaunchSetting,
    action: Action,
    what: ChosenScope,
    form: PreflightForm | None,
) -> requests.ReplayRequest:
    target = form.cleaned_data.get("target") if form else None
    if action == Action.REDIRECT and target is None:
        target = first_target(setting, request.user)
    more: dict[str, Any] = {"options": form.options, "reason": form.cleaned_data["reason"]} if form else {}
    return requests.ReplayRequest(
        setting,
        action,
        what.scope,
        letters=what.letters,
        query=what.query,
        target=target,
        acknowledged=ticked(request, target),
        up_to=what.up_to,
        **more,
    )


def _list(setting: LaunchSetting, action: str, what: ChosenScope) -> str:
    return link(LISTS.get(action, "dead_letters_of"), setting.key) + (f"?{what.query}" if what.query else "")


def _shown(
    request: HttpRequest,
    replay_request: requests.ReplayRequest,
    what: ChosenScope,
    verdict: PreflightResult,
    form: PreflightForm,
    foreign: Sequence[int],
    *,
    unticked: bool,
) -> HttpResponseBase:
    setting, words = replay_request.setting, ACTIONS[replay_request.action]
    letters = with_heads(DeadLetter.objects.filter(pk__in=verdict.first)).order_by("-pk")
    if verdict.advises_ladder:
        form.recommend_ladder(ticked=what.scope == Scope.GROUP)
    masks = masks_for(request.user)
    if replay_request.target is not None:
        form.fields["target"].initial = replay_request.target
    return page(
        request,
        "dlq/preflight.html",
        title=words.title,
        section="dead_letters",
        crumbs=crumbs_of(setting.key),
        setting=setting,
        action=replay_request.action,
        words=words,
        scope=what,
        verdict=verdict,
        going=number(verdict.going),
        total=number(verdict.total),
        seen=number(verdict.seen),
        skipped=_left_out(verdict, foreign),
        target=replay_request.target,
        differences=[text.difference_words(each) for each in verdict.differences],
        ticks=ticks_of(verdict, replay_request.acknowledged),
        unticked=unticked,
        second=creation.second_above(replay_request.action, verdict.at_most),
        form=form,
        filters=filter_words(what.query, request.user),
        figures=figures_of(setting),
        away=broker_away_since(),
        running=creation.running_of_all(setting) if what.scope == Scope.ALL else None,
        held=held(replay_request.receiver, request.user),
        back=_list(setting, replay_request.action, what),
        letters=[(letter, masks.head_of_body(letter)) for letter in letters],
    )


def _left_out(verdict: PreflightResult, foreign: Sequence[int]) -> list[SkippedRow]:
    left = [
        SkippedRow(number(count), text.reason(code), verdict.examples.get(code, ()))
        for code, count in sorted(verdict.skipped.items(), key=lambda pair: -pair[1])
    ]
    if foreign:
        left.append(SkippedRow(number(len(foreign)), gettext("not from this setting"), foreign))
    return left
