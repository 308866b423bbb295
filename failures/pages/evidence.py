"""The evidence of a trip: the failures that counted, of each server that gave the setting up, equal ones in
one row; and where in the code most of them lie."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import BreakerTrip, Interruption
from console.ui.amounts import number
from console.ui.page import Panel
from contract.messages import MAX_EVIDENCE
from failures.models import FailureProtocol
from failures.pages.protocols import VIEW

MOST_INTERRUPTIONS = 20
# Of each row of equal failures, the latest.
SHOWN = 25


@dataclass(frozen=True, slots=True)
class EqualFailures:
    """Failures of one error group, oldest first; they were raised at one place. `left_out`: of `count`."""

    protocols: Sequence[FailureProtocol]
    count: int

    @property
    def latest(self) -> FailureProtocol:
        return self.protocols[-1]

    @property
    def left_out(self) -> int:
        return self.count - len(self.protocols)

    @property
    def attempts(self) -> str:
        """`attempts 1–2`, of those that are shown."""
        every = [protocol.attempt for protocol in self.protocols]
        first, last = min(every), max(every)
        if first == last:
            return _("attempt %(n)s") % {"n": number(first)}
        return _("attempts %(first)s–%(last)s") % {"first": number(first), "last": number(last)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """`gone`: protocols that were named and are not here (any more)."""

    interruption: Interruption
    equal: list[EqualFailures]
    gone: int


def trip_panel(request: HttpRequest, trip: BreakerTrip) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    rows = [_evidence(each) for each in _interruptions(trip)]
    return {"title": _("Counted failures"), "template": "failures/evidence.html", "context": {"rows": rows}}


def location_panel(request: HttpRequest, trip: BreakerTrip) -> Panel | None:
    """Of the error group with the most failures that counted; nothing where none of them is here."""
    if not request.user.has_perm(VIEW):
        return None
    named = [each for one in _interruptions(trip) for each in _ids(one.evidence)]
    equal = equal_failures(_protocols(named[-MAX_EVIDENCE:]))
    if not equal:
        return None
    return {"title": _("Location"), "template": "failures/location.html", "context": {"most": equal[0]}}


def equal_failures(protocols: Iterable[FailureProtocol]) -> list[EqualFailures]:
    """`protocols`: oldest first. The group with the most failures comes first; of equal ones the later."""
    found: dict[str, list[FailureProtocol]] = defaultdict(list)
    for protocol in protocols:
        found[protocol.fingerprint].append(protocol)
    groups = [EqualFailures(alike[-SHOWN:], len(alike)) for alike in found.values()]
    return sorted(groups, key=lambda group: (group.count, group.latest.occurred_at), reverse=True)


def _interruptions(trip: BreakerTrip) -> list[Interruption]:
    rows = trip.interruptions.filter(effective=True).select_related("server").order_by("received_at")
    return list(rows[:MOST_INTERRUPTIONS])


def _evidence(interruption: Interruption) -> Evidence:
    ids = _ids(interruption.evidence)
    protocols = _protocols(ids)
    return Evidence(interruption, equal_failures(protocols), len(ids) - len(protocols))


def _protocols(ids: Sequence[UUID]) -> list[FailureProtocol]:
    found = FailureProtocol.objects.filter(pk__in=ids).defer("traceback", "properties")
    return list(found.order_by("occurred_at", "number"))


def _ids(stored: object) -> list[UUID]:
    """What is no id is no evidence."""
    ids = []
    for each in stored[:MAX_EVIDENCE] if isinstance(stored, list) else []:
        try:
            ids.append(UUID(str(each)))
        except ValueError:
            continue
    return ids
