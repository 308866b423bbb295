"""Everything that happened, over the curves of the installation, of a setting or of a server, and as a
list."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting, Server
from console.lists.keyset import BEFORE, PAGE, page_of
from console.ui.charts.chart import shape_sample
from console.ui.errors import MissingPermission
from console.ui.page import Text, needs, page, refreshes_another
from console.ui.time_range import time_range
from metrics.pages.figures import charts, figures
from metrics.pages.panels import CURVES
from metrics.queries import scope_of
from metrics.timeline.events import Below, Event, EventKind, Subject, Window, below_in, newest_events
from metrics.timeline.queries import MOST_MARKS, event_kinds

LONGEST_KIND = 40
VIEW, SEE_SERVERS = "agents.view_launchsetting", "agents.view_server"


@dataclass(frozen=True, slots=True)
class Asked:
    """What of the address is understood. `problem` says what is not."""

    subject: Subject
    kinds: frozenset[str]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class KindChoice:
    name: str
    label: Text
    sample: Any
    chosen: bool


@require_safe
@needs(VIEW)
def timeline(request: HttpRequest) -> HttpResponseBase:
    now, kinds = timezone.now(), event_kinds(request.user)
    wanted, asked = time_range(request.GET, now), _asked(request, kinds)
    below = below_in(request.GET.get(BEFORE, ""), kinds)

    def newest(most: int, below: Below | None = None) -> list[Event]:
        window = Window(wanted.start, wanted.end, most, below)
        return newest_events(kinds, asked.kinds, asked.subject, window)

    drawn, marked = [], []
    if not refreshes_another(request, CURVES):
        marked = newest(MOST_MARKS)
        drawn = _charts(asked.subject, wanted, now, [event.mark for event in marked])
    # The first page of the list is among the marks.
    events = newest(PAGE + 1, below) if below or not marked else marked[: PAGE + 1]
    return page(
        request,
        "metrics/timeline.html",
        title=_("Timeline"),
        section="timeline",
        range=wanted,
        problem=asked.problem,
        charts=drawn,
        listed=page_of(request, events, lambda event: event.place),
        kinds=[_choice(kind, asked, len(kinds)) for kind in kinds],
        setting=asked.subject.setting.key if asked.subject.setting else "",
        server=asked.subject.server.name if asked.subject.server else "",
        settings=LaunchSetting.objects.order_by("key").values_list("key", flat=True),
        servers=_server_names(request.user),
        filtered=any(request.GET.get(name) for name in ("setting", "server", "kind")),
    )


def _asked(request: HttpRequest, kinds: list[EventKind]) -> Asked:
    """All kinds where none is chosen. A name that nothing has is said; then it is the installation."""
    key, name = request.GET.get("setting", ""), request.GET.get("server", "")
    if name and not request.user.has_perm(SEE_SERVERS):
        raise MissingPermission(SEE_SERVERS)
    known = {kind.name for kind in kinds}
    wanted = frozenset(request.GET.getlist("kind")) - {""}
    chosen = wanted & known or frozenset(known)
    setting = LaunchSetting.objects.filter(key=key).first() if key else None
    server = Server.objects.filter(name=name).first() if name else None
    problem = ""
    if key and setting is None:
        problem = _("There is no setting with this key.")
    elif name and server is None:
        problem = _("There is no server with this name.")
    elif unknown := sorted(wanted - known):
        problem = _("There is no kind of event named “%(kind)s”.") % {"kind": unknown[0][:LONGEST_KIND]}
    return Asked(Subject(setting, server), chosen, problem)


def _server_names(user: Any) -> Any:
    """None where this person may see none."""
    if not user.has_perm(SEE_SERVERS):
        return None
    return Server.objects.order_by("name").values_list("name", flat=True)


def _choice(kind: EventKind, asked: Asked, number: int) -> KindChoice:
    chosen = kind.name in asked.kinds and len(asked.kinds) < number
    return KindChoice(kind.name, kind.label, shape_sample(kind.shape, kind.tone), chosen)


def _charts(subject: Subject, wanted: Any, now: Any, marks: Any) -> list[Any]:
    setting, server = subject.setting, subject.server
    scope = scope_of(setting.pk if setting else None, server.pk if server else None)
    names = ("processed", "failures") if server else ("processed", "failures", "queue")
    return charts(CURVES, figures(scope, wanted, now, names), names, marks)
