"""A list of protocols as a file: what its filter finds, streamed."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.views.decorators.http import require_GET

from console.exports import FORMATS, file_response
from console.operations.refusals import Refused
from console.ui.page import link, needs
from failures.exporting import stream_of
from failures.finding.filters import ProtocolFilter
from failures.pages.protocols import EXPORT, VIEW


@require_GET
@needs(VIEW, EXPORT)
def export_page(request: HttpRequest) -> HttpResponseBase:
    """`file=csv|jsonl`, and the filter of the list."""
    form = request.GET.get("file", "csv")
    if form not in FORMATS:
        raise Http404
    query = ProtocolFilter.part_of(request.GET)
    try:
        return file_response(stream_of(ProtocolFilter(query), form, request.user), form, "protocols")
    except Refused as refused:
        messages.error(request, refused.sentence)
        return HttpResponseRedirect(link("protocols") + (f"?{query.urlencode()}" if query else ""))
