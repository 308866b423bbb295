"""One action on waiting messages: how far it is, and what became of each message."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from agents.services.rights import may_anywhere
from console.lists.keyset import BEFORE, PAGE, page_of
from console.ui.page import Text, link, page
from contract.properties import dead_letter_queue
from dlq import rights
from dlq.letters_for import letters_for
from dlq.models.waiting import OPEN_ACTIONS, Fate, WaitingAction, WaitingItem, WaitingKind
from dlq.pages.case import SEE_PROTOCOLS, case_url
from dlq.pages.refusals import say
from dlq.pages.waiting import denied, waiting_url
from dlq.pages.waiting_words import PARTS, STATES, bars, fate_shown, kind_words
from dlq.waiting.asking import WaitingRefused
from dlq.waiting.counting import counts_of
from dlq.waiting.doing import NotAllowed, end, may_look, why_not

VIEW = "dlq.view_waitingaction"


def action_for(request: HttpRequest, pk: UUID) -> WaitingAction:
    """403 for who may look at none; those of others are not there. Of a setting that is gone: with the
    permission."""
    user = request.user
    if not (user.has_perm(VIEW) or may_anywhere(user, rights.SEE) or may_anywhere(user, rights.WAITING)):
        raise PermissionDenied
    action = get_object_or_404(WaitingAction.objects.select_related("setting__pool", "by"), pk=pk)
    if not user.has_perm(VIEW) and (action.setting is None or not may_look(user, action.setting)):
        raise Http404
    return action


@require_safe
def waiting_action_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    action = action_for(request, pk)
    counts, words = counts_of(action), kind_words(action.kind)
    show = request.GET.get("show", "")
    items = action.items.filter(fate=show) if show in Fate.values else action.items.all()
    before = request.GET.get(BEFORE, "")
    if before.isdecimal() and len(before) < 19:
        items = items.filter(pk__gt=int(before))
    listed = page_of(request, list(items.order_by("pk")[: PAGE + 1]), lambda item: str(item.pk))
    sees, letters = request.user.has_perm(SEE_PROTOCOLS), _letters(request, action, listed.rows)
    return page(
        request,
        "dlq/waiting_action.html",
        title=f"{words.button}: {action.setting_key}",
        section="settings",
        crumbs=_crumbs(action),
        action=action,
        words=words,
        state=STATES[action.state],
        part_label=PARTS[action.part],
        open=action.state in OPEN_ACTIONS,
        bars=bars(action, counts),
        why_not_stop=why_not(request.user, action.setting) if action.setting else _("Its setting is gone."),
        show=show if show in Fate.values else "",
        listed=listed,
        items=[
            (
                item,
                fate_shown(action, item.fate),
                letters.get(item.number),
                case_url(item.message_key, item.setting_key) if sees and item.message_key else "",
            )
            for item in listed.rows
        ],
    )


def _crumbs(action: WaitingAction) -> list[tuple[Text, str]]:
    if action.setting is None:
        return [(_("Settings"), link("settings"))]
    key = action.setting_key
    waiting: tuple[Text, str] = (_("Waiting messages"), waiting_url(key, action.part))
    return [(_("Settings"), link("settings")), (key, link("setting", key)), waiting]


def _letters(request: HttpRequest, action: WaitingAction, items: list[WaitingItem]) -> dict[int, int]:
    """{broker's id before the death: the letter that it became}, of those that this person may see."""
    if action.kind != WaitingKind.TO_DLQ:
        return {}
    numbers = [item.number for item in items if item.fate == Fate.DONE]
    letters = letters_for(request.user).filter(
        queue=dead_letter_queue(action.setting_key),
        orig_message_id__in=numbers,
        seen_at__gte=action.created_at,
    )
    return dict(letters.values_list("orig_message_id", "pk"))


@require_POST
def waiting_stop_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """At once: what is done stays done, so there is nothing to ask."""
    action = action_for(request, pk)
    try:
        end(action, by=request.user, now=timezone.now())
    except NotAllowed as refused:
        raise denied(refused) from refused
    except WaitingRefused as refused:
        say(request, refused)
    else:
        messages.success(request, _("It ends after the messages at hand. What was done stays done."))
    return HttpResponseRedirect(link("waiting_action", action.pk))
