"""Keeps what was measured of a component. Two workers may measure at once: the later measurement stays."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import redis
import structlog
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from agents.models import ComponentCondition, ComponentState
from broker.port import BrokerError
from console.broker import management, with_timeout
from console.client_address import is_trusted, unknown_proxy
from contract import redis_url


def note_state(name: str, state: str, now: datetime, details: Mapping[str, Any] | None = None) -> None:
    """Conditional updates: a measurement that is older than the stored one changes nothing, and `since` moves
    only with the state. A process that dies between them leaves the row of before, and the next one measures
    again."""
    row = ComponentState.objects.filter(name=name, measured_at__lte=now)
    values = {"measured_at": now, "details": dict(details or {})}
    if row.filter(state=state).update(**values):
        return
    if row.exclude(state=state).update(state=state, since=now, **values):
        return
    ComponentState.objects.get_or_create(name=name, defaults={"state": state, "since": now, **values})


# -- unknown proxies -----------------------------------------------------------------------------------------
# All who come through a proxy that the settings do not name share its address: the count of failed sign-ins
# would lock out everybody.


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


# Asks the broker and Redis whether they are there, for everybody: pages and /healthz/ read what is stored.


log = structlog.get_logger(__name__)
LONGEST_REASON = 300


TIMEOUT_SECONDS = 1.0


def ping(url: str) -> None:
    """Raises OSError when it does not answer, or not us."""
    address = redis_url.parse(url)
    client = redis.Redis.from_url(
        address.url, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS, **address.tls
    )
    try:
        client.ping()
    except redis.RedisError as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    finally:
        client.close()


def measure(now: datetime) -> None:
    """One after the other: a broker that is frozen costs 1.5 s, Redis 1 s."""
    for name, ask in (("broker", _ask_broker), ("redis", _ask_redis)):
        _measure_one(name, ask, now)


def _measure_one(name: str, ask: Callable[[], None], now: datetime) -> None:
    try:
        ask()
    except (BrokerError, OSError) as error:
        log.info("component does not answer", component=name, reason=str(error))
        note_state(name, ComponentCondition.DOWN, now, {"reason": str(error)[:LONGEST_REASON]})
    else:
        note_state(name, ComponentCondition.OK, now)


def _ask_broker() -> None:
    with_timeout(lambda: management().attribute("broker", "Started"))


def _ask_redis() -> None:
    ping(settings.MA_REDIS_URL)
