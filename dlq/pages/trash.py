"""The trash: what was discarded, by whom, why, of which setting, and when it is removed for good. Of one
setting dead letters can be put back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import django_tables2 as tables
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pools.rights import why_not
from agents.provisioning.queue_counts import message_count
from console.lists.keyset import BEFORE, PAGE, number_in, page_of
from console.templatetags.console import ago_tag
from console.ui.page import kept_tag, link, page
from console.ui.text import visible_html, visible_name
from dlq import rights
from dlq.dead_letters.masks import masks_for
from dlq.models import Action, DeadLetter, LetterState, ReplayJob
from dlq.models.content import with_heads
from dlq.models.dead_letter import BIN_QUEUE
from dlq.pages.dead_letters.dead_letter_list import TickedTable
from dlq.pages.page_head import sees_letters
from dlq.search.filter import LetterFilter
from dlq.search.newest import Newest, newest
from dlq.search.visibility import found, letters_for
from dlq.trash.queries import trash_entries
from dlq.trash.removal import expires_at

# Asked by the address of the page, or the same for all that lies here.
NOT_HERE = ("setting", "queue", "destination", "state", "muted")


@dataclass(frozen=True, slots=True)
class TrashRow:
    letter: DeadLetter
    job: ReplayJob | None
    expires: datetime
    body: str


class TrashTable(TickedTable):
    discarded = tables.Column(accessor="letter", verbose_name=gettext_lazy("In trash since"))
    setting = tables.Column(accessor="letter", verbose_name=gettext_lazy("Setting"))
    who = tables.Column(accessor="job", empty_values=(), verbose_name=gettext_lazy("User and reason"))
    cause = tables.Column(
        accessor="letter", verbose_name=gettext_lazy("Error"), attrs={"td": {"class": "wraps"}}
    )
    body = tables.Column(
        empty_values=(), verbose_name=gettext_lazy("Body"), attrs={"td": {"class": "head-of-body"}}
    )
    expires = tables.Column(verbose_name=gettext_lazy("Permanent deletion"))

    class Meta(TickedTable.Meta): ...

    def render_discarded(self, value: DeadLetter) -> SafeString:
        return format_html('<a href="{}">{}</a>', link("letter", value.pk), ago_tag(value.seen_at))

    def render_setting(self, value: DeadLetter) -> SafeString | str:
        if not value.setting_key:
            return "—"
        return format_html(
            '<a href="{}">{}</a>', link("bin_of", value.setting_key), visible_html(value.setting_key)
        )

    def render_who(self, value: ReplayJob | None) -> SafeString | str:
        if value is None:
            return _("unknown: not moved by this console")
        name = value.by.get_username() if value.by else _("unknown user")
        why = value.reason or (_("edited; the copy was replayed") if value.action == Action.EDIT else "")
        text = '<a href="{}">{}</a><br><span class="small quiet">{}</span>'
        return format_html(text, link("replay", value.pk), visible_html(name), visible_html(why, limit=200))

    def render_cause(self, value: DeadLetter) -> SafeString:
        words = visible_name(value.exception_type) if value.exception_type else _("no failure protocol")
        return format_html("{}{}", words, kept_tag(value.durable))

    def render_body(self, value: str) -> SafeString | str:
        return visible_html(value, limit=120) if value else "—"

    def render_expires(self, value: datetime) -> SafeString | str:
        return ago_tag(value)


@require_safe
@sees_letters
def trash_page(request: HttpRequest) -> HttpResponseBase:
    """Shows those of every setting that this person may see."""
    return _page(request, None, "")


@require_safe
@sees_letters
def trash_of_setting(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = LaunchSetting.objects.filter(key=key).select_related("pool").first()
    mine = letters_for(request.user).filter(queue=BIN_QUEUE, setting_key=key)
    # One that is gone may have left dead letters here; a setting of others is not there.
    if not mine.exists() and (setting is None or why_not(request.user, rights.SEE, setting)):
        raise Http404
    return _page(request, setting, key)


def _page(request: HttpRequest, setting: LaunchSetting | None, key: str) -> HttpResponseBase:
    filters, _rows = found(request.GET, request.user, queue=BIN_QUEUE, request=request)
    for name in NOT_HERE:
        filters.form.fields.pop(name, None)
    some = _newest(request, filters, key) if filters.is_valid() else Newest()
    rows = _rows_of(request, some.places)
    listed = page_of(request, rows, lambda row: row.letter.pk, stopped_at=some.stopped_at)
    query = LetterFilter.part_of(request.GET).urlencode()
    why = _("The setting was deleted.") if key and setting is None else ""
    return page(
        request,
        "dlq/trash.html",
        title=_("Trash"),
        section="trash",
        crumbs=[(_("Dead letters"), link("dead_letters")), *([(_("Trash"), link("bin"))] if key else [])],
        key=key,
        setting=setting,
        days=settings.MA_BIN_DAYS,
        exact=message_count(BIN_QUEUE) if not key else None,
        filters=filters,
        filtered=bool(query),
        problem=filters.problem,
        listed=listed,
        table=TrashTable(listed.rows, exclude=() if key else ("tick",)),
        total=some.words,
        count=some.count,
        stopped=some.stopped_at is not None,
        scope=f"match=1&{query}" if query else "all=1",
        why_not=why or (why_not(request.user, rights.DISCARD, setting) if setting else ""),
    )


def _newest(request: HttpRequest, filters: Any, key: str) -> Newest:
    rows = letters_for(request.user).filter(queue=BIN_QUEUE, state=LetterState.DEAD)
    rows = rows.filter(setting_key=key) if key else rows
    before = number_in(request.GET.get(BEFORE, ""))
    return newest(rows, filters.asked, before=before, size=PAGE + 1)


def _rows_of(request: HttpRequest, numbers: list[int]) -> list[TrashRow]:
    letters = with_heads(DeadLetter.objects.filter(pk__in=numbers)).order_by("-pk")
    masks = masks_for(request.user)
    rows = trash_entries(list(letters))
    return [
        TrashRow(each.letter, each.job, expires_at(each.letter), masks.head_of_body(each.letter))
        for each in rows
    ]
