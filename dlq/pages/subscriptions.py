"""Describes what waits for a setting: one part of it at a time, as the broker tells it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import structlog
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting, Server
from agents.pools.rights import may
from agents.provisioning.queue_counts import figures_of
from broker.management import waiting_messages
from broker.port import AddressUnknown, BrokerError
from console.broker import management, with_timeout
from console.lists.keyset import numbered_page
from console.operations.operation import Operation
from console.ui.page import Text, link, page
from contract.names import dead_letter_queue
from dlq.dead_letters.masks import Masks, masks_for
from dlq.models.message_action import (
    OPEN_ACTIONS,
    MessageResult,
    WaitingAction,
    WaitingItem,
    WaitingKind,
    WaitingPart,
)
from dlq.pages.holds import held
from dlq.pages.page_head import SEE_PROTOCOLS, case_url
from dlq.search.visibility import letters_for
from dlq.subscriptions.operations import (
    BY_KIND,
    MESSAGE_ACTIONS,
    MESSAGES,
    CancelAction,
    GiveUpBlocked,
    blocking_of,
)
from dlq.subscriptions.queries import (
    IN_DELIVERY,
    PER_PAGE,
    MessagePage,
    MessageRow,
    ask_broker,
    bodies_of,
    heads_for,
    message_page,
)
from dlq.subscriptions.requests import POSSIBLE, action_counts
from dlq.subscriptions.text import PARTS, STATES, action_bars, result_label

log = structlog.get_logger(__name__)
LATEST = 5


@dataclass(frozen=True, slots=True)
class PartTab:
    part: str
    label: Text
    count: int | None
    url: str
    here: bool


def waiting_url(key: str, part: str = "", **more: Any) -> str:
    query = urlencode({"part": part, **more} if part else more)
    return f"{link('waiting', key)}?{query}" if query else link("waiting", key)


@require_safe
def waiting_page(request: HttpRequest, key: str) -> HttpResponseBase:
    user = request.user
    setting = get_object_or_404(MESSAGES.rows_for(user), key=key)
    part = request.GET.get("part", "")
    part = part if part in PARTS else WaitingPart.WAITING.value
    start = request.GET.get("start", "")
    masks = masks_for(user)
    found, problem = _load(setting, part, int(start) if start.isdecimal() and len(start) < 6 else 0, masks)
    actions = list(WaitingAction.objects.filter(setting_key=key).select_related("by")[:LATEST])
    refusal = GiveUpBlocked.permission.why_not(user, setting)
    return page(
        request,
        "dlq/subscription.html",
        title=_("Messages waiting for %(key)s") % {"key": key},
        section="settings",
        crumbs=MESSAGES.crumbs(setting)[:-1],
        setting=setting,
        part=part,
        part_label=PARTS[part],
        tabs=_tabs(key, part, found),
        found=found,
        problem=problem,
        figures=figures_of(setting) if found is None else None,
        rows=_rows(found, user) if found else [],
        first=waiting_messages.FIRST,
        listed=waiting_messages.LISTED,
        newer=waiting_url(key, part) if found and found.start else "",
        older=waiting_url(key, part, start=found.start + PER_PAGE) if found and found.more else "",
        acts=_acts(key, part, found) if found and not refusal else [],
        refusal=refusal,
        actions=[(each, STATES[each.state], BY_KIND[each.kind].label) for each in actions],
        blocking=blocking_of(setting),
        may_retry=may(user, "run", setting),
        held=held(setting, user),
        running=next((each for each in actions if each.state in OPEN_ACTIONS), None),
    )


def _load(setting: LaunchSetting, part: str, start: int, masks: Masks) -> tuple[MessagePage | None, str]:
    """Or None and why the broker does not tell. Without the bodies where only those do not come in time."""
    broker = management()
    try:
        told = with_timeout(lambda: ask_broker(broker, setting, part, start))
    except AddressUnknown:
        return None, _("The broker has no queues for this setting yet.")
    except BrokerError as error:
        log.info("waiting messages unavailable", setting=setting.key, reason=str(error))
        return None, _(
            "The broker is not responding. The waiting messages are safe on the broker but cannot "
            "be shown now."
        )
    try:
        heads = heads_for(masks)
        bodies = with_timeout(lambda: bodies_of(told, setting, heads))
    except BrokerError as error:
        log.info("bodies of waiting messages unavailable", setting=setting.key, reason=str(error))
        bodies = {}
    return message_page(told, setting, masks, bodies), ""


def _tabs(key: str, here: str, found: MessagePage | None) -> list[PartTab]:
    return [
        PartTab(part, label, found.counts.of(part) if found else None, waiting_url(key, part), part == here)
        for part, label in PARTS.items()
    ]


def _rows(found: MessagePage, user: Any) -> list[tuple[MessageRow, str, str]]:
    """Each message with the addresses of its case file, where there may be one and this person may see it,
    and of its server: a connection may call itself anything."""
    sees = user.has_perm(SEE_PROTOCOLS)
    names = {line.held.server for line in found.lines if line.held}
    servers = {
        name: link("server", name)
        for name in Server.objects.filter(name__in=names).values_list("name", flat=True)
    }
    return [
        (
            line,
            case_url(line.key, found.setting_key) if sees and line.key else "",
            servers.get(line.held.server, "") if line.held else "",
        )
        for line in found.lines
    ]


def _acts(key: str, part: str, found: MessagePage) -> list[tuple[Operation[LaunchSetting], str]]:
    """Returns what can be done with messages of the part, and where it is asked for all of them. With more
    delayed ones than can be named only trying all of them is possible."""
    if part == IN_DELIVERY or not found.counts.of(part):
        return []
    kinds, begin = (kind for kind, parts in POSSIBLE.items() if part in parts), link("waiting_ask", key)
    return [
        (BY_KIND[kind](), f"{begin}?{urlencode({'part': part, 'kind': kind, 'all': 1})}")
        for kind in kinds
        if found.reported is not None or kind == WaitingKind.TRY_NOW
    ]


# -- one action on waiting messages: how far it is, and what became of each message --------------------------


@require_safe
def waiting_action_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    action = get_object_or_404(MESSAGE_ACTIONS.rows_for(request.user), pk=pk)
    counts, label = action_counts(action), BY_KIND[action.kind].label
    refused = CancelAction().refusal(action, timezone.now())
    show = request.GET.get("show", "")
    items = action.items.filter(fate=show) if show in MessageResult.values else action.items.all()
    listed = numbered_page(request, items, oldest_first=True)
    sees, letters = request.user.has_perm(SEE_PROTOCOLS), _letters(request, action, listed.rows)
    return page(
        request,
        "dlq/message_action.html",
        title=f"{label}: {action.setting_key}",
        section="settings",
        crumbs=_crumbs(action),
        action=action,
        label=label,
        state=STATES[action.state],
        part_label=PARTS[action.part],
        open=action.state in OPEN_ACTIONS,
        bars=action_bars(action, counts),
        why_not_stop=refused.reason if refused else CancelAction.permission.why_not(request.user, action),
        show=show if show in MessageResult.values else "",
        listed=listed,
        items=[
            (
                item,
                result_label(action, item.fate),
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
    """{broker's id before the death: the dead letter that it became}, of those that this person may see."""
    if action.kind != WaitingKind.TO_DLQ:
        return {}
    numbers = [item.number for item in items if item.fate == MessageResult.DONE]
    letters = letters_for(request.user).filter(
        queue=dead_letter_queue(action.setting_key),
        orig_message_id__in=numbers,
        seen_at__gte=action.created_at,
    )
    return dict(letters.values_list("orig_message_id", "pk"))
