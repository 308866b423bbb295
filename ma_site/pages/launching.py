"""What launch control has that needs a person: settings off by their breaker, groups whose last pass
failed."""

from datetime import datetime

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import BreakerTrip, GroupActivation, GroupActivationState
from agents.pages import trips
from agents.pages.group_pages import VIEW as SEE_GROUPS
from agents.pages.trip_words import trip_cause
from agents.services.rights import may
from console.ui.amounts import coarse
from console.ui.page import Text, link
from ma_site.pages.need import Need

MOST = 50


def of_trips(request: HttpRequest, now: datetime) -> list[Need]:
    if not request.user.has_perm(trips.VIEW):
        return []
    open_trips = BreakerTrip.objects.filter(ended_at=None, setting__enabled=False).select_related(
        "setting", "group"
    )
    return [
        _tripped(request, trip, now) for trip in open_trips.prefetch_related("interruptions__server")[:MOST]
    ]


def _tripped(request: HttpRequest, trip: BreakerTrip, now: datetime) -> Need:
    setting, why_url = trip.setting, link("trip", trip.pk)
    facts = {
        "time": coarse(now - setting.state_since),
        "cause": trip_cause(trip, list(trip.interruptions.all())),
    }
    why = _("off for %(time)s by its breaker: %(cause)s") % facts
    acts: list[tuple[Text, str]] = [(_("Why"), why_url)]
    if trip.group:
        why += " · " + _("its group %(group)s with it") % {"group": trip.group.name}
        acts.append((_("To the group"), link("group", trip.group.name)))
    elif may(request.user, "enable", setting):
        acts.append((_("Switch on…"), link("setting_enable", setting.key)))
    return Need("bad", "off", setting.key, why, link("setting", setting.key), acts)


def of_groups(request: HttpRequest, now: datetime) -> list[Need]:
    """Those whose newest pass has failed; a trip of a member is told by the trip."""
    if not request.user.has_perm(SEE_GROUPS):
        return []
    newest = GroupActivation.objects.filter(group=OuterRef("group")).order_by("-started_at").values("pk")[:1]
    failed = GroupActivation.objects.filter(state=GroupActivationState.FAILED, pk=Subquery(newest))
    off_by_trip = BreakerTrip.objects.filter(ended_at=None).exclude(group=None).values("group")
    failed = failed.exclude(group__in=off_by_trip).select_related("group")
    return [_failed(each, now) for each in failed.order_by("-ended_at")[:MOST]]


def _failed(failed: GroupActivation, now: datetime) -> Need:
    url = link("group", failed.group.name)
    why = _("its last pass failed %(time)s ago") % {
        "time": coarse(now - (failed.ended_at or failed.started_at))
    }
    if failed.reason:
        why += f": {failed.reason}"
    return Need("warn", "warn", failed.group.name, why, url, [(_("Look"), url)])
