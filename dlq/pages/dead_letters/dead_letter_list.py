"""The dead letters of one setting: newest first, filtered, with a selection to give back."""

from dataclasses import dataclass
from typing import Any

import django_tables2 as tables
from django.db.models import Exists
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pools.rights import may
from console.lists.keyset import BEFORE, COUNTED, PAGE, Page, number_in, page_of
from console.templatetags.console import ago_tag, state
from console.ui import amounts
from console.ui.page import Text, kept_tag, link, page
from console.ui.text import visible_html, visible_name
from contract.names import dead_letter_queue
from dlq import rights
from dlq.dead_letters.masks import masks_for
from dlq.groups.rules import filter_query
from dlq.models import DeadLetter, LetterState
from dlq.models.annotation import fault_of_row
from dlq.models.content import with_heads
from dlq.pages.page_head import head_of_all, queue_head, sees_letters, tabs
from dlq.replay.text import letter_label
from dlq.saved_filters import bar_of
from dlq.search.filter import EVERY_STATE, LetterFilter
from dlq.search.newest import Newest
from dlq.search.rebuild import open_rebuild
from dlq.search.visibility import found, newest_found

# -- actions on a list beside replay: export, rule, import ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tools:
    """Addresses; empty: not offered. `edit` is of all that the list shows, `edit_chosen` of those that are
    ticked, and so on."""

    files: list[tuple[str, str, Text]]
    edit: str = ""
    edit_chosen: str = ""
    redirect: str = ""
    redirect_chosen: str = ""
    discard: str = ""
    discard_chosen: str = ""
    add: str = ""


def tools_of(user: object, key: str, setting: LaunchSetting | None, query: str, *, dead: bool) -> Tools:
    """`query` is the filter of the list as in an address, `dead`: it is one of dead letters."""
    base = link("export_letters", key) if key else link("export_letters")
    more = f"&{query}" if query else ""
    files: list[tuple[str, str, Text]] = [
        ("CSV", f"{base}?file=csv{more}", _("one row per record, for a spreadsheet")),
        ("JSON Lines", f"{base}?file=jsonl{more}", _("one object per record, without properties")),
        (
            _("JSON Lines with properties"),
            f"{base}?file=jsonl&bodies=1{more}",
            _("full messages with properties (can be imported again)"),
        ),
    ]
    if setting is None:
        return Tools(files)
    edits = dead and may(user, rights.EDIT, setting)
    moves = f"?match=1{more}" if query else "?all=1"
    right = rights.right_to_redirect(user, setting)
    redirects = dead and setting.destination_id is not None and may(user, right, setting)
    discards = dead and may(user, rights.DISCARD, setting)
    imports = setting.destination_id is not None and may(user, rights.IMPORT, setting)
    return Tools(
        files,
        edit=link("edit_letters", key) + moves if edits else "",
        edit_chosen=link("edit_letters", key) if edits else "",
        redirect=link("redirect", key) + moves if redirects else "",
        redirect_chosen=link("redirect", key) if redirects else "",
        discard=link("discard", key) + moves if discards else "",
        discard_chosen=link("discard", key) if discards else "",
        add=link("import_letters", key) if imports else "",
    )


# Numbers that are hidden where there is little room.
LESS = {"td": {"class": "num less"}, "th": {"class": "num less"}}
REPLAYS_HELP = gettext_lazy("How many times this message was replayed")


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    letter: DeadLetter
    body: str


class TickedTable(tables.Table):
    """Rows of dead letters, each with a box to choose it."""

    tick = tables.Column(
        accessor="letter", verbose_name="", attrs={"td": {"class": "tick"}, "th": {"class": "tick"}}
    )

    class Meta:
        template_name = "ma/table.html"
        orderable = False
        attrs = {"class": "grid"}

    def render_tick(self, value: DeadLetter) -> SafeString | str:
        if value.state != LetterState.DEAD:
            return ""
        label = _("Select message %(n)s") % {"n": value.pk}
        return format_html(
            '<input type="checkbox" name="letter" value="{}" aria-label="{}">', value.pk, label
        )


class LetterTable(TickedTable):
    seen = tables.Column(accessor="letter", verbose_name=gettext_lazy("In DLQ since"))
    setting = tables.Column(
        accessor="letter__setting_key", verbose_name=gettext_lazy("Setting"), empty_values=()
    )
    cause = tables.Column(
        accessor="letter", verbose_name=gettext_lazy("Error"), attrs={"td": {"class": "wraps"}}
    )
    body = tables.Column(
        accessor="body",
        empty_values=(),
        verbose_name=gettext_lazy("Body"),
        attrs={"td": {"class": "head-of-body"}},
    )
    attempts = tables.Column(
        accessor="letter__delivery_count", verbose_name=gettext_lazy("Attempts"), attrs=LESS
    )
    replays = tables.Column(
        accessor="letter__times_replayed",
        verbose_name=gettext_lazy("Replays"),
        attrs={"td": LESS["td"], "th": {**LESS["th"], "title": REPLAYS_HELP}},
    )
    state = tables.Column(accessor="letter", verbose_name=gettext_lazy("State"))

    class Meta(TickedTable.Meta): ...

    def render_seen(self, value: DeadLetter) -> SafeString:
        return format_html('<a href="{}">{}</a>', link("letter", value.pk), ago_tag(value.seen_at))

    def render_setting(self, value: str, record: DeadLetterRow) -> SafeString | str:
        key = value or record.letter.queue.removeprefix("DLQ.")
        return format_html('<a href="{}">{}</a>', link("dead_letters_of", key), visible_html(key))

    def render_cause(self, value: DeadLetter) -> SafeString:
        words = visible_name(value.exception_type) if value.exception_type else _("no failure protocol")
        kept = kept_tag(value.durable)
        muted = (
            format_html(' <span class="tag">{}</span>', _("known"))
            if getattr(value, "is_muted", False)
            else ""
        )
        return format_html('<a href="{}"><b>{}</b></a>{}{}', link("letter", value.pk), words, kept, muted)

    def render_body(self, value: str, record: DeadLetterRow) -> SafeString | str:
        if record.letter.problem:
            return format_html(
                '<span class="bad-text">{}</span>', visible_html(record.letter.problem, limit=80)
            )
        if record.letter.body_deleted_at:
            return format_html(
                '<span class="quiet">{} {}</span>', _("deleted"), ago_tag(record.letter.body_deleted_at)
            )
        return visible_html(value, limit=200) if value else "—"

    def render_attempts(self, value: int) -> str:
        return amounts.number(value)

    def render_replays(self, value: int) -> str:
        """Returns what the filter `replays_from` means by it."""
        return amounts.number(value)

    def render_state(self, value: DeadLetter) -> SafeString:
        return state(letter_label(value), pill=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """Holds what the buttons on top of a list act on: what matches the filter, or (`every`) all of the
    setting. `query` says it in their addresses."""

    every: bool
    count: str
    going: int
    query: str
    url: str


def _offer(setting: LaunchSetting, query: str, listed: Newest) -> Offer:
    words = f"match=1&{query}" if query else "all=1"
    return Offer(not query, listed.words, listed.count, words, f"{link('give_back', setting.key)}?{words}")


@require_safe
@sees_letters
def all_letters(request: HttpRequest) -> HttpResponseBase:
    """Shows those of every setting that this person may see."""
    return _page(request, "", head_of_all(), _listed(request))


@require_safe
@sees_letters
def letter_list(request: HttpRequest, key: str) -> HttpResponseBase:
    head = queue_head(request, key)
    return _page(request, key, head, _listed(request, dead_letter_queue(key)))


def _page(request: HttpRequest, key: str, head: dict[str, Any], listed: "Listed") -> HttpResponseBase:
    setting: LaunchSetting | None = head["setting"]
    offered = setting is not None and listed.is_of_dead and listed.filters.is_valid()
    return page(
        request,
        "dlq/dead_letters.html",
        section="dead_letters" if key else "messages",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        key=key,
        tabs=tabs(key, None, listed.query),
        offer=_offer(setting, listed.query, listed.found) if setting and offered else None,
        tools=tools_of(
            request.user, key, setting, listed.query, dead=listed.is_of_dead and listed.filters.is_valid()
        ),
        **head,
        **listed.context,
        **bar_of(request, key, listed.query),
    )


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list. `query` is the filter that it shows, as of an address."""

    filters: LetterFilter
    found: Newest
    page: Page
    query: str
    elsewhere: "Elsewhere | None" = None

    @property
    def is_of_dead(self) -> bool:
        return bool(self.filters.data.get("state") == LetterState.DEAD)

    @property
    def by_words(self) -> bool:
        return any(condition.wanted for condition in self.filters.asked.conditions)

    @property
    def context(self) -> dict[str, Any]:
        return {
            "filters": self.filters,
            "problem": self.filters.problem,
            "filtered": bool(self.query),
            "filter_query": self.query,
            # One setting: said above. Several: nothing can be done with a selection of them.
            "table": LetterTable(
                self.page.rows, exclude=("setting",) if self.filters.of_queue else ("tick",)
            ),
            "listed": self.page,
            "total": self.found.words,
            "stopped": self.found.stopped_at is not None,
            "words_missing": self.by_words and words_missing(),
            "elsewhere": self.elsewhere,
        }


def words_missing() -> bool:
    """Returns whether there may be dead letters whose words are not in the index yet."""
    return open_rebuild() is not None or DeadLetter.objects.filter(words_without="").exists()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What an empty list would show in any state. `count`: as people read it, exact while it is `exact`;
    empty: not all was looked through, and nothing was found so far."""

    count: str
    number: int
    exact: bool
    url: str


def _elsewhere(request: HttpRequest, queue: str) -> Elsewhere | None:
    """Asks in bounded time; None: there is nothing in any state."""
    data = request.GET.copy()
    data["state"] = EVERY_STATE
    filters, _rows = found(data, request.user, queue=queue)
    if not filters.is_valid():
        return None
    some = newest_found(filters, request.user, size=1)
    if not some.count and not some.more:
        return None
    counted = min(some.count, COUNTED)
    words = amounts.number(counted) if counted else ""
    return Elsewhere(words, counted, not some.more, f"?{data.urlencode()}")


def _listed(request: HttpRequest, queue: str = "") -> Listed:
    filters, _rows = found(request.GET, request.user, queue=queue, request=request)
    before = number_in(request.GET.get(BEFORE, ""))
    some = (
        newest_found(filters, request.user, before=before, size=PAGE + 1) if filters.is_valid() else Newest()
    )
    rows = _rows_of(request, some.places)
    shown = page_of(request, rows, lambda row: row.letter.pk, stopped_at=some.stopped_at)
    own = filter_query(request.GET)
    query = own if QueryDict(own).dict() != {"state": "dead"} else ""
    none = not rows and before is None and filters.is_valid()
    narrowed = none and filters.data.get("state") != EVERY_STATE
    return Listed(filters, some, shown, query, _elsewhere(request, queue) if narrowed else None)


def _rows_of(request: HttpRequest, numbers: list[int]) -> list[DeadLetterRow]:
    muted = Exists(fault_of_row(timezone.now()))
    light = with_heads(DeadLetter.objects.filter(pk__in=numbers))
    letters = {letter.pk: letter for letter in light.annotate(is_muted=muted)}
    masks = masks_for(request.user)
    there = [letters[number] for number in numbers if number in letters]
    return [DeadLetterRow(letter, masks.head_of_body(letter)) for letter in there]
