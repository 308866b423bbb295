"""What of a server's reports could not be stored as it came: refused, in conflict, with fields nobody understood."""

from django.db.models import Sum
from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import Server
from agents.panels import Panel
from failures.models import RecordConflict, RefusedRecord, SpoolMark
from failures.pages.protocols import VIEW

SHOWN = 5


def server_panel(request: HttpRequest, server: Server) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    refused = list(RefusedRecord.objects.filter(server=server).defer("content")[:SHOWN])
    conflicts = list(RecordConflict.objects.filter(server=server).defer("content")[:SHOWN])
    marks = SpoolMark.objects.filter(server=server, unknown_fields__gt=0)
    fields = marks.aggregate(all=Sum("unknown_fields"))["all"] or 0
    if not (refused or conflicts or fields):
        return None
    newest = marks.order_by("-updated_at").first()
    context = {
        "refused": refused,
        "conflicts": conflicts,
        "fields": fields,
        "names": newest.unknown_names if newest is not None else [],
    }
    return {"title": _("Reports that were not as agreed"), "template": "failures/reports.html", "context": context}
