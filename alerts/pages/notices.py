"""Notifications: the delivery log, one of them, and who is notified when a setting trips."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from agents.models import BreakerTrip, LaunchSetting
from alerts import text
from alerts.models import Channel, EventKind, Notice, NoticeState, NoticeTarget
from alerts.notices.operations import ResendNotice, SendTest
from alerts.notices.recipients import (
    address_of_notice,
    address_of_target,
    pending_targets,
    targets_of_setting,
    why_not_edit,
)
from console.filters import ListFilter, OneOfFilter, SpanFilter
from console.lists.keyset import keyset_page, list_page, number_in
from console.operations.operation import perform
from console.operations.web import operation_buttons
from console.ui.page import Button, Panel, StateLabel, Text, link, needs, page
from console.ui.text import masked

MOST_ROWS = 100
MOST_CHOICES = 500

# -- delivery log --------------------------------------------------------------------------------------------

VIEW = "alerts.view_notice"
OF_TRIP, OF_ALERT, OF_TEST = "trip", "alert", "test"


def event_choices() -> list[tuple[str, str]]:
    own = [(OF_TRIP, _("breaker trip")), (OF_ALERT, _("alert")), (OF_TEST, _("test notification"))]
    return own + [(str(value), str(label)) for value, label in EventKind.choices]


def target_choices() -> list[tuple[str, str]]:
    rows = NoticeTarget.objects.order_by("channel", "address", "pk")[:MOST_CHOICES]
    return [(str(target.pk), f"{target.get_channel_display()} {masked(target.address)}") for target in rows]


class NoticeFilter(ListFilter):
    target = OneOfFilter(gettext_lazy("Recipient"), target_choices)
    channel = OneOfFilter(gettext_lazy("Channel"), Channel.choices)
    event = OneOfFilter(gettext_lazy("Event"), event_choices, method="of_event")
    state = OneOfFilter(gettext_lazy("State"), NoticeState.choices)
    span = SpanFilter(field_name="created_at")

    def of_event(self, rows: QuerySet[Notice], name: str, value: str) -> QuerySet[Notice]:
        if value == OF_TRIP:
            return rows.filter(trip__isnull=False)
        if value == OF_ALERT:
            return rows.filter(transition__isnull=False)
        if value == OF_TEST:
            return rows.filter(trip=None, transition=None, event=None)
        return rows.filter(event__kind=value)


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """`what`: the event and what it is about, `about`: the page of that, empty where there is none."""

    notice: Notice
    what: str
    about: str
    address: str
    state: StateLabel
    waits: bool
    buttons: list[Button]


def rows_of(request: HttpRequest, notices: Iterable[Notice]) -> list[NoticeRow]:
    return [
        NoticeRow(
            notice,
            *_event_of(notice),
            address_of_notice(request.user, notice, notice.trip.setting if notice.trip else None),
            text.NOTICES[notice.state],
            notice.state == NoticeState.PENDING,
            operation_buttons(request.user, notice, ResendNotice),
        )
        for notice in notices
    ]


def _event_of(notice: Notice) -> tuple[str, str]:
    if notice.transition is not None:
        alert = notice.transition.alert
        word = text.STEPS.get(notice.transition.step, notice.transition.step)
        return f"{text.alert_label(alert)}: {text.says(alert)} ({word})", link("alert", alert.pk)
    if notice.trip is not None:
        said = (
            _("Setting re-enabled after a breaker trip: %(key)s")
            if notice.over
            else _("Breaker trip: %(key)s")
        )
        return said % {"key": notice.trip.setting.key}, link("trip", notice.trip.pk)
    if notice.event is not None:
        event = notice.event
        about = link("setting", event.setting_key) if event.setting_id else ""
        return f"{capfirst(event.get_kind_display())}: {event.setting_key}", about
    return _("Test notification"), ""


def notice_rows() -> QuerySet[Notice]:
    return Notice.objects.select_related(
        "target__setting__pool", "target__pool", "transition__alert", "trip__setting", "event"
    ).order_by("-created_at", "-id")


@require_safe
@needs(VIEW)
def notice_list(request: HttpRequest) -> HttpResponseBase:
    filters = NoticeFilter(request.GET, notice_rows())
    listed = keyset_page(request, filters.qs, "created_at")
    return list_page(
        request,
        "alerts/notices.html",
        title=_("Notifications"),
        section="alerts",
        crumbs=[(_("Alerts"), link("alerts"))],
        filters=filters,
        listed=listed,
        rows=rows_of(request, listed.rows),
        chosen=_chosen(request),
    )


@require_safe
@needs(VIEW)
def notice_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    notice = get_object_or_404(notice_rows(), pk=pk)
    (row,) = rows_of(request, [notice])
    crumbs: list[tuple[Text, str]] = [(_("Alerts"), link("alerts")), (_("Notifications"), link("notices"))]
    return page(
        request, "alerts/notice.html", title=row.what, section="alerts", crumbs=crumbs, row=row,
        buttons=row.buttons,
    )  # fmt: skip


def _chosen(request: HttpRequest) -> "TargetRow | None":
    """Returns the recipient whose log it is, where one is chosen."""
    number = number_in(request.GET.get("target", ""))
    if number is None or not request.user.has_perm(VIEW_TARGETS):
        return None
    target = NoticeTarget.objects.select_related("setting__pool", "pool").filter(pk=number).first()
    return None if target is None else _row(request, target)


# -- who is told when a setting trips ------------------------------------------------------------------------
# And a button that tells them now, to see whether it arrives.


VIEW_TARGETS = "alerts.view_noticetarget"
MOST_NOTICES = 20


@dataclass(frozen=True, slots=True)
class TargetRow:
    """`address`: as this person may see it. `last`: the newest notice that was sent there. `why_not`: why
    this person cannot send a test."""

    target: NoticeTarget
    address: str
    last: Notice | None
    state: StateLabel | None
    why_not: str
    hours: str


@dataclass(frozen=True, slots=True)
class TargetPanel:
    """The targets of one setting: its own, those of its pool and of the installation."""

    rows: list[TargetRow]


def panel_of_setting(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """Returns None for who may not see it."""
    if not request.user.has_perm(VIEW_TARGETS):
        return None
    shown = targets_of_setting(setting).select_related("setting", "pool").order_by("pk")[:MOST_NOTICES]
    told = TargetPanel([_row(request, target) for target in shown])
    context = {"setting": setting, "told": told}
    return {"title": _("Notify"), "template": "alerts/told.html", "context": context}


def panel_of_trip(request: HttpRequest, trip: BreakerTrip) -> Panel:
    rows = trip.notices.select_related("target__setting").order_by("pk")[:MOST_ROWS]
    notices = [
        (notice, address_of_notice(request.user, notice, trip.setting), text.NOTICES[notice.state])
        for notice in rows
    ]
    context = {"notices": notices, "untold": len(pending_targets(trip))}
    return {"title": _("Notifications"), "template": "alerts/told_of_trip.html", "context": context}


def _row(request: HttpRequest, target: NoticeTarget) -> TargetRow:
    last = target.notices.order_by("-created_at", "-id").first()
    return TargetRow(
        target,
        address_of_target(request.user, target),
        last,
        text.NOTICES[last.state] if last else None,
        why_not_edit(request.user, target),
        hours_text(target),
    )


def hours_text(target: NoticeTarget) -> str:
    """`Mon, Tue 09:00–18:00 Europe/Berlin`; empty: always."""
    days = ", ".join(str(WEEKDAYS_ABBR[int(day) - 1]) for day in target.weekdays)
    times = ""
    if target.hours_from is not None and target.hours_until is not None:
        times = f"{target.hours_from:%H:%M}–{target.hours_until:%H:%M}"
    if not days and not times:
        return ""
    return " ".join(filter(None, (days, times, target.time_zone or settings.TIME_ZONE)))


@require_POST
@needs(VIEW_TARGETS)
def test_page(request: HttpRequest, key: str, pk: int) -> HttpResponseBase:
    """Sends one now, and says how it went."""
    setting = get_object_or_404(LaunchSetting.objects.select_related("pool"), key=key)
    target = get_object_or_404(targets_of_setting(setting), pk=pk)
    _test(request, target)
    return HttpResponseRedirect(link("setting", key))


@require_POST
@needs(VIEW_TARGETS)
def target_test_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The same for any target, from its delivery log."""
    rows = NoticeTarget.objects.select_related("setting__pool", "pool")
    _test(request, get_object_or_404(rows, pk=pk))
    return HttpResponseRedirect(f"{link('notices')}?target={pk}")


def _test(request: HttpRequest, target: NoticeTarget) -> None:
    done = perform(SendTest, target, request.user)
    level = messages.SUCCESS if done.made.state == NoticeState.SENT else messages.ERROR
    messages.add_message(request, level, str(done.message))
