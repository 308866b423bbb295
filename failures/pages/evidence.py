"""The evidence of a trip: the failures that counted, of each server that gave the setting up."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import BreakerTrip, Interruption
from console.ui.panels import Panel
from contract.messages import MAX_EVIDENCE
from failures.models import FailureProtocol
from failures.pages.protocols import VIEW

MOST_INTERRUPTIONS = 20
SHOWN = 25


@dataclass(frozen=True, slots=True)
class Evidence:
    """`gone`: protocols that were named and are not here (any more). `left_out`: of those that are here."""

    interruption: Interruption
    protocols: list[FailureProtocol]
    gone: int
    left_out: int


def trip_panel(request: HttpRequest, trip: BreakerTrip) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    interruptions = trip.interruptions.select_related("server").order_by("received_at")[:MOST_INTERRUPTIONS]
    rows = [_evidence(each) for each in interruptions if each.effective]
    return {"title": _("Evidence"), "template": "failures/evidence.html", "context": {"rows": rows}}


def _evidence(interruption: Interruption) -> Evidence:
    ids = _ids(interruption.evidence)
    found = (
        FailureProtocol.objects.filter(pk__in=ids)
        .defer("traceback", "properties")
        .order_by("occurred_at", "number")
    )
    protocols = list(found)
    return Evidence(
        interruption, protocols[-SHOWN:], len(ids) - len(protocols), max(0, len(protocols) - SHOWN)
    )


def _ids(stored: object) -> list[UUID]:
    """What is no id is no evidence."""
    ids = []
    for each in stored[:MAX_EVIDENCE] if isinstance(stored, list) else []:
        try:
            ids.append(UUID(str(each)))
        except ValueError:
            continue
    return ids
