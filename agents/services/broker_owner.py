"""Whether the broker is this site's own. Asked by `./ma up`, the feed and the worker before they touch it.

A site that began on a foreign broker would take the other's dead letters out of the feed and write them into its own
database. Libraries do not ask: tests share brokers.
"""

from collections.abc import Set
from enum import Enum
from uuid import UUID

import structlog
from django.conf import settings

from agents.models import LaunchSetting, SiteIdentity
from agents.models.site import ONLY
from broker import site_claim
from broker.port import Management

log = structlog.get_logger(__name__)

SHOWN = 3


class Ownership(Enum):
    """OURS: go on. FREE: claim it. OTHER and UNKNOWN: refuse; UNKNOWN has no mark but settings that are not ours."""

    OURS = "ours"
    FREE = "free"
    OTHER = "other"
    UNKNOWN = "unknown"


class ForeignBroker(Exception):
    """The broker is another site's, and nothing was changed there. The text says what to do."""


def judge(site: UUID, owner: UUID | None, own_keys: Set[str], broker_keys: Set[str]) -> Ownership:
    """`own_keys`: settings of this database; `broker_keys`: settings that have a dead-letter queue on the broker.

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
            why = f"has queues of settings that this site does not know ({_some(broker_keys)})"
            raise ForeignBroker(_refusal(why, site))
        case Ownership.FREE:
            winner = site_claim.claim(management, site)
            if winner != site:
                raise ForeignBroker(_refusal(f"belongs to the site {winner}, which was faster", site))
            log.info("broker claimed", site=str(site), broker=settings.MA_BROKER_STOMP.url)


def _refusal(why: str, site: UUID) -> str:
    database = settings.DATABASES["default"]
    place = ":".join(str(database[part]) for part in ("HOST", "PORT", "NAME") if database.get(part))
    return (
        f"The broker at {settings.MA_BROKER_STOMP.url} {why}. This site is {site}, its database {place}. "
        "Nothing was changed.\nStart with the database that belongs to this broker (MA_DATABASE_URL). "
        "To let this site take the broker over on purpose: ./ma up --adopt-broker"
    )


def _some(keys: Set[str]) -> str:
    names = sorted(keys)
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
