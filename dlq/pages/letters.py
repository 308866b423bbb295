"""The dead letters of one setting: newest first, filtered, with a selection to give back."""

from collections.abc import Iterable
from dataclasses import dataclass

import django_filters
import django_tables2 as tables
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pages import amounts
from agents.pages.consoles import link, needs, page
from agents.pages.figures import figures_of, message_count
from agents.pages.lists import BEFORE, COUNTED, PAGE, Page, SpanFilter, counted, page_of
from agents.pages.visible import visible
from agents.templatetags.console import ago, state
from contract.properties import UNKNOWN, dead_letter_queue
from dlq.masks import masks_for
from dlq.models import DeadLetter, LetterState, ReplayItem
from dlq.pages.shown import LETTERS
from dlq.replay.jobs import LARGEST_SELECTION, replayable

VIEW = "dlq.view_deadletter"
GIVE_BACK = "dlq.give_back"
EVERY_STATE = "every"
# Numbers that are hidden where there is little room.
LESS = {"td": {"class": "num less"}, "th": {"class": "num less"}}
STATES = [*LetterState.choices, (EVERY_STATE, gettext_lazy("every state"))]


class LetterFilter(django_filters.FilterSet):
    exception = django_filters.CharFilter(
        field_name="exception_type", lookup_expr="icontains", label=gettext_lazy("Exception contains"), max_length=255
    )
    body = django_filters.CharFilter(
        field_name="body_text", label=gettext_lazy("Body contains"), max_length=200, method="in_body"
    )
    span = SpanFilter(field_name="seen_at")
    state = django_filters.ChoiceFilter(
        choices=STATES, label=gettext_lazy("State"), empty_label=None, method="of_state", initial=LetterState.DEAD
    )
    fingerprint = django_filters.CharFilter(label=gettext_lazy("Fingerprint"), max_length=64)
    quiet = ("fingerprint",)

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def of_state(self, rows: QuerySet[DeadLetter], name: str, value: str) -> QuerySet[DeadLetter]:
        return rows if value == EVERY_STATE else rows.filter(state=value)

    def in_body(self, rows: QuerySet[DeadLetter], name: str, value: str) -> QuerySet[DeadLetter]:
        """Not in the bytes of what is no message where something is masked: guess by guess they would be told."""
        readable = rows.exclude(body_kind="") if masks_for(self.request.user).any else rows
        return readable.filter(body_text__icontains=value)


@dataclass(frozen=True, slots=True)
class Row:
    letter: DeadLetter
    replays: int
    body: str


class LetterTable(tables.Table):
    tick = tables.Column(accessor="letter", verbose_name="", attrs={"td": {"class": "tick"}, "th": {"class": "tick"}})
    seen = tables.Column(accessor="letter", verbose_name=gettext_lazy("Dead since"))
    cause = tables.Column(accessor="letter", verbose_name=gettext_lazy("Died of"), attrs={"td": {"class": "wraps"}})
    body = tables.Column(
        accessor="body", empty_values=(), verbose_name=gettext_lazy("Body"), attrs={"td": {"class": "head-of-body"}}
    )
    attempts = tables.Column(accessor="letter__delivery_count", verbose_name=gettext_lazy("Attempts"), attrs=LESS)
    replays = tables.Column(verbose_name=gettext_lazy("Replays"), attrs=LESS)
    state = tables.Column(accessor="letter", verbose_name=gettext_lazy("State"))

    class Meta:
        template_name = "ma/table.html"
        orderable = False
        attrs = {"class": "grid"}

    def render_tick(self, value: DeadLetter) -> SafeString | str:
        if value.state != LetterState.DEAD:
            return ""
        label = _("Select letter %(n)s") % {"n": value.pk}
        return format_html('<input type="checkbox" name="letter" value="{}" aria-label="{}">', value.pk, label)

    def render_seen(self, value: DeadLetter) -> SafeString:
        return format_html('<a href="{}">{}</a>', link("letter", value.pk), ago(value.seen_at))

    def render_cause(self, value: DeadLetter) -> SafeString:
        words = visible(value.exception_type) if value.exception_type else _("no protocol")
        kept = "" if value.durable else format_html(' <span class="tag">{}</span>', _("not durable"))
        return format_html('<a href="{}"><b>{}</b></a>{}', link("letter", value.pk), words, kept)

    def render_body(self, value: str, record: Row) -> SafeString | str:
        if record.letter.problem:
            return format_html('<span class="bad-text">{}</span>', visible(record.letter.problem, limit=80))
        return visible(value, limit=200) if value else "—"

    def render_attempts(self, value: int) -> str:
        return amounts.number(value)

    def render_replays(self, value: int) -> str:
        return amounts.number(value)

    def render_state(self, value: DeadLetter) -> SafeString:
        return state(LETTERS[value.state], pill=False)


def asked_for(request: HttpRequest, rows: QuerySet[DeadLetter], query: QueryDict | None = None) -> LetterFilter:
    """The filter of a query string; without a state it asks for what is dead."""
    asked = (request.GET if query is None else query).copy()
    asked.setdefault("state", LetterState.DEAD.value)
    return LetterFilter(asked, rows, request=request)


def filter_words(filters: LetterFilter) -> list[tuple[str, str]]:
    """Label and value of each filter that is set, as people read them."""
    words = []
    for name, value in filters.form.cleaned_data.items():
        field = filters.form.fields[name]
        if value and value != LetterState.DEAD:
            chosen = dict(getattr(field, "choices", ())).get(value, value)
            words.append((str(field.label), str(chosen)))
    return words


def filter_query(query: QueryDict) -> str:
    """What of a query string is a filter, to be carried on."""
    kept = query.copy()
    for name in [name for name in kept if name not in LetterFilter.base_filters]:
        del kept[name]
    return kept.urlencode()


@dataclass(frozen=True, slots=True)
class Offer:
    """What the button on top of a list gives back: what matches the filter, or (`every`) all of the setting."""

    every: bool
    count: str
    going: int
    url: str

    @property
    def too_many(self) -> bool:
        return not self.every and self.going > LARGEST_SELECTION


def _offer(request: HttpRequest, setting: LaunchSetting, every: bool) -> Offer:
    possible = replayable(setting)
    if not every:
        possible = asked_for(request, possible).qs
    going = possible.order_by()[: COUNTED + 1].count()
    query = "all=1" if every else f"match=1&{filter_query(request.GET)}"
    return Offer(every, counted(possible), going, f"{link('give_back', setting.key)}?{query}")


@require_safe
@needs(VIEW)
def letter_list(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = LaunchSetting.objects.filter(key=key).select_related("destination").first()
    queue = dead_letter_queue(key)
    rows = DeadLetter.objects.filter(queue=queue)
    if setting is None and key != UNKNOWN and not rows.exists():
        raise Http404
    filters = asked_for(request, rows)
    found = filters.qs
    filtered = _is_filtered(request, filters.filters)
    listed = _page(request, found)
    exact = figures_of(setting) if setting else None
    return page(
        request,
        "dlq/letters.html",
        title=queue,
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        key=key,
        setting=setting,
        figures=exact,
        exact=exact.dead if exact else message_count(queue),
        indexed=counted(rows.filter(state=LetterState.DEAD)),
        filters=filters,
        filtered=filtered,
        offer=_offer(request, setting, every=not filtered) if setting else None,
        largest=LARGEST_SELECTION,
        table=LetterTable(listed.rows),
        listed=listed,
        total=counted(found),
        may_give_back=request.user.has_perm(GIVE_BACK) and setting is not None,
    )


def _is_filtered(request: HttpRequest, names: Iterable[str]) -> bool:
    known = set(names)
    return any(value for name, value in request.GET.items() if name in known and value != LetterState.DEAD)


def _page(request: HttpRequest, rows: QuerySet[DeadLetter]) -> Page:
    before = request.GET.get(BEFORE, "")
    if before.isdigit() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    light = list(rows.defer("encoded", "properties", "annotations").order_by("-pk")[: PAGE + 1])
    # A query of its own: joined, SQLite would group the whole table before it takes a page of it.
    given = ReplayItem.objects.filter(letter__in=[letter.pk for letter in light]).order_by().values_list("letter")
    counts = dict(given.annotate(Count("pk")))
    masks = masks_for(request.user)
    listed = [Row(letter, counts.get(letter.pk, 0), masks.head_of_body(letter)) for letter in light]
    return page_of(request, listed, lambda row: str(row.letter.pk))
