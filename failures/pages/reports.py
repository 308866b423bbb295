"""Describes what of a server's reports could not be stored as it came: refused, in conflict, never come, lost
here afterwards, with fields nobody understood."""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import Activation, Server
from console.ui.amounts import number
from console.ui.page import Panel, link
from failures.models import FailureProtocol, RecordConflict, RefusedRecord, SpoolMark
from failures.pages.protocols import VIEW

SHOWN = 5
LOST_SHOWN = timedelta(days=30)


def server_panel(request: HttpRequest, server: Server) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    refused = list(RefusedRecord.objects.filter(server=server).defer("content")[:SHOWN])
    conflicts = list(RecordConflict.objects.filter(server=server).defer("content")[:SHOWN])
    passed = list(SpoolMark.objects.filter(server=server, never_came__gt=0).order_by("-updated_at")[:SHOWN])
    lost = list(
        SpoolMark.objects.filter(server=server, lost_at__gt=timezone.now() - LOST_SHOWN).order_by("-lost_at")[
            :SHOWN
        ]
    )
    marks = SpoolMark.objects.filter(server=server, unknown_fields__gt=0)
    fields = marks.aggregate(all=Sum("unknown_fields"))["all"] or 0
    if not (refused or conflicts or passed or lost or fields):
        return None
    newest = marks.order_by("-updated_at").first()
    pages = _pages({conflict.stored_id for conflict in conflicts})
    context = {
        "refused": refused,
        "conflicts": [(conflict, pages.get(conflict.stored_id, "")) for conflict in conflicts],
        "passed": [(mark, ", ".join(_ranges(mark.gaps[::-1][:SHOWN]))) for mark in passed],
        "lost": [(mark, next(_ranges([(mark.lost_from or 0, mark.lost_to or 0)]))) for mark in lost],
        "fields": fields,
        "names": newest.unknown_names if newest is not None else [],
    }
    return {
        "title": _("Missing or invalid reports"),
        "template": "failures/reports.html",
        "context": context,
    }


def _pages(stored: Collection[UUID]) -> dict[UUID, str]:
    """Addresses of what a conflict is with: a protocol, or the activation whose run was closed; others have
    no page."""
    found: dict[UUID, str] = {}
    for name, rows in (("activation", Activation.objects.all()), ("protocol", FailureProtocol.objects.all())):
        found |= {
            pk: link(name, pk) for pk in rows.filter(pk__in=stored).order_by().values_list("pk", flat=True)
        }
    return found


def _ranges(gaps: Sequence[Sequence[int]]) -> Iterator[str]:
    for first, last in gaps:
        yield number(first) if first == last else f"{number(first)}..{number(last)}"
