"""Charts on the pages of settings, servers, activations and destinations, and of the whole installation."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.models import Activation, Destination, LaunchSetting, Server
from console.ui.page import Panel, link, refreshes_another
from console.ui.time_range import DEFAULT, OWN, RANGE, RANGES, TimeRange, time_range
from metrics.pages.figures import OF_HANDLING, OF_QUEUE, charts, figures, figures_of_many
from metrics.queries import scope_of
from metrics.timeline.events import Subject
from metrics.timeline.queries import marks_of

# Its id on the page.
CURVES = "curves"
SEE_SETTINGS = "agents.view_launchsetting"
# Of a destination: more are added up nowhere.
MOST_SETTINGS = 50
# Of an activation: what it does at its ends is seen.
AROUND = timedelta(minutes=5)


def _panel(drawn: Sequence[SafeString], **context: Any) -> Panel:
    """`range`: the period, where people choose it; `about`: what is special; `timeline`: where to read on."""
    found = {"charts": drawn, **context}
    return {"title": _("Figures over time"), "template": "metrics/panel.html", "context": found}


def _timeline(wanted: TimeRange, **subject: str) -> str:
    query = QueryDict(mutable=True)
    query.update(subject)
    if wanted.key == OWN:
        query.update({"from": wanted.start.isoformat(), "until": wanted.end.isoformat()})
    else:
        query[RANGE] = wanted.key
    return f"{link('timeline')}?{query.urlencode()}"


def setting_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    if refreshes_another(request, CURVES) or not setting.takes_messages:
        return None
    now = timezone.now()
    wanted = time_range(request.GET, now)
    marks = marks_of(request.user, Subject(setting=setting), wanted.start, wanted.end)
    names = (*OF_HANDLING, *OF_QUEUE, "busy")
    drawn = charts(CURVES, figures(scope_of(setting=setting.pk), wanted, now, names), names, marks)
    return _panel(drawn, range=wanted, timeline=_timeline(wanted, setting=setting.key))


def server_panel(request: HttpRequest, server: Server) -> Panel | None:
    if refreshes_another(request, CURVES):
        return None
    now = timezone.now()
    wanted = time_range(request.GET, now)
    marks = marks_of(request.user, Subject(server=server), wanted.start, wanted.end)
    names = (*OF_HANDLING, "busy")
    drawn = charts(CURVES, figures(scope_of(server=server.pk), wanted, now, names), names, marks)
    return _panel(drawn, range=wanted, timeline=_timeline(wanted, server=server.name))


def activation_panel(request: HttpRequest, activation: Activation) -> Panel | None:
    """Of its setting while it lasted: a setting has one activation at a time."""
    setting = activation.setting
    if refreshes_another(request, CURVES) or not setting.takes_messages:
        return None
    now = timezone.now()
    wanted = of_activation(activation.started_at, activation.ended_at, now)
    marks = marks_of(request.user, Subject(setting=setting), wanted.start, wanted.end)
    shown = figures(scope_of(setting=setting.pk), wanted, now, OF_HANDLING)
    about = _("The setting's figures during this activation.")
    return _panel(charts(CURVES, shown, OF_HANDLING, marks), about=about)


def of_activation(started_at: datetime, ended_at: datetime | None, now: datetime) -> TimeRange:
    """From its start to its end with a little around it, at most a year."""
    end = min(now, (ended_at or now) + AROUND)
    start = max(started_at - AROUND, end - RANGES["1y"])
    return TimeRange(OWN, min(start, end - AROUND), end, QueryDict())


def destination_panel(request: HttpRequest, destination: Destination) -> Panel | None:
    if refreshes_another(request, CURVES) or not request.user.has_perm(SEE_SETTINGS):
        return None
    now = timezone.now()
    wanted = time_range(request.GET, now)
    settings = destination.settings.order_by("key").values_list("pk", flat=True)[: MOST_SETTINGS + 1]
    scopes = [scope_of(setting=pk) for pk in settings]
    about = ""
    if len(scopes) > MOST_SETTINGS:
        about = _("Totals for the first %(n)s settings, sorted by key.") % {"n": MOST_SETTINGS}
    shown = figures_of_many(scopes[:MOST_SETTINGS], wanted, now)
    drawn = charts(CURVES, shown, ("processed", "failures", "queue", "dead"))
    return _panel(drawn, range=wanted, about=about)


def installation_charts(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """The last 24 hours of everything, with a link to more."""
    wanted = time_range(QueryDict(), now, DEFAULT)
    names = ("processed", "failures", "queue", "dead")
    marks = marks_of(request.user, Subject(), wanted.start, wanted.end)
    drawn = charts(CURVES, figures(scope_of(), wanted, now, names), names, marks)
    return {"charts": drawn, "timeline": f"{link('timeline')}?{urlencode({RANGE: DEFAULT})}"}
