"""The one search box: what a text names or occurs in, among everything that the person may see."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import Activation, Destination, LaunchSetting, ScheduledGroup, Server
from agents.pages import activations, groups, servers
from agents.pools.rights import may_anywhere
from console.database.statements import quick
from console.lists.keyset import number_in
from console.ui.page import Text, link, link_to, page
from dlq import rights
from dlq.models import DeadLetter, ReplayJob
from dlq.search.visibility import found, letters_for, newest_found
from failures.models import FailureProtocol, Fingerprint
from failures.pages import fingerprints, protocols
from failures.protocols.filter import ProtocolFilter
from failures.protocols.search import newest, protocols_at
from ma_site.pages import overview

LONGEST = 200
# Hits of a kind; its list has the others.
MOST = 8


@dataclass(frozen=True, slots=True)
class Hit:
    text: Text
    url: str
    note: Text = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Hits of one kind. `more`: the address of the list with all of them, empty where these are all."""

    title: Text
    hits: list[Hit]
    more: str = ""


@require_safe
def search(request: HttpRequest) -> HttpResponseBase:
    """Goes straight to what the text is the name or the id of; else lists what it occurs in."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    if text and (exact := _named(text, request.user)):
        return HttpResponseRedirect(exact)
    with quick():
        sections = [each for each in _sections(text, request.user) if each.hits] if text else []
    return page(
        request, "ma_site/search.html", title=_("Search"), section="search", text=text, sections=sections
    )


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


def _sections(text: str, user: Any) -> Iterator[Section]:
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
    if may_anywhere(user, rights.SEE):
        yield _messages(text, user)
    if user.has_perm(fingerprints.VIEW):
        yield _error_groups(text)
    if user.has_perm(protocols.VIEW):
        yield _failures(text)


def _names(title: Text, model: type[Model], text: str, name: str) -> Section:
    names = (
        model._default_manager.filter(name__icontains=text).order_by("name").values_list("name", flat=True)
    )
    return Section(title, [Hit(each, link(name, each)) for each in names[:MOST]])


def _messages(text: str, user: Any) -> Section:
    """By number, by key, by a property as `name=value`, by words; in every state."""
    found_by: dict[int, None] = {}
    if number := number_in(text):
        exact = letters_for(user).filter(pk=number)
        found_by |= dict.fromkeys(exact.values_list("pk", flat=True)[:MOST])
    more = ""
    for name in ("message_key", "prop" if "=" in text else "text"):
        query = {name: text, "state": "every"}
        filters, _rows = found(urlencode(query), user)
        if not filters.is_valid():
            continue
        some = newest_found(filters, user, size=MOST)
        if some.places:
            more = f"{link('all_dead_letters')}?{urlencode(query)}"
        found_by |= dict.fromkeys(some.places)
    rows = DeadLetter.objects.in_bulk(list(found_by)[:MOST])
    hits = [_message(rows[pk]) for pk in found_by if pk in rows]
    return Section(_("Messages"), hits, more)


def _message(row: DeadLetter) -> Hit:
    note = " · ".join(filter(None, (row.setting_key, row.exception_type, row.get_state_display())))
    return Hit(_("Message %(n)s") % {"n": row.pk}, link("letter", row.pk), note)


def _error_groups(text: str) -> Section:
    where = Q(exception_type__icontains=text) | Q(place__icontains=text) | Q(fingerprint=text)
    rows = Fingerprint.objects.filter(where, merged_into=None).order_by("-recent_at")[:MOST]
    hits = [
        Hit(row.exception_type, link_to("fingerprint", row.pk, "of"), row.place or row.headline)
        for row in rows
    ]
    return Section(_("Error groups"), hits, f"{link('fingerprints')}?{urlencode({'exception': text})}")


def _failures(text: str) -> Section:
    """By message key, else by a part of the text of the error, the newest first."""
    for name in ("message_key", "text"):
        filters = ProtocolFilter({name: text})
        if filters.problem:
            continue
        some, _count = newest(filters.asked, MOST)
        if some.places:
            hits = [
                Hit(row.exception_type, link("protocol", row.pk), f"{row.setting_key} · {row.server_name}")
                for row in protocols_at(some.places)
            ]
            return Section(_("Failures"), hits, f"{link('protocols')}?{urlencode({name: text})}")
    return Section(_("Failures"), [])
