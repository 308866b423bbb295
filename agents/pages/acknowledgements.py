"""Deliveries of the mode CLIENT that wait for an answer, and the two answers."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import Acknowledgement, AcknowledgementState, LaunchSetting, ServerState
from agents.models.setting import AckMode
from agents.pages.trips import OfSettingFilter
from agents.pools.rights import why_not
from console.filters import ListFilter, OneOfFilter
from console.lists.keyset import count_up_to, keyset_page, list_page
from console.ui import amounts
from console.ui.amounts import count_or_more
from console.ui.page import Panel, StateLabel, link, needs

VIEW = "agents.view_acknowledgement"
MOST_COUNTED = 1000

STATES: dict[str, StateLabel] = {
    AcknowledgementState.OPEN: StateLabel(AcknowledgementState.OPEN.label, "info", "wait"),
    AcknowledgementState.PENDING: StateLabel(AcknowledgementState.PENDING.label, "info", "run"),
    AcknowledgementState.COMMITTED: StateLabel(AcknowledgementState.COMMITTED.label, "ok", "ok"),
    AcknowledgementState.ROLLED_BACK: StateLabel(AcknowledgementState.ROLLED_BACK.label, "warn", "back"),
    AcknowledgementState.EXPIRED: StateLabel(AcknowledgementState.EXPIRED.label, "bad", "bad"),
    AcknowledgementState.LOST: StateLabel(AcknowledgementState.LOST.label, "warn", "back"),
}


@dataclass(frozen=True, slots=True)
class AcknowledgementRow:
    """`since`, `due` by the clock of the MA. `silent`: its server was not heard for so long that it may be
    gone."""

    row: Acknowledgement
    state: StateLabel
    since: datetime
    due: datetime | None
    left: str
    silent: bool
    why_not: str
    reason: str
    answered_from: str


def waiting(row: Acknowledgement, now: datetime, user: Any) -> AcknowledgementRow:
    skew = timedelta(seconds=row.server.clock_skew_seconds or 0.0)
    due = row.due_at - skew if row.due_at else None
    return AcknowledgementRow(
        row=row,
        state=STATES[row.state],
        since=row.opened_at - skew if row.opened_at else row.created_at,
        due=due,
        left=amounts.duration(max(due - now, timedelta())) if due else _("unlimited"),
        silent=row.server.state(now) is not ServerState.ALIVE,
        why_not=why_not(user, "answer", row.setting),
        reason=str(row.reason),
        answered_from=str(row.answered_from),
    )


def keys() -> list[str]:
    """Settings of the mode, and those that had it while deliveries wait still."""
    open_ones = Acknowledgement.objects.filter(ended_at=None, setting=OuterRef("pk"))
    found = LaunchSetting.objects.filter(Q(mode=AckMode.CLIENT) | Exists(open_ones))
    return list(found.order_by("key").values_list("key", flat=True))


class AnswerFilter(ListFilter):
    setting = OfSettingFilter(keys)
    state = OneOfFilter(
        gettext_lazy("Acknowledgement"),
        [("ended", gettext_lazy("no longer awaited"))],
        empty_label=gettext_lazy("awaited"),
        method="in_state",
    )

    def in_state(self, rows: QuerySet[Acknowledgement], name: str, value: str) -> QuerySet[Acknowledgement]:
        return rows  # the list has chosen its rows by it


@require_safe
@needs(VIEW)
def answer_list(request: HttpRequest) -> HttpResponseBase:
    ended = request.GET.get("state") == "ended"
    rows = Acknowledgement.objects.select_related("setting__pool", "server", "answered_by")
    rows = rows.filter(ended_at__isnull=not ended).order_by(
        *(("-ended_at",) if ended else ("-created_at",)), "-id"
    )
    filters = AnswerFilter(request.GET, rows)
    listed = keyset_page(request, filters.qs, "ended_at" if ended else "created_at")
    now = timezone.now()
    return list_page(
        request,
        "agents/answers.html",
        title=_("Awaiting acknowledgement"),
        section="activations",
        crumbs=[(_("Activations"), link("activations"))],
        filters=filters,
        listed=listed,
        rows=[waiting(row, now, request.user) for row in listed.rows],
        ended=ended,
    )


def number_waiting(request: HttpRequest) -> str:
    """Returns the number for the overview; empty: none, or not for this person."""
    if not request.user.has_perm(VIEW):
        return ""
    found = count_up_to(Acknowledgement.objects.filter(ended_at=None), MOST_COUNTED)
    return count_or_more(found, MOST_COUNTED) if found else ""


def panel_of_setting(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """Returns how many deliveries of it wait, where any can."""
    if not request.user.has_perm(VIEW):
        return None
    rows = Acknowledgement.objects.filter(setting=setting, ended_at=None)
    found = count_up_to(rows, MOST_COUNTED)
    if not found and setting.mode != AckMode.CLIENT:
        return None
    oldest = rows.order_by("created_at", "id").first() if found else None
    number = count_or_more(found, MOST_COUNTED)
    return {
        "title": _("Awaiting acknowledgement"),
        "template": "agents/answers_panel.html",
        "context": {"found": found, "number": number, "oldest": oldest, "key": setting.key},
    }
