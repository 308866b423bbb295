"""Sends tasks, best effort: what they are for is in rows, and is found there without them."""

import time
from datetime import datetime

import structlog
from celery import current_app
from kombu import pools
from kombu.exceptions import KombuError

log = structlog.get_logger(__name__)

# Who was away must not find a pile of these.
EXPIRES_SECONDS = 10
# Who sends is often a request: a Redis that hangs costs it so long, and those after it nothing for a while.
TIMEOUTS = {"socket_connect_timeout": 0.8, "socket_timeout": 0.8}
PAUSE_SECONDS = 5.0
# A connection that is refused costs nobody anything: the next may try.
SLOW_SECONDS = 0.3

_away_until = 0.0


def send(
    task: str,
    *arguments: object,
    queue: str | None = None,
    expires: float = EXPIRES_SECONDS,
    at: datetime | None = None,
    keep: int | None = None,
) -> bool:
    """Returns whether Redis took the task, which a worker begins `at` an instant. Waits about a second at
    most, never raises; while Redis hangs, one in PAUSE_SECONDS waits. `keep`: older tasks of a queue that
    nobody may ever read are dropped."""
    global _away_until
    started = time.monotonic()
    if started < _away_until:
        return False
    try:
        _send(task, arguments, queue, expires, at, keep)
    except (KombuError, OSError) as error:
        log.info("task not sent", task=task, queue=queue, reason=str(error))
        if time.monotonic() - started > SLOW_SECONDS:
            _away_until = time.monotonic() + PAUSE_SECONDS
        return False
    return True


def _send(
    task: str,
    arguments: tuple[object, ...],
    queue: str | None,
    expires: float,
    at: datetime | None,
    keep: int | None,
) -> None:
    """Sends by connections of its own: those of Celery wait as long as a worker may."""
    connection = current_app.connection_for_write(transport_options=TIMEOUTS)
    with pools.producers[connection].acquire(block=True, timeout=TIMEOUTS["socket_timeout"]) as producer:
        current_app.send_task(
            task,
            args=arguments,
            queue=queue,
            expires=expires,
            eta=at,
            retry=False,
            ignore_result=True,
            producer=producer,
        )
        if keep is not None:
            # Redis, unlike a worker, does not look at `expires`. The newest one is the first of the list.
            producer.channel.client.ltrim(queue, 0, keep - 1)
