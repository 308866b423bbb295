"""While Redis, beat or the worker is away nobody does the steps that ask the broker. The process that follows the dead
letters needs none of the three and has a connection to the broker: it does them meanwhile."""

from datetime import datetime, timedelta

import structlog
from django.db import InterfaceError, OperationalError

from agents.services.drains import watch_drains
from agents.services.leases import once_per
from agents.services.provisioning import provision_due
from agents.services.tending import beat_is_away

log = structlog.get_logger(__name__)

# As often as beat asks for the first of them.
EVERY = timedelta(seconds=2)


def stand_in_at_broker(now: datetime) -> bool:
    """Whether it was done now. Never raises for the broker or the database. Each step may run twice, also beside a
    worker that comes back at this moment."""
    try:
        if not beat_is_away(now) or not once_per("keep up at the broker", EVERY, now):
            return False
        watch_drains(now)
        provision_due(now)
    except (OperationalError, InterfaceError) as error:
        log.warning("standing in waits", reason=str(error))
        return False
    return True
