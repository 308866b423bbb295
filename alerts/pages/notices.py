"""Describes who is told when a setting trips, and a button that tells them now, to see whether it arrives."""

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.models import BreakerTrip, LaunchSetting
from agents.pools.rights import why_not
from alerts.models import Notice, NoticeState, NoticeTarget
from alerts.notices.operations import SendTest
from alerts.notices.recipients import address_of_notice, address_of_target, pending_targets
from alerts.pages.alerts import NOTICES
from console.operations.operation import perform
from console.ui.labels import StateLabel
from console.ui.page import Panel, link, needs

VIEW = "alerts.view_noticetarget"
MOST = 20
MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class TargetRow:
    """`address`: as this person may see it. `last`: the newest notice that was sent there, a test or a
    trip."""

    target: NoticeTarget
    address: str
    last: Notice | None
    state: StateLabel | None


@dataclass(frozen=True, slots=True)
class TargetPanel:
    """The targets of one setting: its own and those of its pool. `why_not`: why this person cannot send a
    test."""

    rows: list[TargetRow]
    why_not: str


def panel_of_setting(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """Returns None for who may not see it."""
    if not request.user.has_perm(VIEW):
        return None
    targets = NoticeTarget.objects.filter(Q(setting=setting) | Q(pool=setting.pool_id)).order_by("pk")
    shown = targets.select_related("setting")[:MOST]
    told = TargetPanel([_row(request, target) for target in shown], why_not(request.user, "edit", setting))
    context = {"setting": setting, "told": told}
    return {"title": _("Notify"), "template": "alerts/told.html", "context": context}


def panel_of_trip(request: HttpRequest, trip: BreakerTrip) -> Panel:
    rows = trip.notices.select_related("target__setting").order_by("pk")[:MOST_ROWS]
    notices = [
        (notice, address_of_notice(request.user, notice, trip.setting), NOTICES[notice.state])
        for notice in rows
    ]
    context = {"notices": notices, "untold": len(pending_targets(trip))}
    return {"title": _("Notifications"), "template": "alerts/told_of_trip.html", "context": context}


def _row(request: HttpRequest, target: NoticeTarget) -> TargetRow:
    last = target.notices.order_by("-created_at").first()
    return TargetRow(
        target, address_of_target(request.user, target), last, NOTICES[last.state] if last else None
    )


@require_POST
@needs(VIEW)
def test_page(request: HttpRequest, key: str, pk: int) -> HttpResponseBase:
    """Sends one now, and says how it went."""
    setting = get_object_or_404(LaunchSetting.objects.select_related("pool"), key=key)
    target = get_object_or_404(NoticeTarget, Q(setting=setting) | Q(pool=setting.pool_id), pk=pk)
    done = perform(SendTest, target, request.user)
    level = messages.SUCCESS if done.made.state == NoticeState.SENT else messages.ERROR
    messages.add_message(request, level, str(done.message))
    return HttpResponseRedirect(link("setting", key))
