"""Describes whether the broker is this site's own. Asked by `./ma up`, the feed and the worker before they
touch it.

A site that began on a foreign broker would take the other's dead letters out of the feed and write them into
its own database. Libraries do not ask: tests share brokers.

A person may give the broker to another site while this one runs. The feed asks again before it stores a
batch, and every few seconds without one; the worker every few seconds. What was being stored when the owner
changed is accepted: the new owner finds such a letter in its dead-letter queue, by its sweep. Nothing is
claimed by asking again.
"""

import time
from collections.abc import Set
from datetime import datetime
from enum import Enum
from uuid import UUID

import structlog
from django.conf import settings

from agents.models import ComponentCondition, LaunchSetting, SiteIdentity
from agents.models.site import ONLY
from agents.site.components import note_state
from broker.management import site_claim
from broker.port import Management

log = structlog.get_logger(__name__)

SHOWN = 3
OWNER = "broker_owner"  # the name of the row that says whether the broker is ours still
ASK_SECONDS = 5.0


class Ownership(Enum):
    """OURS: go on. FREE: claim it. OTHER and UNKNOWN: refuse; UNKNOWN has no mark but settings that are not
    ours."""

    OURS = "ours"
    FREE = "free"
    OTHER = "other"
    UNKNOWN = "unknown"


class ForeignBroker(Exception):
    """The broker is another site's, and nothing was changed there. The text says what to do."""


def judge(site: UUID, owner: UUID | None, own_keys: Set[str], broker_keys: Set[str]) -> Ownership:
    """`own_keys`: settings of this database; `broker_keys`: settings that have a dead-letter queue on the
    broker.

    A broker of an older version has no mark: it belongs to the site of whose settings it knows at least one.
    """
    if owner is not None:
        return Ownership.OURS if owner == site else Ownership.OTHER
    if broker_keys and not own_keys & broker_keys:
        return Ownership.UNKNOWN
    return Ownership.FREE


def site_id() -> UUID:
    row, _ = SiteIdentity.objects.get_or_create(pk=ONLY)
    return row.uuid


def require_own_broker(management: Management) -> None:
    """Claims a broker that is nobody's. Raises ForeignBroker, BrokerError."""
    site, owner = site_id(), site_claim.owner(management)
    broker_keys = site_claim.setting_keys(management) if owner is None else set()
    own_keys = set(LaunchSetting.objects.values_list("key", flat=True)) if broker_keys else set()
    match judge(site, owner, own_keys, broker_keys):
        case Ownership.OTHER:
            raise ForeignBroker(_refusal(f"belongs to the site {owner}", site))
        case Ownership.UNKNOWN:
            why = f"has queues of settings unknown to this site ({_some(broker_keys)})"
            raise ForeignBroker(_refusal(why, site))
        case Ownership.FREE:
            winner = site_claim.claim(management, site)
            if winner != site:
                raise ForeignBroker(
                    _refusal(f"belongs to the site {winner}, which claimed it at the same time", site)
                )
            log.info("broker claimed", site=str(site), broker=settings.MA_BROKER_STOMP.url)


def note_owner(management: Management, now: datetime) -> bool:
    """Writes down whose broker it is, for alerts: whether this site has claimed it. False: nobody has for the
    moment.

    Raises ForeignBroker where another site has taken it over, BrokerError."""
    site, owner = site_id(), site_claim.owner(management)
    if owner is None or owner == site:
        note_state(OWNER, ComponentCondition.OK, now)
        return owner is not None
    note_state(OWNER, ComponentCondition.DOWN, now, {"owner": str(owner)})
    raise ForeignBroker(_refusal(f"belongs to the site {owner}, which took it over", site))


class OwnerWatch:
    """Watches for one thread, which asks before each of its steps."""

    def __init__(self, management: Management) -> None:
        self._management = management
        self._next = 0.0

    def require(self, now: datetime, *, at_once: bool) -> None:
        """`at_once`: something is about to be taken from the broker. Else it asks every few seconds. Raises
        as `note_owner`."""
        if at_once or time.monotonic() >= self._next:
            note_owner(self._management, now)
            self._next = time.monotonic() + ASK_SECONDS


def _refusal(why: str, site: UUID) -> str:
    database = settings.DATABASES["default"]
    place = ":".join(str(database[part]) for part in ("HOST", "PORT", "NAME") if database.get(part))
    return (
        f"The broker at {settings.MA_BROKER_STOMP.url} {why}. This site is {site}, its database {place}. "
        "Nothing was changed.\nStart with the database that belongs to this broker (MA_DATABASE_URL). "
        "To take the broker over for this site: ./ma up --adopt-broker"
    )


def _some(keys: Set[str]) -> str:
    names = sorted(keys)
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
