"""Alerts: what people must know now, what was, and one with everything that happened to it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting, Pool, Server
from agents.pages.trips import OfSettingFilter
from alerts import text
from alerts.models import (
    LIVE_ALERTS,
    Alert,
    AlertState,
    AlertTransition,
    Notice,
    NoticeState,
    Severity,
)
from alerts.notices.recipients import address_of_notice
from alerts.operations import CloseAlert, SnoozeAlert
from alerts.queries import MOST_COUNTED, closed_alerts, narrowed, open_alerts, open_count
from alerts.sources import every_kind
from alerts.sources.goals import BURNING, BURNING_SLOWLY
from alerts.sources.movement import BACKLOG, STALLED, UNFED
from alerts.sources.odd_servers import ODD
from console.filters import ListFilter, NamesFilter, OneOfFilter
from console.lists.keyset import keyset_page, list_page
from console.operations.web import operation_buttons
from console.ui.amounts import duration, number
from console.ui.page import Panel, StateLabel, link, needs, page
from metrics.goals import PERIOD, budget_left, burn_rate, handled_within

VIEW = "alerts.view_alert"
MOST_OPEN = 200
MOST_ROWS = 100

STATES: dict[str, StateLabel] = {
    AlertState.CALM: StateLabel(AlertState.CALM.label, "off", "wait"),
    AlertState.OPEN: StateLabel(AlertState.OPEN.label, "bad", "warn"),
    AlertState.SNOOZED: StateLabel(AlertState.SNOOZED.label, "info", "pause"),
    AlertState.CLOSED: StateLabel(AlertState.CLOSED.label, "off", "ok"),
}
SEVERITIES: dict[int, StateLabel] = {
    Severity.WARNING: StateLabel(Severity.WARNING.label, "warn", "warn"),
    Severity.BAD: StateLabel(Severity.BAD.label, "bad", "bad"),
}
TONES = {"opened": "bad", "repeated": "warn", "reopened": "bad", "snoozed": "", "closed": "ok"}


@dataclass(frozen=True, slots=True)
class AlertRow:
    alert: Alert
    state: StateLabel
    severity: StateLabel
    kind: str
    says: str
    value: str
    what_to_do: str
    about: str
    snoozed_by: str = ""


@dataclass(frozen=True, slots=True)
class StepRow:
    step: AlertTransition
    word: str
    tone: str
    value: str


def row_of(alert: Alert, snoozed_by: str = "") -> AlertRow:
    return AlertRow(
        alert=alert,
        state=STATES[alert.state],
        severity=SEVERITIES[alert.severity],
        kind=text.alert_label(alert),
        says=text.says(alert),
        value=text.measured(alert),
        what_to_do=text.what_to_do(alert),
        about=text.about(alert),
        snoozed_by=snoozed_by,
    )


def badge(request: HttpRequest) -> str:
    """Returns how many are open, beside the tab; empty: none."""
    found = open_count()
    return f"{MOST_COUNTED}+" if found > MOST_COUNTED else str(found or "")


def kind_choices() -> list[tuple[str, str]]:
    return [(kind.name, str(kind.label)) for kind in every_kind()]


def pool_names() -> list[str]:
    return list(Pool.objects.order_by("name").values_list("name", flat=True))


class AlertFilter(ListFilter):
    kind = OneOfFilter(gettext_lazy("Kind"), kind_choices, method="nothing")
    setting = OfSettingFilter(method="nothing")
    pool = NamesFilter(gettext_lazy("Pool"), pool_names, known_only=True, method="nothing")

    def nothing(self, rows: object, name: str, value: str) -> object:
        """Both lists of the page are narrowed by `chosen`."""
        return rows

    def chosen(self) -> dict[str, str]:
        """Raises nothing: what is no choice narrows to nothing."""
        data = self.form.cleaned_data if self.is_valid() else self.data
        return {name: str(data.get(name) or "") for name in ("kind", "pool", "setting")}


@require_safe
@needs(VIEW)
def alert_list(request: HttpRequest) -> HttpResponseBase:
    filters = AlertFilter(request.GET, Alert.objects.none())
    chosen = filters.chosen()
    found = list(narrowed(open_alerts(), **chosen)[: MOST_OPEN + 1])
    listed = keyset_page(request, narrowed(closed_alerts(), **chosen), "closed_at")
    snoozers = snoozers_of(found)
    return list_page(
        request,
        "alerts/alerts.html",
        title=_("Alerts"),
        section="alerts",
        filters=filters,
        open=[row_of(alert, snoozers.get(alert.pk, "")) for alert in found[:MOST_OPEN]],
        more_open=len(found) > MOST_OPEN,
        listed=listed,
        rows=[row_of(alert) for alert in listed.rows],
    )


def snoozers_of(alerts: list[Alert]) -> dict[int, str]:
    """Returns who snoozed those that are snoozed; one query."""
    asleep = [alert.pk for alert in alerts if alert.state == AlertState.SNOOZED]
    steps = (
        AlertTransition.objects.filter(alert__in=asleep, step="snoozed").select_related("by").order_by("id")
    )
    return {step.alert_id: step.by.get_username() if step.by else "" for step in steps}


@require_safe
@needs(VIEW)
def alert_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    alert = get_object_or_404(
        Alert.objects.exclude(state=AlertState.CALM)
        .select_related("setting", "server")
        .prefetch_related("pools"),
        pk=pk,
    )
    steps = reversed(alert.transitions.select_related("by").order_by("-id")[:MOST_ROWS])
    notices = _notices(request, alert)
    return page(
        request,
        "alerts/alert.html",
        title=text.says(alert),
        section="alerts",
        crumbs=[(_("Alerts"), link("alerts"))],
        row=row_of(alert, snoozers_of([alert]).get(alert.pk, "")),
        steps=[_step(alert, step) for step in steps],
        notices=notices,
        buttons=operation_buttons(request.user, alert, SnoozeAlert, CloseAlert),
        lasted=_end(alert) - alert.opened_at if alert.opened_at else None,
    )


def _end(alert: Alert) -> datetime:
    return alert.closed_at or timezone.now()


def _step(alert: Alert, step: AlertTransition) -> StepRow:
    word = text.STEPS.get(step.step, step.step)
    return StepRow(step, str(word), TONES.get(step.step, ""), text.measured(alert, step.value))


def _notices(request: HttpRequest, alert: Alert) -> list[tuple[object, ...]]:
    """Each with the step that it tells of, its address as this person may see it, and its state."""
    rows = Notice.objects.filter(transition__alert=alert).select_related(
        "target__setting", "target__pool", "transition"
    )
    return [
        (
            notice,
            text.STEPS.get(notice.transition.step if notice.transition else "", ""),
            address_of_notice(request.user, notice, alert.setting),
            text.NOTICES[notice.state],
            notice.state == NoticeState.PENDING and not notice.attempts,
        )
        for notice in rows.order_by("-pk")[:MOST_ROWS]
    ]


def notes_of_setting(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """Returns what is wrong with its subscription, on the page where an alert of it leads: those that are
    open, in the words that people were notified with."""
    return _notes(Alert.objects.filter(setting=setting, kind__in=NOTED))


def notes_of_server(request: HttpRequest, server: Server) -> Panel | None:
    return _notes(Alert.objects.filter(server=server, kind=ODD.name))


NOTED = (STALLED.name, UNFED.name, BACKLOG.name, BURNING.name, BURNING_SLOWLY.name, ODD.name)
MOST_NOTES = 10
HOUR = timedelta(hours=1)


def goal_of_setting(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """Returns None where it has no goal."""
    if not setting.takes_messages or not setting.goal_seconds:
        return None
    found = handled_within([setting], (PERIOD, HOUR), timezone.now())[setting.pk]
    month, percent = found[PERIOD], setting.goal_percent
    left = budget_left(month, percent)
    context = {
        "percent": f"{percent:g}",
        "time": duration(setting.goal_seconds),
        "left": None if left is None else number(100 * left, 1),
        "missed": left is not None and left < 0,
        "achieved": number(100 * (1 - month.late / month.total), 2) if month.total else "",
        "burn": number(burn_rate(found[HOUR], percent), 1),
    }
    return {"title": _("Goal"), "template": "alerts/goal.html", "context": context}


def _notes(alerts: QuerySet[Alert]) -> Panel | None:
    live = alerts.filter(state__in=LIVE_ALERTS).order_by("-severity", "-pk")
    rows = [row_of(alert) for alert in live[:MOST_NOTES]]
    return {"title": "", "template": "alerts/notes.html", "context": {"rows": rows}} if rows else None
