"""Deliveries of the mode CLIENT that wait for an answer, and the two answers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import django_filters
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from agents.models import WAITING_STATES, Acknowledgement, AcknowledgementState, LaunchSetting, ServerState
from agents.models.setting import AckMode
from agents.pages.asking import Question, ask
from agents.pages.trips import setting_id
from agents.services import answering
from agents.services.answering import Answerer
from agents.services.rights import may, why_not
from agents.services.switching import Refused
from console.lists.keyset import keyset_page
from console.ui import amounts
from console.ui.labels import Shown
from console.ui.page import Text, link, needs, page
from console.ui.panels import Panel
from contract.acknowledging import Action

VIEW = "agents.view_acknowledgement"
ASKED = ["GET", "HEAD", "POST"]
MOST_COUNTED = 1000

STATES: dict[str, Shown] = {
    AcknowledgementState.OPEN: Shown(AcknowledgementState.OPEN.label, "info", "wait"),
    AcknowledgementState.PENDING: Shown(AcknowledgementState.PENDING.label, "info", "run"),
    AcknowledgementState.COMMITTED: Shown(AcknowledgementState.COMMITTED.label, "ok", "ok"),
    AcknowledgementState.ROLLED_BACK: Shown(AcknowledgementState.ROLLED_BACK.label, "warn", "back"),
    AcknowledgementState.EXPIRED: Shown(AcknowledgementState.EXPIRED.label, "bad", "bad"),
    AcknowledgementState.LOST: Shown(AcknowledgementState.LOST.label, "warn", "back"),
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """`since`, `due` by the clock of the MA. `silent`: its server was not heard for so long that it may be
    gone."""

    row: Acknowledgement
    state: Shown
    since: datetime
    due: datetime | None
    left: str
    silent: bool
    why_not: str
    reason: str
    answered_from: str


def waiting(row: Acknowledgement, now: datetime, user: Any) -> Waiting:
    skew = timedelta(seconds=row.server.clock_skew_seconds or 0.0)
    due = row.due_at - skew if row.due_at else None
    return Waiting(
        row=row,
        state=STATES[row.state],
        since=row.opened_at - skew if row.opened_at else row.created_at,
        due=due,
        left=amounts.duration(max(due - now, timedelta())) if due else _("without end"),
        silent=row.server.state(now) is not ServerState.ALIVE,
        why_not=why_not(user, "answer", row.setting),
        reason=str(row.reason),
        answered_from=str(row.answered_from),
    )


def choices() -> list[tuple[str, str]]:
    """Settings of the mode, and those that had it while deliveries wait still."""
    open_ones = Acknowledgement.objects.filter(ended_at=None, setting=OuterRef("pk"))
    keys = LaunchSetting.objects.filter(Q(mode=AckMode.CLIENT) | Exists(open_ones)).values_list(
        "key", flat=True
    )
    return [(key, key) for key in keys]


class AnswerFilter(django_filters.FilterSet):
    setting = django_filters.ChoiceFilter(
        choices=choices, label=gettext_lazy("Setting"), empty_label=gettext_lazy("all"), method="of_setting"
    )
    state = django_filters.ChoiceFilter(
        choices=[("ended", gettext_lazy("not any more"))],
        label=gettext_lazy("Waits"),
        empty_label=gettext_lazy("still"),
        method="in_state",
    )
    quiet = ()

    class Meta:
        model = Acknowledgement
        fields: list[str] = []

    def of_setting(self, rows: QuerySet[Acknowledgement], name: str, value: str) -> QuerySet[Acknowledgement]:
        return rows.filter(setting=setting_id(value))

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
    return page(
        request,
        "agents/answers.html",
        title=_("Waiting for an answer"),
        section="activations",
        crumbs=[(_("Activations"), link("activations"))],
        filters=filters,
        filtered=any(value for name, value in request.GET.items() if name in filters.filters),
        listed=listed,
        rows=[waiting(row, now, request.user) for row in listed.rows],
        ended=ended,
        told="",
    )


@require_http_methods(ASKED)
@needs(VIEW)
def commit_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    texts = [
        _(
            "The message is done with: it leaves the subscription for good, as after a handling that went "
            "well."
        )
    ]
    return _ask(request, pk, Action.COMMIT, _("Commit this message?"), texts, _("Commit"))


@require_http_methods(ASKED)
@needs(VIEW)
def rollback_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    texts = [
        _(
            "That is a failed attempt with a protocol of its own: the message comes again after the delay of "
            "its "
            "destination, after the last attempt it is a dead letter."
        )
    ]
    return _ask(request, pk, Action.ROLLBACK, _("Roll this message back?"), texts, _("Roll back"))


def _ask(
    request: HttpRequest, pk: int, action: Action, title: Text, texts: list[str], button: Text
) -> HttpResponseBase:
    row = get_object_or_404(Acknowledgement.objects.select_related("setting__pool", "server"), pk=pk)
    if not may(request.user, "answer", row.setting):
        raise PermissionDenied
    named = _("Setting %(setting)s, server %(server)s, message %(key)s.") % {
        "setting": row.setting.key,
        "server": row.server.name,
        "key": row.jms_message_id or row.message_key,
    }
    question = Question(
        title=title,
        texts=[named, *texts, _("The first answer counts; it cannot be taken back.")],
        button=button,
        icon="ok" if action is Action.COMMIT else "back",
        tone="primary" if action is Action.COMMIT else "danger",
        section="activations",
        back=link("answers"),
        crumbs=[(_("Waiting for an answer"), link("answers"))],
        refusal=""
        if row.state == AcknowledgementState.OPEN
        else _("It was answered already: %(what)s.") % {"what": row.get_state_display()},
    )
    return ask(request, question, _acting(row, action, request.user))


def _acting(row: Acknowledgement, action: Action, user: Any) -> Callable[[Any], Text]:
    def act(_form: Any) -> Text:
        try:
            answered = answering.until_ended(answering.answer(row, action, Answerer(by=user), timezone.now()))
        except answering.NotAnswered as refused:
            raise Refused("not_answered", str(refused), "") from refused
        if answered.state in WAITING_STATES:
            return _("Answered. Its server has not said yet what came of it.")
        if answered.reason:
            return f"{answered.get_state_display()}: {answered.reason}"
        return answered.get_state_display()

    return act


def number_waiting(request: HttpRequest) -> str:
    """For the overview; empty: none, or not for this person."""
    if not request.user.has_perm(VIEW):
        return ""
    found = _counted(Acknowledgement.objects.filter(ended_at=None))
    return _number(found) if found else ""


def panel_of_setting(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """How many deliveries of it wait, where any can."""
    if not request.user.has_perm(VIEW):
        return None
    rows = Acknowledgement.objects.filter(setting=setting, ended_at=None)
    found = _counted(rows)
    if not found and setting.mode != AckMode.CLIENT:
        return None
    oldest = rows.order_by("created_at", "id").first() if found else None
    return {
        "title": _("Waiting for an answer"),
        "template": "agents/answers_panel.html",
        "context": {"found": found, "number": _number(found), "oldest": oldest, "key": setting.key},
    }


def _counted(rows: QuerySet[Acknowledgement]) -> int:
    return rows.order_by()[: MOST_COUNTED + 1].count()


def _number(found: int) -> str:
    return f"{amounts.number(MOST_COUNTED)}+" if found > MOST_COUNTED else amounts.number(found)
