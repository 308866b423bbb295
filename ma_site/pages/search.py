"""The one search box: what a text names or occurs in, among everything that the person may see."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from console.database.texts import parted
from console.lists.keyset import number_in
from console.ui.page import Text, link, link_to, page
from dlq import rights
from dlq.models import DeadLetter, LetterState, ReplayJob
from dlq.outcomes.places import places_of, word_of
from dlq.search.visibility import found, letters_for, newest_found
from dlq.search.word_index import SEARCHED
from failures.models import FailureProtocol, Fingerprint, RecoveredMessage
from failures.pages import fingerprints, protocols
from failures.pages.protocol_table import case_url
from failures.protocols import properties
from failures.protocols.filter import ProtocolFilter
from failures.protocols.messages import MessageState, message_states
from failures.protocols.search import newest, protocols_at
from ma_site.pages import overview

# -- messages, with their failures, by where they are now ----------------------------------------------------
# Dead letters, what is still retried, what was processed in the end.


# Hits of one way to look; the lists have the others.
MOST = 8
# Failures of one way: a message may have many, of which one is shown.
LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Hit:
    text: Text
    url: str
    note: Text = ""


@dataclass(slots=True)
class Section:
    """Hits of one kind. `more`: text and address of each list with all of them; `failures`
    are so many of the hits."""

    title: Text
    hits: list[Hit] = field(default_factory=list)
    more: list[tuple[Text, str]] = field(default_factory=list)
    failures: int = 0


# One way to look for a text: the fields of a filter. What it finds has exactly this value, or only its words.
Way = Mapping[str, str]


def ways_of(text: str) -> tuple[list[Way], list[Way]]:
    """Exact ones, then by texts, the first of which that finds anything is enough. Pure. A business id is one
    word: its characters next to each other are meant."""
    if parted(text)[0]:
        return [{"message_key": text}], [{"text": text}]
    named = {"prop": text} if "=" in text else {"value": text}
    alone = text.split() == [text] and not text.endswith("*") and "=" not in text
    by_text = [{"text": f'"{text}"'}] if alone else []
    return [{"message_key": text}, named], [*by_text, {"text": text}]


def by_state(text: str, user: Any) -> Iterator[Section]:
    """In the order of what a person has to do with them; exact ones first in each."""
    sections = {state: Section(_title(state)) for state in ORDER}
    others = Section(_("Failures"))
    if may_anywhere(user, rights.SEE):
        _add_letters(sections, text, user)
    if user.has_perm(protocols.VIEW):
        _add_failures(sections, others, text, user)
    yield from (each for each in (*sections.values(), others) if each.hits)


ORDER = (
    MessageState.DEAD,
    MessageState.RETRIED,
    MessageState.REPLAYED,
    MessageState.RECOVERED,
    MessageState.ELSEWHERE,
    MessageState.DISCARDED,
    MessageState.GONE,
)


def _title(state: MessageState) -> Text:
    return _("Messages: %(state)s") % {"state": state.label}


# -- dead letters --------------------------------------------------------------------------------------------


def _add_letters(sections: Mapping[MessageState, Section], text: str, user: Any) -> None:
    exact, by_text = ways_of(text)
    found_by: dict[int, bool] = {}
    if number := number_in(text):
        there = letters_for(user).filter(pk=number)
        found_by |= dict.fromkeys(there.values_list("pk", flat=True), True)
    more: list[Way] = []
    for way in exact:
        found_by |= dict.fromkeys(_letters(way, user, more), True)
    for way in by_text:
        if some := _letters(way, user, more):
            found_by = dict.fromkeys(some, False) | found_by
            break
    exact_first = sorted(found_by, key=lambda pk: (not found_by[pk], -pk))
    rows = DeadLetter.objects.in_bulk(exact_first)
    places = places_of({(row.setting_key, row.message_key) for row in rows.values() if row.message_key})
    for row in (rows[pk] for pk in exact_first if pk in rows):
        section = sections[_state_of(row, places)]
        section.hits.append(_letter(row, found_by[row.pk]))
        section.more = section.more or [
            (_("All messages"), f"{link('all_dead_letters')}?{urlencode({**way, 'state': row.state})}")
            for way in more[:1]
        ]


def _letters(way: Way, user: Any, more: list[Way]) -> list[int]:
    filters, _rows = found(urlencode({**way, "state": "every"}), user)
    if not filters.is_valid():
        return []
    places = newest_found(filters, user, size=MOST).places
    if places:
        more.append(way)
    return places


def _state_of(row: DeadLetter, places: Mapping[tuple[str, str], tuple[str, Any]]) -> MessageState:
    """An older one was replayed though its message died again."""
    place = places.get((row.setting_key, row.message_key))
    recovered = place is not None and place[0] == MessageState.RECOVERED.value
    if row.state == LetterState.GIVEN_BACK and recovered and not row.message_key_weak:
        return MessageState.RECOVERED
    return MessageState(word_of(row.queue, row.state))


def _letter(row: DeadLetter, is_exact: bool) -> Hit:
    words = (row.setting_key, row.exception_type, _exactly(is_exact))
    return Hit(_("Message %(n)s") % {"n": row.pk}, link("letter", row.pk), _joined(words))


# -- failures, and what recovered ----------------------------------------------------------------------------


def _add_failures(sections: Mapping[MessageState, Section], others: Section, text: str, user: Any) -> None:
    exact, by_text = ways_of(text)
    found_by: dict[Any, tuple[FailureProtocol, bool]] = {}
    more: list[Way] = []
    for way in exact:
        found_by |= {row.pk: (row, True) for row in _failures(way, user, more)}
    for way in by_text:
        if some := _failures(way, user, more):
            found_by = {row.pk: (row, False) for row in some} | found_by
            break
    hits = sorted(found_by.values(), key=lambda each: (not each[1], -each[0].occurred_at.timestamp()))
    states = message_states(row for row, _exact in hits)
    url = f"{link('protocols')}?{urlencode(more[0])}" if more else ""
    seen = set()
    for row, is_exact in hits:
        case = row.setting_key, row.message_key
        state = None if row.message_key_weak else states.get(case)
        section = sections[state] if state is not None else others
        if (state is not None and case in seen) or section.failures == MOST:
            continue  # a message fails often; its newest failure leads to the others
        section.failures += 1
        seen.add(case)
        section.hits.append(_failure(row, is_exact))
        if (_("All failures"), url) not in section.more:
            section.more.append((_("All failures"), url))
    _add_recovered(sections[MessageState.RECOVERED], text, seen)


def _failures(way: Way, user: Any, more: list[Way]) -> Sequence[FailureProtocol]:
    filters = ProtocolFilter(way, user=user)
    if filters.problem:
        return []
    places = newest(filters.asked, LOOKED_AT)[0].places
    if places:
        more.append(way)
    return protocols_at(places)


def _failure(row: FailureProtocol, is_exact: bool) -> Hit:
    words = (f"{row.setting_key} · {row.server_name}", _exactly(is_exact))
    return Hit(
        _("Failure: %(type)s") % {"type": row.exception_type}, link("protocol", row.pk), _joined(words)
    )


def _add_recovered(section: Section, text: str, seen: Iterable[tuple[str, str]]) -> None:
    """Those of which no failure is left."""
    known = set(seen)
    for row in RecoveredMessage.objects.filter(message_key=text).order_by()[:MOST]:
        if (case := (row.setting_key, row.message_key)) not in known:
            known.add(case)
            key = FailureProtocol(setting_key=case[0], message_key=case[1])
            section.hits.append(Hit(row.message_key, case_url(key), row.setting_key))


def _exactly(is_exact: bool) -> Text:
    return _("exact value") if is_exact else ""


def _joined(words: Iterable[Text]) -> str:
    return " · ".join(str(word) for word in words if word)


LONGEST = 200


@require_safe
def search(request: HttpRequest) -> HttpResponseBase:
    """Goes straight to what the text is the name or the id of; else lists what it occurs in."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    if text and (exact := _named(text, request.user)):
        return HttpResponseRedirect(exact)
    with quick():
        sections = [each for each in _sections(text, request.user) if each.hits] if text else []
    return page(
        request,
        "ma_site/search.html",
        title=_("Search"),
        section="search",
        text=text,
        sections=sections,
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
    yield from by_state(text, user)
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
