"""Asks the broker and Redis whether they are there, for everybody: pages and /healthz/ read what is
stored."""

from collections.abc import Callable
from datetime import datetime

import structlog
from django.conf import settings

from agents.models import ComponentCondition
from agents.site.components import note_state
from broker.port import BrokerError
from console.broker import bounded, management
from ma_site.checks.services import ping

log = structlog.get_logger(__name__)
LONGEST_REASON = 300


def measure(now: datetime) -> None:
    """One after the other: a broker that is frozen costs 1.5 s, Redis 1 s."""
    for name, ask in (("broker", _ask_broker), ("redis", _ask_redis)):
        _measure_one(name, ask, now)


def _measure_one(name: str, ask: Callable[[], None], now: datetime) -> None:
    try:
        ask()
    except (BrokerError, OSError) as error:
        log.info("component is away", component=name, reason=str(error))
        note_state(name, ComponentCondition.DOWN, now, {"reason": str(error)[:LONGEST_REASON]})
    else:
        note_state(name, ComponentCondition.OK, now)


def _ask_broker() -> None:
    bounded(lambda: management().attribute("broker", "Started"))


def _ask_redis() -> None:
    ping(settings.MA_REDIS_URL)
