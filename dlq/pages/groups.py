"""Dead letters in groups, the first look at those of a setting, or of all: what they died of, where and since
when."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pools.rights import settings_for
from console.operations.inputs import OPEN_ENDED
from console.ui.page import Text, link, page
from contract.names import dead_letter_queue
from dlq import rights
from dlq.annotations import why_not_annotate
from dlq.dead_letters.masks import masks_for
from dlq.groups.facts import GroupFacts, facts_of_groups, key_of
from dlq.groups.queries import Group, Groups, groups_of
from dlq.groups.rules import kind_named, narrowed
from dlq.pages.page_head import head_of_all, queue_head, sees_letters, single_letters, tabs
from dlq.search.visibility import dead_queues_for, sees_all
from failures.error_groups.known_errors import known_of
from failures.models import KnownError

PAGE = 25
# Settings of a group that are named; the others are counted.
NAMED = 4


@dataclass(frozen=True, slots=True)
class SettingInGroup:
    """The dead letters of a group that are of one setting."""

    key: str
    count: str
    url: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """`url` leads to its dead letters. `acts` are what can be done with all of it from here: icon, words and
    address; `may_annotate`: it is one fault of one setting, on which this person
    may write. `known`: what the
    book says of it."""

    group: Group
    facts: GroupFacts
    title: str
    url: str
    places: Sequence[SettingInGroup]
    others: int
    acts: Sequence[tuple[str, Text, str]]
    may_annotate: bool
    known: KnownError | None

    @property
    def key(self) -> str:
        return key_of(self.group.parts[0].queue)

    @property
    def by_fault(self) -> bool:
        return self.group.kind.name == "fingerprint"


@require_safe
@sees_letters
def all_groups(request: HttpRequest) -> HttpResponseBase:
    """Shows those of every setting that this person may see."""
    return _page(request, "", dead_queues_for(request.user), head_of_all())


@require_safe
@sees_letters
def groups_of_setting(request: HttpRequest, key: str) -> HttpResponseBase:
    head, queue = queue_head(request, key), dead_letter_queue(key)
    if queue not in dead_queues_for(request.user) and not sees_all(request.user):
        raise Http404  # the bin of others
    return _page(request, key, [queue], head)


def _page(request: HttpRequest, key: str, queues: Sequence[str], head: dict[str, Any]) -> HttpResponseBase:
    kind, start = kind_named(request.GET.get("by", "")), _start(request)
    some = narrowed(request.GET, request.user, queues, queue=dead_letter_queue(key) if key else "")
    groups = groups_of(kind, some.queues)
    more = f"&{some.query}" if some.query else ""
    shown, kinds = groups.found[start : start + PAGE], tabs(key, kind, some.query)
    return page(
        request,
        "dlq/groups.html",
        section="dead_letters" if key else "messages",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        key=key,
        kind=kind,
        tabs=kinds,
        faults=kinds[0][1],
        narrowed=some,
        single=single_letters(key) + (f"?{some.query}" if some.query else ""),
        rows=_rows(request, shown, key),
        told=_range_shown(groups, start, len(shown)),
        larger=f"by={kind.name}&start={max(0, start - PAGE)}{more}" if start else "",
        smaller=f"by={kind.name}&start={start + PAGE}{more}" if len(groups.found) > start + PAGE else "",
        back=request.get_full_path(),
        lasts=OPEN_ENDED,
        **head,
    )


def _start(request: HttpRequest) -> int:
    text = request.GET.get("start", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0


def _range_shown(groups: Groups, start: int, shown: int) -> str:
    if not shown:
        return ""
    where = {"first": start + 1, "last": start + shown, "n": len(groups.found)}
    if groups.more:
        return _("Groups %(first)s–%(last)s of %(n)s; smaller or older groups are not shown") % where
    return _("Groups %(first)s–%(last)s of %(n)s") % where


def _rows(request: HttpRequest, groups: Sequence[Group], key: str) -> list[GroupRow]:
    user: Any = request.user
    facts = facts_of_groups(groups, masks_for(user))
    named = {key_of(part.queue) for group in groups for part in group.parts}
    acts = _acts(user, named)
    gone = named - set(LaunchSetting.objects.filter(key__in=named).order_by().values_list("key", flat=True))
    # Of settings that are gone the permission decides, which is the same for all.
    annotatable = acts[rights.GIVE_BACK] | (gone if gone and not why_not_annotate(user, min(gone)) else set())
    known = known_of({group.value for group in groups if group.kind.name == "fingerprint" and group.value})
    return [
        _row(group, each, key, acts, annotatable, known.get(group.value))
        for group, each in zip(groups, facts, strict=True)
    ]


def _acts(user: Any, keys: Iterable[str]) -> dict[str, set[str]]:
    """Returns by right the settings whose dead letters this person may treat so."""
    found = {}
    for right in (rights.GIVE_BACK, rights.EDIT, rights.REDIRECT, rights.DISCARD):
        mine = settings_for(user, right)
        if right == rights.REDIRECT:
            mine = (mine | settings_for(user, rights.REDIRECT_ELSEWHERE)).exclude(destination=None)
        found[right] = set(mine.filter(key__in=keys).order_by().values_list("key", flat=True))
    return found


def _acts_on(key: str, acts: dict[str, set[str]], query: str) -> list[tuple[str, Text, str]]:
    words: list[tuple[str, str, Text, str]] = [
        (rights.GIVE_BACK, "back", _("Replay this group…"), "give_back"),
        (rights.EDIT, "edit", _("Edit by rule…"), "edit_letters"),
        (rights.REDIRECT, "back", _("Redirect…"), "redirect"),
        (rights.DISCARD, "trash", _("Discard…"), "discard"),
    ]
    return [
        (icon, text, f"{link(to, key)}?group=1&{query}")
        for right, icon, text, to in words
        if key in acts[right]
    ]


def _row(
    group: Group,
    facts: GroupFacts,
    key: str,
    acts: dict[str, set[str]],
    annotatable: set[str],
    known: KnownError | None,
) -> GroupRow:
    of = [
        SettingInGroup(
            key_of(part.queue), part.words, f"{link('dead_letters_of', key_of(part.queue))}?{group.query}"
        )
        for part in group.parts[:NAMED]
    ]
    one = of[0].key if len(group.parts) == 1 else ""
    return GroupRow(
        group=group,
        facts=facts,
        title=_title(group, facts),
        url=of[0].url if one else f"{link('all_dead_letters')}?{group.query}",
        places=[] if key else of,
        others=0 if key else max(0, len(group.parts) - NAMED),
        acts=_acts_on(one, acts, group.query) if one else [],
        known=known,
        may_annotate=bool(group.kind.name == "fingerprint" and group.value and one in annotatable),
    )


def _title(group: Group, facts: GroupFacts) -> str:
    if not group.value:
        return _("no failure protocol")
    if group.kind.name == "fingerprint":
        return facts.exception or str(group.value)
    return str(group.value)
