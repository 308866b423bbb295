"""What people do with an alert: a question, and the POST that does it."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from agents.alerts import handling, words
from agents.models import LIVE_ALERTS, Alert
from agents.pages.asking import Question, ReasonForm, ask
from console.ui.labels import Button
from console.ui.page import Text, link, needs

VIEW = "agents.view_alert"
HANDLE = "agents.can_handle_alerts"
ASKED = ["GET", "HEAD", "POST"]
SPANS = {"1h": timedelta(hours=1), "4h": timedelta(hours=4), "1d": timedelta(days=1)}
UNTIL = "until"


class SnoozeForm(ReasonForm):
    lasts = forms.ChoiceField(
        label=gettext_lazy("How long?"),
        choices=[
            ("1h", gettext_lazy("for 1 hour")),
            ("4h", gettext_lazy("for 4 hours")),
            ("1d", gettext_lazy("for 1 day")),
            (UNTIL, gettext_lazy("until the instant below")),
        ],
    )
    until = forms.DateTimeField(
        label=gettext_lazy("Until"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("In UTC, three months ahead at most."),
    )

    def clean(self) -> dict[str, Any] | None:
        if (
            self.cleaned_data.get("lasts") == UNTIL
            and not self.cleaned_data.get("until")
            and "until" not in self.errors
        ):
            self.add_error("until", _("Name the instant."))
        return self.cleaned_data

    def end(self, now: datetime) -> datetime:
        span = SPANS.get(self.cleaned_data["lasts"])
        return now + span if span else self.cleaned_data["until"]


def alert_buttons(request: HttpRequest, alert: Alert) -> list[Button]:
    text = _("You may not do that. Ask for the permission “%(permission)s”.")
    may = request.user.has_perm(HANDLE)
    why = "" if may else text % {"permission": _("Can snooze and close alerts")}
    return [
        Button("snooze", _("Snooze…"), link("alert_snooze", alert.pk), "pause", "primary", why),
        Button("close", _("Close…"), link("alert_close", alert.pk), "ok", "", why),
    ]


@require_http_methods(ASKED)
@needs(VIEW, HANDLE)
def snooze_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    alert = get_object_or_404(Alert, pk=pk)

    def act(form: SnoozeForm) -> Text:
        now = timezone.now()
        handling.snooze(alert, form.end(now), request.user, form.cleaned_data["reason"], now)
        return _("Snoozed: nobody is reminded until then.")

    texts = [
        words.says(alert),
        _("It stays in the list, and nobody is reminded of it. If it lasts longer, people are told again."),
    ]
    return _ask(request, alert, _("Snooze this alert?"), texts, _("Snooze"), act, SnoozeForm)


@require_http_methods(ASKED)
@needs(VIEW, HANDLE)
def close_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    alert = get_object_or_404(Alert, pk=pk)

    def act(form: ReasonForm) -> Text:
        handling.close(alert, request.user, form.cleaned_data["reason"], timezone.now())
        return _("Closed.")

    texts = [
        words.says(alert),
        _(
            "It stays closed while its cause lasts. When the cause has gone and comes back, a new alert "
            "opens."
        ),
    ]
    return _ask(request, alert, _("Close this alert?"), texts, _("Close"), act, ReasonForm)


def _ask(
    request: HttpRequest,
    alert: Alert,
    title: Text,
    texts: Sequence[Text],
    button: Text,
    act: Callable[[Any], Text],
    form: type[forms.Form],
) -> HttpResponseBase:
    back = link("alert", alert.pk)
    question = Question(
        title=title,
        texts=texts,
        button=button,
        icon="pause" if form is SnoozeForm else "ok",
        section="alerts",
        back=back,
        crumbs=[(_("Alerts"), link("alerts")), (words.label(alert), back)],
        refusal="" if alert.state in LIVE_ALERTS else _("It is closed already."),
    )
    return ask(request, question, act, form)
