"""Notes a proxy before the site that the settings do not name: all who come through it share its address."""

from datetime import datetime, timedelta

from django.http import HttpRequest
from django.utils import timezone

from agents.models import ComponentCondition, ComponentState
from agents.services.components import note_state
from console.client_address import is_trusted, unknown_proxy

PROXY = "unknown_proxy"
# A row is written so often at most, whoever asks: anybody may send the header.
EVERY = timedelta(minutes=1)
KNOWN_FOR = timedelta(days=1)


def note_unknown_proxy(request: HttpRequest) -> None:
    if not (address := unknown_proxy(request)):
        return
    now = timezone.now()
    if not ComponentState.objects.filter(name=PROXY, measured_at__gt=now - EVERY).exists():
        note_state(PROXY, ComponentCondition.DOWN, now, {"address": address})


def unknown_proxy_seen(now: datetime) -> str:
    """Its address, where one was seen lately and is not named since; else empty."""
    row = ComponentState.objects.filter(name=PROXY, measured_at__gt=now - KNOWN_FOR).first()
    address = str(row.details.get("address", "")) if row else ""
    return "" if is_trusted(address) else address
