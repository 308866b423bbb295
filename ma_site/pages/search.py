"""The one search box: what a text names or occurs in, among everything that the person may see."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import Activation, Destination, LaunchSetting, ScheduledGroup, Server
from agents.pages import activations, groups, servers
from console.database.statements import quick
from console.ui.page import Text, link, link_to, page
from dlq import rights
from dlq.models import ReplayJob
from dlq.search.word_index import SEARCHED
from failures.models import FailureProtocol, Fingerprint
from failures.pages import fingerprints, protocols
from failures.protocols import properties
from ma_site.pages import overview
from ma_site.pages.searched_messages import MOST, Hit, Results, Section, by_state

# With a pair of quotes as long as a filter takes.
LONGEST = 198


@require_safe
def search(request: HttpRequest) -> HttpResponseBase:
    """Goes straight to what the text is the name or the id of; else lists what it occurs in."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    if text and (exact := _named(text, request.user)):
        return HttpResponseRedirect(exact)
    with quick():
        messages = by_state(text, request.user) if text else Results({})
        sections = [*_sections(text, request.user, messages)] if text else []
    return page(
        request,
        "ma_site/search.html",
        title=_("Search"),
        section="search",
        text=text,
        sections=[each for each in sections if each.hits],
        unfinished=list(dict.fromkeys(messages.unfinished)),
        searched_kb=SEARCHED // 1024,
        indexed=_indexed(),
    )


def _indexed() -> int | None:
    """Per cent of the failures whose properties are in their index; None: all are."""
    share = properties.share()
    return None if share is None else int(share * 100)


def _named(text: str, user: Any) -> str:
    """The page of the one thing with this key, name or id; empty where there is none."""
    if user.has_perm(overview.VIEW) and LaunchSetting.objects.filter(key=text).exists():
        return link("setting", text)
    if user.has_perm(servers.VIEW) and Server.objects.filter(name=text).exists():
        return link("server", text)
    there = list(_with_id(text, user))
    return there[0] if len(there) == 1 else ""


# People copy the first eight digits, which lists show.
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}(-[0-9a-f]{4}(-[0-9a-f]{4}(-[0-9a-f]{12})?)?)?)?")


def _with_id(text: str, user: Any) -> Iterator[str]:
    """Addresses of what has an id that begins so."""
    if not ID.fullmatch(text.lower()):
        return
    digits = text.replace("-", "")
    between = (UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))
    kinds: tuple[tuple[str, type[Model], str], ...] = (
        (activations.VIEW, Activation, "activation"),
        (rights.SEE_REPLAYS, ReplayJob, "replay"),
        (protocols.VIEW, FailureProtocol, "protocol"),
    )
    for permission, model, name in kinds:
        if user.has_perm(permission):
            ids = model._default_manager.filter(pk__range=between).order_by("pk").values_list("pk", flat=True)
            yield from (link(name, each) for each in ids[:2])


def _sections(text: str, user: Any, messages: Results) -> Iterator[Section]:
    if user.has_perm(overview.VIEW):
        keys = LaunchSetting.objects.filter(key__icontains=text).order_by("key").values_list("key", "agent")
        yield Section(
            _("Launch settings"), [Hit(key, link("setting", key), agent) for key, agent in keys[:MOST]]
        )
    if user.has_perm(groups.VIEW):
        yield _names(_("Groups"), ScheduledGroup, text, "group")
    if user.has_perm("agents.view_destination"):
        there = Destination.objects.filter(name__icontains=text).order_by("name").values_list("pk", "name")
        yield Section(_("Destinations"), [Hit(name, link("destination", pk)) for pk, name in there[:MOST]])
    if user.has_perm(servers.VIEW):
        yield _names(_("Servers"), Server, text, "server")
    yield from messages.sections.values()
    if user.has_perm(fingerprints.VIEW):
        yield _error_groups(text)


def _names(title: Text, model: type[Model], text: str, name: str) -> Section:
    names = (
        model._default_manager.filter(name__icontains=text).order_by("name").values_list("name", flat=True)
    )
    return Section(title, [Hit(each, link(name, each)) for each in names[:MOST]])


def _error_groups(text: str) -> Section:
    where = Q(exception_type__icontains=text) | Q(place__icontains=text) | Q(fingerprint=text)
    rows = Fingerprint.objects.filter(where, merged_into=None).order_by("-recent_at")[:MOST]
    hits = [
        Hit(row.exception_type, link_to("fingerprint", row.pk, "of"), row.place or row.headline)
        for row in rows
    ]
    url = f"{link('fingerprints')}?{urlencode({'exception': text})}"
    return Section(_("Error groups"), hits, [(_("All results"), url)])
