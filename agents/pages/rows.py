"""Rows that several pages show, read in few queries."""

from collections.abc import Iterable

from agents.models import Activation, BreakerTrip, GroupMember, Schedule
from agents.models.activation import OPEN_ACTIVATIONS
from agents.pages.shown import Facts
from agents.services.withholding import withheld_runs


def facts_of(settings: Iterable[int]) -> dict[int, Facts]:
    """Whether each was started, was switched off by its breaker, is in a group, has a schedule, is withheld.

    Five queries."""
    wanted = list(settings)
    started = Activation.objects.filter(setting__in=wanted, state__in=OPEN_ACTIVATIONS)
    trips = list(BreakerTrip.objects.filter(ended_at=None).values_list("setting", "group"))
    tripped, groups = {setting for setting, _group in trips}, {group for _setting, group in trips if group}
    running = set(started.order_by().values_list("setting", flat=True))
    group_of = dict(GroupMember.objects.filter(setting__in=wanted).values_list("setting", "group"))
    timed = set(Schedule.objects.filter(setting__in=wanted).order_by().values_list("setting", flat=True))
    withheld = set(withheld_runs().order_by().values_list("activation__setting", flat=True))
    return {
        pk: Facts(
            pk in running,
            pk in tripped,
            pk in group_of,
            group_of.get(pk) in groups,
            pk in timed,
            pk in withheld,
        )
        for pk in wanted
    }
