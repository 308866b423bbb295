"""The panel of a server: what fails on it, of all settings, and where else."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import LaunchSetting, Server
from console.ui.page import link
from console.ui.panels import Panel
from failures.fingerprints.parts import known_in
from failures.links import fingerprint_url
from failures.models import FailureProtocol, KnownError
from failures.on_server import Here, failures_on
from failures.pages.protocols import VIEW, protocols_url

WEEK = timedelta(days=7)
MOST_KINDS = 30


@dataclass(frozen=True, slots=True)
class Kind:
    """`setting_url`: empty where the setting is gone. `example`: what the latest of them said, None when
    retention has deleted it; `url`: its protocols there, empty where the setting has no name, by which a list
    could be narrowed; `elsewhere_url`: those of the other server, or of several the kind, which tells them
    apart; `about`: the kind."""

    here: Here
    setting_url: str
    example: str | None
    example_url: str
    known: KnownError | None
    url: str
    elsewhere_url: str
    about: str


def failures_of_server(request: HttpRequest, server: Server) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    since: datetime = timezone.now() - WEEK
    found = failures_on(server.name, since, MOST_KINDS)
    latest = FailureProtocol.objects.filter(pk__in=[here.latest.latest for here in found.kinds])
    examples = dict(latest.values_list("pk", "exception_text"))
    known = known_in({here.pair for here in found.kinds})
    keys = {here.latest.setting_key for here in found.kinds}
    settings = set(LaunchSetting.objects.filter(key__in=keys).values_list("key", flat=True))
    context = {
        "kinds": [_kind(server, here, examples, known.get(here.pair), settings) for here in found.kinds],
        "alone": sum(here.alone for here in found.kinds),
        "left_out": found.left_out,
        "cut": found.cut,
        "url": protocols_url(server=server.name),
    }
    return {
        "title": _("Failures here, by setting"),
        "template": "failures/on_server.html",
        "context": context,
    }


def _kind(
    server: Server, here: Here, examples: Mapping[UUID, str], known: KnownError | None, settings: set[str]
) -> Kind:
    fingerprint, setting = here.pair

    def protocols(name: str) -> str:
        return protocols_url(server=name, setting=setting, fingerprint=fingerprint) if setting else ""

    about = fingerprint_url(fingerprint)
    return Kind(
        here=here,
        setting_url=link("setting", setting) if setting in settings else "",
        example=examples.get(here.latest.latest),
        example_url=link("protocol", here.latest.latest),
        known=known,
        url=protocols(server.name),
        elsewhere_url=protocols(*here.elsewhere) if len(here.elsewhere) == 1 else about,
        about=about,
    )
