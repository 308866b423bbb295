"""Which host holds a lease, and which one waits for it."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from console.leases.holder import WAITS
from console.leases.models import Lease


@dataclass(frozen=True, slots=True)
class Place:
    """`standby` empty: no second host waits."""

    host: str
    standby: str


def place_of(name: str, now: datetime) -> Place | None:
    """None where nobody holds it."""
    held = Lease.objects.filter(Q(name=name, until__gt=now) & ~Q(holder=None)).first()
    if held is None:
        return None
    waits = held.standby_at is not None and now - held.standby_at < WAITS
    return Place(held.host, held.standby_host if waits else "")
