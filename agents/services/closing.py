"""When a run is over though its KMA did not say so. The end of its activation: see `endings`."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Case, F, Q, Value, When

from agents.models import Activation, Kind, Run, RunPhase, Server, Spread
from agents.models.server import lost_before
from agents.services.hearing import lease_over_before, silence_counts

# A KMA sends the closing record right after the run; past this, with an empty spool, it does not have it any
# more.
CLOSING_RECORD_WITHIN = timedelta(seconds=60)
# Only a lease keeps two of them from running at once: as `hearing.leased` says of one setting.
LEASED = Q(activation__setting__kind=Kind.STANDALONE, activation__setting__spread=Spread.ANY)


def lose_unreachable_runs(now: datetime) -> int:
    """Unwanted runs on silent servers, or on servers that no longer know them, count as lost; so do runs of
    whose records some will never come."""
    silent = _silent(lost_before(now)) & ~LEASED | _silent(lease_over_before(now)) & LEASED
    if not silence_counts(now):
        silent = Q(pk__in=[])
    forgotten = Q(reported_at__lte=now - CLOSING_RECORD_WITHIN, server__spool_rows=0)
    over = Run.objects.filter(silent | forgotten, wanted=False, closed_at=None)
    found = list(over.values_list("pk", flat=True))
    open_still = Run.objects.filter(pk__in=found, closed_at=None)
    # What was given up stays so: its closing record is lost, not the reason why it is off there.
    state = Case(When(state=RunPhase.INTERRUPTED, then=F("state")), default=Value(RunPhase.LOST.value))
    lost = open_still.update(state=state, connected=False, in_progress=0, closed_at=now) if found else 0
    return lost + _give_up_missing_records(now)


def _silent(before: datetime) -> Q:
    return Q(server__last_seen_at__lte=before) | Q(server__last_seen_at=None)


def _give_up_missing_records(now: datetime) -> int:
    """Closed long ago, the spool is empty, and fewer records are here than the closing one says."""
    # Asked apart: joined, SQLite may begin with every run that ever was.
    going_on = list(Activation.objects.filter(ended_at=None).order_by().values_list("pk", flat=True))
    missing = Run.objects.filter(
        activation__in=going_on,
        closing_records__gt=F("stored_records"),
        closed_at__lte=now - CLOSING_RECORD_WITHIN,
        server__spool_rows=0,
    ).exclude(state=RunPhase.LOST)
    found = list(missing.order_by().values_list("pk", flat=True))
    if not found:
        return 0
    runs = Run.objects.filter(pk__in=found)
    runs.filter(state=RunPhase.INTERRUPTED).update(closing_records=F("stored_records"))
    return runs.exclude(state=RunPhase.INTERRUPTED).update(state=RunPhase.LOST)


def close_never_started(server: Server, heard: Collection[UUID], now: datetime) -> int:
    """The KMA has the present desired state, does not speak of these runs (`heard`: the activations it speaks
    of), and never said more of them than that they were to start: it never began them."""
    nothing = Q(state=RunPhase.STARTING, handled=0, failed=0, temporary=0, restarts=0, server__spool_rows=0)
    never = Run.objects.filter(nothing | Q(reported_at=None), server=server, wanted=False, closed_at=None)
    never = never.exclude(activation__in=heard)
    # Looked first: an update that changes nothing still takes SQLite's write lock, at every heartbeat.
    found = list(never.values_list("pk", flat=True))
    open_still = Run.objects.filter(pk__in=found, closed_at=None)
    return open_still.update(state=RunPhase.FINISHED, closed_at=now) if found else 0
