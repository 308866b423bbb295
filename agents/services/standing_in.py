"""While Redis, beat or the worker is away nobody does the steps that ask the broker, and nobody looks at the
alerts.

The process that follows the dead letters needs none of the three and has a connection to the broker: it does
both meanwhile. Alerts are looked at by the site, too, for as long as a KMA sends heartbeats."""

import threading
import time
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, InterfaceError, connection

from agents.alerts.evaluating import evaluate
from agents.services.drains import watch_drains
from agents.services.notices import send_due
from agents.services.provisioning import provision_due
from agents.services.subscriptions import watch_subscriptions
from agents.services.tending import beat_is_away
from console.jobs.locks import once_per

log = structlog.get_logger(__name__)

# As often as beat asks for the first of them.
EVERY = timedelta(seconds=2)
ALERTS_EVERY = timedelta(seconds=10)

# Held by the look under way in this process: an address that does not answer may hold it for long.
_looking = threading.Lock()
# By the monotonic clock: before, this process asks no row whether beat is away.
_next_question = 0.0


def stand_in_at_broker(now: datetime) -> bool:
    """Whether it was done now. Never raises for the broker or the database, nor for a row that a person
    deletes at this moment. Each step may run twice, also beside a worker that comes back."""
    try:
        if not beat_is_away(now) or not once_per("keep up at the broker", EVERY, now):
            return False
        watch_drains(now)
        provision_due(now)
        if once_per("watch subscriptions", ALERTS_EVERY, now):
            watch_subscriptions(now)
    except (DatabaseError, InterfaceError) as error:
        log.warning("standing in waits", reason=str(error))
        return False
    return True


def stand_in_for_alerts(now: datetime) -> threading.Thread | None:
    """The look that was begun, in a thread of its own: notices may take long, and who calls has other things
    to do. Beside a worker that comes back it does no harm: one process looks at a time, each notice is
    claimed."""
    global _next_question
    if time.monotonic() < _next_question:
        return None
    _next_question = time.monotonic() + ALERTS_EVERY.total_seconds() / 2
    try:
        if not beat_is_away(now) or not once_per("alerts", ALERTS_EVERY, now):
            return None
    except (DatabaseError, InterfaceError) as error:
        log.warning("standing in waits", reason=str(error))
        return None
    thread = threading.Thread(target=_look_at_alerts, args=(now,), name="alerts", daemon=True)
    thread.start()
    return thread


def _look_at_alerts(now: datetime) -> None:
    if not _looking.acquire(blocking=False):
        return
    try:
        evaluate(now)
        send_due(now)
    except Exception:
        # Nobody waits for this thread: the next look tries again.
        log.exception("alerts not evaluated")
    finally:
        connection.close()
        _looking.release()
