"""Dead letters in groups, the first look at those of a setting, or of all: what they died of, where and since when."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pages.asking import EXPIRY_LABELS
from agents.pages.consoles import Text, link, page
from agents.services.rights import settings_for
from contract.properties import dead_letter_queue
from dlq import rights
from dlq.groups import KINDS, Facts, Group, Groups, Kind, facts_of, groups_of, kind_named
from dlq.groups.facts import key_of
from dlq.letters_for import dead_queues_for, sees_all
from dlq.masks import masks_for
from dlq.pages.access import sees_letters
from dlq.pages.letter_head import head_of, head_of_all
from dlq.remarks.about import may_remark

PAGE = 25
# Settings of a group that are named; the others are counted.
NAMED = 4


@dataclass(frozen=True, slots=True)
class Place:
    """The letters of a group that are of one setting."""

    key: str
    count: str
    url: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """`url` leads to its letters. `back` is empty where it cannot be given back from here; `may_remark`: it is one
    fault of one setting, on which this person may remark."""

    group: Group
    facts: Facts
    title: str
    url: str
    places: Sequence[Place]
    others: int
    back: str
    may_remark: bool

    @property
    def key(self) -> str:
        return key_of(self.group.parts[0].queue)

    @property
    def by_fault(self) -> bool:
        return self.group.kind.name == "fingerprint"


@require_safe
@sees_letters
def all_groups(request: HttpRequest) -> HttpResponseBase:
    """Of every setting that this person may see."""
    return _page(request, "", dead_queues_for(request.user), head_of_all())


@require_safe
@sees_letters
def groups_of_setting(request: HttpRequest, key: str) -> HttpResponseBase:
    head, queue = head_of(request, key), dead_letter_queue(key)
    if queue not in dead_queues_for(request.user) and not sees_all(request.user):
        raise Http404  # the bin of others
    return _page(request, key, [queue], head)


def _page(request: HttpRequest, key: str, queues: Sequence[str], head: dict[str, Any]) -> HttpResponseBase:
    kind, start = kind_named(request.GET.get("by", "")), _start(request)
    groups = groups_of(kind, queues)
    shown = groups.found[start : start + PAGE]
    return page(
        request,
        "dlq/groups.html",
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        key=key,
        kind=kind,
        tabs=tabs(key, kind),
        rows=_rows(request, shown, key),
        told=_told(groups, start, len(shown)),
        larger=f"by={kind.name}&start={max(0, start - PAGE)}" if start else "",
        smaller=f"by={kind.name}&start={start + PAGE}" if len(groups.found) > start + PAGE else "",
        back=request.get_full_path(),
        lasts=EXPIRY_LABELS,
        **head,
    )


def tabs(key: str, here: Kind | None) -> list[tuple[Text, str, bool]]:
    """Label, address and whether it is this page; without a kind it is the list of single letters."""
    of_key = [key] if key else []
    groups, single = ("letter_groups", "dead_letters_of") if key else ("all_letter_groups", "all_dead_letters")
    found: list[tuple[Text, str, bool]] = [
        (kind.label, f"{link(groups, *of_key)}?by={kind.name}", kind is here) for kind in KINDS.values()
    ]
    return [*found, (_("Single letters"), link(single, *of_key), here is None)]


def _start(request: HttpRequest) -> int:
    text = request.GET.get("start", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0


def _told(groups: Groups, start: int, shown: int) -> str:
    if not shown:
        return ""
    where = {"first": start + 1, "last": start + shown, "n": len(groups.found)}
    if groups.more:
        return _("%(first)s–%(last)s of %(n)s groups; there are others, smaller or older ones") % where
    return _("%(first)s–%(last)s of %(n)s groups") % where


def _rows(request: HttpRequest, groups: Sequence[Group], key: str) -> list[GroupRow]:
    user: Any = request.user
    facts = facts_of(groups, masks_for(user))
    named = {key_of(part.queue) for group in groups for part in group.parts}
    mine = settings_for(user, rights.GIVE_BACK).filter(key__in=named).order_by()
    can_go = set(mine.values_list("key", flat=True))
    gone = named - set(LaunchSetting.objects.filter(key__in=named).order_by().values_list("key", flat=True))
    # Of settings that are gone the permission decides, which is the same for all.
    remarkable = can_go | (gone if gone and may_remark(user, min(gone)) else set())
    return [_row(group, each, key, can_go, remarkable) for group, each in zip(groups, facts, strict=True)]


def _row(group: Group, facts: Facts, key: str, can_go: set[str], remarkable: set[str]) -> GroupRow:
    of = [
        Place(key_of(part.queue), part.words, f"{link('dead_letters_of', key_of(part.queue))}?{group.query}")
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
        back=f"{link('give_back', one)}?group=1&{group.query}" if one in can_go else "",
        may_remark=bool(group.kind.name == "fingerprint" and group.value and one in remarkable),
    )


def _title(group: Group, facts: Facts) -> str:
    if not group.value:
        return _("no protocol known")
    if group.kind.name == "fingerprint":
        return facts.exception or str(group.value)
    return str(group.value)
