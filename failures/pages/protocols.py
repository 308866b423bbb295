"""The list of protocols: newest first, filtered by what they speak of; and what came since it was shown."""

from datetime import datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_safe

from console.database.statements import estimated_rows
from console.exports import FORMATS, file_response
from console.lists.keyset import BEFORE, PAGE, Page, Place, place_in
from console.operations.refusals import Refused
from console.ui.amounts import about, number
from console.ui.page import Text, link, needs, page
from failures.models import FailureProtocol
from failures.pages.protocol_table import ProtocolTable, heading_of
from failures.protocols import properties
from failures.protocols.exporting import stream_of
from failures.protocols.filter import ProtocolFilter, Query
from failures.protocols.search import (
    HIGHEST,
    LOWEST,
    Count,
    ProtocolPage,
    count,
    listed,
    older_than,
    protocols_at,
)
from failures.saved_filters import pages

VIEW = "failures.view_failureprotocol"
EXPORT = "failures.can_export_protocols"
AFTER, TOP, SHOWN = "after", "top", "shown"
# What came since a page was made is counted up to here.
MOST_NEW = 999


@require_safe
@needs(VIEW)
def protocol_list(request: HttpRequest) -> HttpResponseBase:
    filters = ProtocolFilter(request.GET, user=request.user)
    query = ProtocolFilter.part_of(request.GET)
    problem = filters.problem
    before, after = (place_in(request.GET.get(name, ""), FailureProtocol) for name in (BEFORE, AFTER))
    part, counted = ProtocolPage(()), Count(0)
    if not problem:
        part, counted = listed(filters.asked, before=before, after=after, size=PAGE)
    shown_at = timezone.now()
    shown = _page(query, part)
    return page(
        request,
        "failures/protocols.html",
        title=_("Failures"),
        section="protocols",
        heading=heading_of({} if problem else filters.form.cleaned_data, shown.rows),
        filters=filters,
        filtered=bool(query),
        problem=problem,
        table=ProtocolTable(shown.rows),
        listed=shown,
        stopped_at=part.stopped_at,
        indexed=_indexed(filters.asked),
        total="" if problem else _total(counted, filters.asked),
        news_url=""
        if problem or part.newer
        else _news_url(query, _top(filters.asked, part, shown_at), shown_at),
        **pages.bar(request, query),
        files=_files(query) if request.user.has_perm(EXPORT) else [],
        newest_url=f"{request.path}?{query.urlencode()}" if query else request.path,
    )


@require_safe
@needs(VIEW)
def protocol_news(request: HttpRequest) -> HttpResponseBase:
    """Returns how many of the filter are newer than `top`, in words, empty for none: 304 where that is what
    the asker knows. `shown`: when the asker saw the list."""
    filters = ProtocolFilter(request.GET, user=request.user)
    words = _news_words(Count(0) if filters.problem else _news(filters.asked, request.GET))
    response = HttpResponse(words, content_type="text/plain; charset=utf-8")
    response["ETag"] = etag = f'"{sha256(words.encode()).hexdigest()[:16]}"'
    return get_conditional_response(request, etag=etag, response=response) or response


def _news(asked: Query, query: QueryDict) -> Count:
    shown = place_in(f"{query.get(SHOWN, '')}_{LOWEST}", FailureProtocol)
    if shown is not None:
        asked = asked.came_after(shown.at)
    return count(asked, above=place_in(query.get(TOP, ""), FailureProtocol), most=MOST_NEW)


def _top(asked: Query, part: ProtocolPage, now: datetime) -> Place | None:
    """The newest that is shown, without those whose clocks are ahead: what comes in would lie below them."""
    there = next((place for place in part.places if place.at <= now), None)
    if there is not None or not part.places:
        return there
    return next(iter(older_than(asked, Place(now, HIGHEST), 1).places), None)


def _news_words(found: Count) -> str:
    if not found.count:
        return ""
    amount = number(found.count) + ("+" if found.more else "")
    return ngettext("%(n)s new · show", "%(n)s new · show", found.count) % {"n": amount}


def _news_url(query: QueryDict, top: Place | None, shown_at: datetime) -> str:
    asked = query.copy()
    asked[SHOWN] = shown_at.isoformat()
    if top is not None:
        asked[TOP] = str(top)
    return f"{link('protocol_news')}?{asked.urlencode()}"


def _total(counted: Count, asked: Query) -> str:
    """As far as they were counted; beyond `about 1,200,000` where the database estimates it."""
    if not counted.more:
        return number(counted.count)
    rows = FailureProtocol.objects.filter(asked.rest, asked.times)
    estimate = estimated_rows(rows) if counted.back_to is None else None
    if estimate is None or estimate <= counted.count:
        return f"{number(counted.count)}+"
    return about(estimate)


def _indexed(asked: Query) -> int | None:
    """Per cent of the protocols whose properties are in their index; None: all are, or none is asked for."""
    share = properties.share() if asked.properties else None
    return None if share is None else int(share * 100)


def _files(query: QueryDict) -> list[tuple[str, str, Text]]:
    more = f"&{query.urlencode()}" if query else ""
    base = link("export_protocols")
    return [
        ("CSV", f"{base}?file=csv{more}", _("one row per record, for a spreadsheet")),
        (
            "JSON lines",
            f"{base}?file=jsonl{more}",
            _("one object per failure, with traceback and properties"),
        ),
    ]


def _page(query: QueryDict, part: ProtocolPage) -> Page:
    def to(name: str, place: Place | None) -> str:
        asked = query.copy()
        asked[name] = str(place)
        return asked.urlencode() if place is not None else ""

    newest = (query.urlencode() or "page=newest") if part.newer is not None else ""
    return Page(protocols_at(part.places), to(BEFORE, part.older), newest, to(AFTER, part.newer))


def protocols_url(**wanted: Any) -> str:
    return f"{link('protocols')}?{urlencode({name: str(value) for name, value in wanted.items()})}"


# -- A list of protocols as a file: what its filter finds, streamed ------------------------------------------


@require_GET
@needs(VIEW, EXPORT)
def export_page(request: HttpRequest) -> HttpResponseBase:
    """`file=csv|jsonl`, and the filter of the list."""
    form = request.GET.get("file", "csv")
    if form not in FORMATS:
        raise Http404
    query = ProtocolFilter.part_of(request.GET)
    try:
        filters = ProtocolFilter(query, user=request.user)
        return file_response(stream_of(filters, form, request.user), form, "protocols")
    except Refused as refused:
        messages.error(request, refused.sentence)
        return HttpResponseRedirect(link("protocols") + (f"?{query.urlencode()}" if query else ""))
