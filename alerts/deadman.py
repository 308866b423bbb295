"""Tells an address outside that alerts are evaluated, at most once a minute: a dead man's switch.

It is for what no alert can tell: the database is away, the host is gone, or nobody evaluates. Whoever listens
there alarms when it hears nothing. Whatever process evaluates also pings: the worker, or who stands in for
it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import requests
import structlog
from django.conf import settings

from alerts.evaluation import LATE, evaluated
from console.processes import once_per

log = structlog.get_logger(__name__)

EVERY = timedelta(minutes=1)
# An address that does not answer must not hold the next evaluation up.
CONNECT_SECONDS, ANSWER_SECONDS = 2.0, 3.0


def works(evaluated_at: Iterable[datetime | None], now: datetime) -> bool:
    """Returns whether every kind of alerts was evaluated lately."""
    return all(at is not None and now - at <= LATE for at in evaluated_at)


def ping(now: datetime) -> bool:
    """Returns whether it was sent and answered well. Never raises for the address; its path is a secret and
    is logged nowhere. A ping that fails is not repeated before the next one."""
    if not settings.MA_DEADMAN_URL or not works((at for _kind, at in evaluated()), now):
        return False
    if not once_per("deadman", EVERY, now):
        return False
    try:
        with requests.request(
            settings.MA_DEADMAN_METHOD,
            settings.MA_DEADMAN_URL,
            headers={"User-Agent": "MA"},
            timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as answer:
            status = answer.status_code
    except (requests.RequestException, OSError, ValueError) as error:
        log.warning("dead man's switch not reached", reason=type(error).__name__)
        return False
    if not 200 <= status < 300:
        log.warning("dead man's switch refused the ping", status=status)
    return 200 <= status < 300
