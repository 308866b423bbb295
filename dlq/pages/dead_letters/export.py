"""A list of dead letters as a file: what its filter finds, streamed, masked for who asks."""

from typing import Any

from django.contrib import messages
from django.http import (
    Http404,
    HttpRequest,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
    StreamingHttpResponse,
)
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from console.audit.log import attempt
from console.exports import FORMATS, begin_of, file_response
from console.operations.refusals import Refused
from console.ui.page import link
from contract.names import dead_letter_queue
from dlq import exports
from dlq.dead_letters.masks import masks_for
from dlq.exports import EXPORT, audit_target, checked_count, stream_of
from dlq.pages.page_head import check_queue, sees_letters
from dlq.search.filter import LetterFilter
from dlq.search.visibility import found

# Parameters of the address that are of the file, not of the filter.
FILE, BODIES = "file", "bodies"


@require_GET
@sees_letters
def export_page(request: HttpRequest, key: str = "") -> HttpResponseBase:
    """`file=csv|jsonl`, `bodies=1`, and the filter of the list. `key`: of this setting (or bin, unknown)
    alone."""
    form, bodies = request.GET.get(FILE, "csv"), request.GET.get(BODIES) == "1"
    if form not in FORMATS:
        raise Http404
    queue = dead_letter_queue(key) if key else ""
    if queue:
        check_queue(request.user, queue)
    query = filter_in(request.GET)
    back = link("dead_letters_of", key) if key else link("all_dead_letters")
    try:
        return export_response(request.user, key=key, query=query, form=form, bodies=bodies)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return HttpResponseRedirect(back + (f"?{query}" if query else ""))


def export_response(user: Any, *, key: str, query: str, form: str, bodies: bool) -> StreamingHttpResponse:
    """Raises Refused, also for a filter that is not understood: nothing would be found by it."""
    queue = dead_letter_queue(key) if key else ""
    filters, letters = found(query, user, queue=queue)
    about = {"key": key, "file": form, "bodies": bodies, "query": query}
    with attempt(EXPORT, by=user, target=audit_target(key), setting_key=key):
        if not filters.is_valid():
            text = _("Nothing was selected: the filter is invalid. Correct the filter and try again.")
            raise Refused("bad_filter", f"{text} {filters.problem}")
        about["count"] = checked_count(letters.filter(queue=queue) if queue else letters, bodies=bodies)
        rows = exports.rows(exports.of_filter(filters, user), masks_for(user), bodies=bodies)
        stream = stream_of(exports.lines(rows, form), by=user, about=about, begin=begin_of(form))
    return file_response(stream, form, f"dead-letters-{key or 'all'}")


def filter_in(query: QueryDict) -> str:
    kept = query.copy()
    for name in (FILE, BODIES):
        kept.pop(name, None)
    return LetterFilter.part_of(kept).urlencode()
