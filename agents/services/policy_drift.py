"""Reads the settings of our addresses from the broker once a minute and writes down where they are not as
wanted.

Nothing is changed on the broker: who is right is for a person to say (`agents.services.policies`).
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import structlog
from django.conf import settings

from agents.models import Destination, FoundPolicy
from broker.errors import BrokerError
from broker.topology import Policy, destination_policy, found_policy
from broker.wanted import DEAD_LETTER_SETTINGS
from console.broker import management
from console.jobs.locks import lock

log = structlog.get_logger(__name__)

HELD_FOR = timedelta(minutes=2)
# What was seen longer ago says nothing of now: three looks were missed.
KNOWN = timedelta(minutes=4)


def watch_policies(now: datetime) -> int:
    """How many addresses differ. While the broker is away the rows stay as they are, and grow old."""
    with lock("policies", HELD_FOR) as free:
        if not free:
            return 0
        wanted = list(_wanted())
        FoundPolicy.objects.exclude(address__in=[step.address for step in wanted]).delete()
        try:
            return sum(look_at_policy(step, now) for step in wanted)
        except BrokerError as error:
            log.info("policies not looked at", reason=str(error))
            return 0


def look_at_policy(step: Policy, now: datetime) -> bool:
    """Whether the broker has other values than `step`. Raises BrokerError."""
    found = found_policy(management(), step.address)
    differing = [name for name, value in step.settings.items() if found.get(name) != value]
    kept = {name: found.get(name) for name in step.settings}
    row, made = FoundPolicy.objects.get_or_create(address=step.address, defaults={"seen_at": now})
    since = (row.differs_since or now) if differing else None
    FoundPolicy.objects.filter(pk=row.pk).update(
        found=kept, differing=differing, seen_at=now, differs_since=since
    )
    if differing and (made or row.differs_since is None):
        log.warning("the broker has other address settings", address=step.address, differing=differing)
    return bool(differing)


def policy_of(destination: Destination) -> Policy:
    return destination_policy(
        destination.name, destination.policy, settings.MA_DLA_ADDRESS, destination.expiry_ms
    )


def drifting(now: datetime) -> list[FoundPolicy]:
    """Addresses that were seen lately and were not as wanted, the longest first."""
    seen = FoundPolicy.objects.filter(differs_since__isnull=False, seen_at__gt=now - KNOWN)
    return list(seen.order_by("differs_since", "address"))


def is_known(now: datetime) -> bool:
    """Whether anything was read lately: else nobody can say what differs."""
    return FoundPolicy.objects.filter(seen_at__gt=now - KNOWN).exists()


def _wanted() -> Iterator[Policy]:
    """What nobody waits for any more: a destination whose setting is still to be provisioned is not wrong
    yet."""
    yield Policy(settings.MA_DLA_ADDRESS, DEAD_LETTER_SETTINGS)
    made = Destination.objects.filter(settings__isnull=False).exclude(settings__provision_state="pending")
    for destination in made.distinct():
        yield policy_of(destination)
