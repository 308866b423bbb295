"""One action on waiting messages: how far it is, and what became of each message."""

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from console.lists.keyset import BEFORE, PAGE, page_of
from console.ui.page import Text, link, page
from contract.names import dead_letter_queue
from dlq.models.waiting import OPEN_ACTIONS, Fate, WaitingAction, WaitingItem, WaitingKind
from dlq.pages.case import SEE_PROTOCOLS, case_url
from dlq.pages.waiting import waiting_url
from dlq.pages.waiting_words import PARTS, STATES, bars, fate_shown
from dlq.search.visibility import letters_for
from dlq.subscriptions.alerts import counts_of
from dlq.subscriptions.operations import BY_KIND, MESSAGE_ACTIONS, MESSAGES, CancelAction


@require_safe
def waiting_action_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    action = get_object_or_404(MESSAGE_ACTIONS.rows_for(request.user), pk=pk)
    counts, label = counts_of(action), BY_KIND[action.kind].label
    refused = CancelAction().refusal(action, timezone.now())
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
        title=f"{label}: {action.setting_key}",
        section="settings",
        crumbs=_crumbs(action),
        action=action,
        label=label,
        state=STATES[action.state],
        part_label=PARTS[action.part],
        open=action.state in OPEN_ACTIONS,
        bars=bars(action, counts),
        why_not_stop=refused.reason if refused else CancelAction.permission.why_not(request.user, action),
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
    waiting = MESSAGES.title, waiting_url(action.setting_key, action.part)
    return [*MESSAGES.crumbs(action.setting)[:-1], waiting]


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
