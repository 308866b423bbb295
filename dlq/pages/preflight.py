"""Before dead letters are replayed, redirected, discarded or put back: what will happen, what not and why,
what to think about first. Then the job is begun."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import LaunchSetting
from agents.provisioning.queue_counts import figures_of
from console.operations.refusals import Refused
from console.ui.amounts import number
from console.ui.page import Text, View, link, page
from contract.names import dead_letter_queue
from dlq.dead_letters.masks import masks_for
from dlq.models import Action, DeadLetter, Scope
from dlq.models.content import with_heads
from dlq.pages.access import no_job
from dlq.pages.preflight_form import ChosenScope, PreflightForm, chosen_scope, targets_of, ticks_of
from dlq.replay import creation, requests
from dlq.replay.preflight import text
from dlq.replay.preflight.rules import PreflightResult
from dlq.replay.scopes import LISTED, source_rows
from dlq.search.visibility import found

ASKED = ["GET", "HEAD", "POST"]
# Where the dead letters are listed, if not among the dead letters of the setting.
LISTS: dict[str, str] = {Action.PUT_BACK: "bin_of"}


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
    """Looks, and begins with a POST. What the address names is in `dlq.pages.preflight_form`; without
    anything there is nothing to confirm: back to the list."""
    setting = get_object_or_404(LaunchSetting.objects.select_related("destination", "pool"), key=key)
    what = chosen_scope(request)
    if what is None:
        requests.check_rights(request.user, requests.ReplayRequest(setting, action, Scope.ALL))
        messages.warning(request, _("Select at least one letter first."))
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
    valid = posted and form.is_valid()
    replay_request = _request_of(request, setting, action, what, form if valid else None)
    with creation.attempted(replay_request, by) if posted else nullcontext():
        flight = requests.check_request(replay_request, by=by, now=now)
        missing = flight.missing(replay_request.acknowledged)
        if valid and flight.typed:
            form.check_typed(flight.going)
        if valid and form.is_valid() and not missing:
            return HttpResponseRedirect(
                link("replay", creation.run(replay_request, flight, by=by, now=now).pk)
            )
    return _shown(request, replay_request, what, flight, form, foreign, unticked=bool(posted and missing))


def _request_of(
    request: HttpRequest,
    setting: LaunchSetting,
    action: Action,
    what: ChosenScope,
    form: PreflightForm | None,
) -> requests.ReplayRequest:
    target = form.cleaned_data.get("target") if form else None
    if action == Action.REDIRECT and target is None:
        target = targets_of(setting, request.user).first()
    more: dict[str, Any] = {"options": form.options, "reason": form.cleaned_data["reason"]} if form else {}
    return requests.ReplayRequest(
        setting,
        action,
        what.scope,
        letters=what.letters,
        query=what.query,
        target=target,
        acknowledged=tuple(request.POST.getlist("acknowledge")),
        **more,
    )


def _list(setting: LaunchSetting, action: str, what: ChosenScope) -> str:
    return link(LISTS.get(action, "dead_letters_of"), setting.key) + (f"?{what.query}" if what.query else "")


def _shown(
    request: HttpRequest,
    replay_request: requests.ReplayRequest,
    what: ChosenScope,
    flight: PreflightResult,
    form: PreflightForm,
    foreign: Sequence[int],
    *,
    unticked: bool,
) -> HttpResponseBase:
    setting, queue = replay_request.setting, dead_letter_queue(replay_request.setting.key)
    letters = _letters(flight.first)
    masks = masks_for(request.user)
    return page(
        request,
        "dlq/preflight.html",
        title=TITLES[replay_request.action](),
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters")), (queue, link("dead_letters_of", setting.key))],
        setting=setting,
        action=replay_request.action,
        words=ACTIONS[replay_request.action](),
        scope=what,
        flight=flight,
        going=number(flight.going),
        total=number(flight.total),
        seen=number(flight.seen),
        skipped=_left_out(flight, foreign),
        ticks=ticks_of(flight, replay_request.acknowledged),
        unticked=unticked,
        second=creation.second_above(replay_request.action, flight.at_most),
        form=form,
        filters=found(what.query, request.user)[0].words if what.query else [],
        figures=figures_of(setting),
        running=creation.running_of_all(setting) if what.scope == Scope.ALL else None,
        back=_list(setting, replay_request.action, what),
        letters=[(letter, masks.head_of_body(letter)) for letter in letters],
    )


def _left_out(flight: PreflightResult, foreign: Sequence[int]) -> list[SkippedRow]:
    left = [
        SkippedRow(number(count), text.reason(code), flight.examples.get(code, ()))
        for code, count in sorted(flight.skipped.items(), key=lambda pair: -pair[1])
    ]
    if foreign:
        left.append(SkippedRow(number(len(foreign)), _("no dead letters of this setting"), foreign))
    return left


def _letters(ids: Sequence[int]) -> list[DeadLetter]:
    return list(with_heads(DeadLetter.objects.filter(pk__in=ids)).order_by("-pk"))


@dataclass(frozen=True, slots=True)
class ActionWords:
    """`button` is the action alone, as the word before a number of dead letters."""

    button: Text
    icon: str
    tone: str
    after: Text


TITLES: dict[str, Callable[[], str]] = {
    Action.GIVE_BACK: lambda: _("Give dead letters back?"),
    Action.REDIRECT: lambda: _("Redirect dead letters?"),
    Action.DISCARD: lambda: _("Discard dead letters?"),
    Action.PUT_BACK: lambda: _("Put discarded letters back?"),
}
ACTIONS: dict[str, Callable[[], ActionWords]] = {
    Action.GIVE_BACK: lambda: ActionWords(
        _("Give back"),
        "back",
        "primary",
        _("The agent handles them like new messages, with all attempts before them. If the "
          "cause is still there, they "
          "fail again and come back here. This cannot be undone."),
    ),
    Action.REDIRECT: lambda: ActionWords(
        _("Redirect"),
        "back",
        "primary",
        _("The other setting's agent handles them like new messages. This cannot be "
          "undone; what fails there dies "
          "there."),
    ),
    Action.DISCARD: lambda: ActionWords(
        _("Discard"),
        "trash",
        "danger",
        _("They lie in the bin and can be put back until they expire there; then they are removed for good."),
    ),
    Action.PUT_BACK: lambda: ActionWords(
        _("Put back"),
        "back",
        "primary",
        _("They are dead letters of the setting again, as before they were discarded. "
          "Nothing is handled by it."),
    ),
}  # fmt: skip
