"""What the pages of trips show: who has taken which."""

from collections.abc import Sequence

from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import BreakerTrip
from agents.services.rights import settings_for
from console.ui.panels import Panel
from dlq import rights
from dlq.models.remark import open_takings
from dlq.pages.remarks import WHOLE, Choice, RemarkPanel
from dlq.remarks.operations import may_read, why_not_remark


def trip_panel(request: HttpRequest, trip: BreakerTrip) -> Panel | None:
    """Only while it is open: nobody takes what is over."""
    key = trip.setting.key
    taken = open_takings().filter(trip=trip.pk).first()
    if not may_read(request.user, key) or (trip.ended_at and not taken):
        return None
    panel = RemarkPanel(
        about={"setting": key},
        choices=[] if taken else [Choice(WHOLE, "")],
        notes=[],
        faults=[],
        takings=[taken] if taken else [],
        refusal=why_not_remark(request.user, key),
        back=request.get_full_path(),
        lasts=[],
        trip=trip.pk,
    )
    return {"title": str(_("Who works on it")), "template": "dlq/remarks.html", "context": {"remarks": panel}}


def takers_of_trips(request: HttpRequest, trips: Sequence[BreakerTrip]) -> dict[int, str]:
    """In two queries, of the settings whose letters this person may see."""
    taken = open_takings().filter(trip__in=[trip.pk for trip in trips])
    seen = settings_for(request.user, rights.SEE).order_by().values("key")
    return {
        trip: name for trip, name in taken.filter(setting_key__in=seen).values_list("trip", "by_name") if trip
    }
