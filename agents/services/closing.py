"""When a run is over, and with its last run the activation."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from agents.models import Activation, ActivationState, Run, RunPhase, Server
from agents.models.server import lost_before
from agents.services.hearing import silence_counts

# A KMA sends the closing record right after the run; past this, with an empty spool, it does not have it any more.
CLOSING_RECORD_WITHIN = timedelta(seconds=60)


def close_finished_activations(now: datetime) -> int:
    """Ends stopped activations all of whose runs are closed."""
    still_open = Run.objects.filter(activation=OuterRef("pk"), closed_at=None)
    done = Activation.objects.filter(~Exists(still_open), state=ActivationState.STOPPED, ended_at=None)
    return done.update(ended_at=now)


def lose_unreachable_runs(now: datetime) -> int:
    """Unwanted runs on silent servers, or on servers that no longer know them, count as lost."""
    silent = Q(server__last_seen_at__lte=lost_before(now)) | Q(server__last_seen_at=None)
    if not silence_counts(now):
        silent = Q(pk__in=[])
    forgotten = Q(reported_at__lte=now - CLOSING_RECORD_WITHIN, server__spool_rows=0)
    over = Run.objects.filter(silent | forgotten, wanted=False, closed_at=None)
    return Run.objects.filter(pk__in=list(over.values_list("pk", flat=True)), closed_at=None).update(
        state=RunPhase.LOST, connected=False, in_progress=0, closed_at=now
    )


def close_never_started(server: Server, heard: Collection[UUID], now: datetime) -> int:
    """The KMA has the present desired state, does not speak of these runs (`heard`: the activations it speaks of), and
    never said more of them than that they were to start: it never began them."""
    nothing = Q(state=RunPhase.STARTING, handled=0, failed=0, temporary=0, restarts=0, server__spool_rows=0)
    never = Run.objects.filter(nothing | Q(reported_at=None), server=server, wanted=False, closed_at=None)
    never = never.exclude(activation__in=heard)
    # Looked first: an update that changes nothing still takes SQLite's write lock, at every heartbeat.
    found = list(never.values_list("pk", flat=True))
    open_still = Run.objects.filter(pk__in=found, closed_at=None)
    return open_still.update(state=RunPhase.FINISHED, closed_at=now) if found else 0
