"""What waits for a setting: one part of it at a time, as the broker tells it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import structlog
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting, Server
from agents.pools.rights import may
from agents.provisioning.queue_counts import figures_of
from broker.management import waiting_messages
from broker.port import AddressUnknown, BrokerError
from console.broker import bounded, management
from console.operations.operation import Operation
from console.ui.page import Text, link, page
from dlq.dead_letters.queries.masks import masks_for
from dlq.dead_letters.rules.masks import Masks
from dlq.models.waiting import OPEN_ACTIONS, WaitingAction, WaitingKind, WaitingPart
from dlq.pages.case import SEE_PROTOCOLS, case_url
from dlq.pages.waiting_words import PARTS, STATES
from dlq.subscriptions.asking import POSSIBLE
from dlq.subscriptions.blocked import blocking_of
from dlq.subscriptions.operations import BY_KIND, MESSAGES, GiveUpBlocked
from dlq.subscriptions.queries import IN_DELIVERY, PAGE, Line, Look, ask_broker, bodies_of, heads_for, look

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
    found, problem = _look(setting, part, int(start) if start.isdecimal() and len(start) < 6 else 0, masks)
    actions = list(WaitingAction.objects.filter(setting_key=key).select_related("by")[:LATEST])
    refusal = GiveUpBlocked.permission.why_not(user, setting)
    return page(
        request,
        "dlq/waiting.html",
        title=_("Waiting messages of %(key)s") % {"key": key},
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
        older=waiting_url(key, part, start=found.start + PAGE) if found and found.more else "",
        acts=_acts(key, part, found) if found and not refusal else [],
        refusal=refusal,
        actions=[(each, STATES[each.state], BY_KIND[each.kind].label) for each in actions],
        blocking=blocking_of(setting),
        may_retry=may(user, "run", setting),
        running=next((each for each in actions if each.state in OPEN_ACTIONS), None),
    )


def _look(setting: LaunchSetting, part: str, start: int, masks: Masks) -> tuple[Look | None, str]:
    """Or None and why the broker does not tell. Without the bodies where only those do not come in time."""
    broker = management()
    try:
        told = bounded(lambda: ask_broker(broker, setting, part, start))
    except AddressUnknown:
        return None, _("The queues of this setting are not on the broker yet.")
    except BrokerError as error:
        log.info("broker does not tell what waits", setting=setting.key, reason=str(error))
        return None, _("The broker does not answer: what waits is safe there, and cannot be looked at now.")
    try:
        heads = heads_for(masks)
        bodies = bounded(lambda: bodies_of(told, setting, heads))
    except BrokerError as error:
        log.info("no bodies of what waits", setting=setting.key, reason=str(error))
        bodies = {}
    return look(told, setting, masks, bodies), ""


def _tabs(key: str, here: str, found: Look | None) -> list[PartTab]:
    return [
        PartTab(part, label, found.counts.of(part) if found else None, waiting_url(key, part), part == here)
        for part, label in PARTS.items()
    ]


def _rows(found: Look, user: Any) -> list[tuple[Line, str, str]]:
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


def _acts(key: str, part: str, found: Look) -> list[tuple[Operation[LaunchSetting], str]]:
    """What can be done with messages of the part, and where it is asked for all of them. With more delayed
    ones than can be named only trying all of them is possible."""
    if part == IN_DELIVERY or not found.counts.of(part):
        return []
    kinds, begin = (kind for kind, parts in POSSIBLE.items() if part in parts), link("waiting_ask", key)
    return [
        (BY_KIND[kind](), f"{begin}?{urlencode({'part': part, 'kind': kind, 'all': 1})}")
        for kind in kinds
        if found.told is not None or kind == WaitingKind.TRY_NOW
    ]
