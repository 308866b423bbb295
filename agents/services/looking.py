"""Makes KMAs look at their desired state at once. Nothing depends on it: each polls every 2 s anyway."""

from collections.abc import Iterable

import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

# A KMA that was away must not find a pile of these.
EXPIRES_SECONDS = 10


def look_after_commit(servers: Iterable[str]) -> None:
    names = sorted(set(servers))
    if names:
        transaction.on_commit(lambda: look(names), robust=True)


def look(servers: Iterable[str]) -> None:
    """Best effort: Redis may be away, then the first failure ends it."""
    for server in servers:
        if not send("kma.look", queue=f"kma.{server}"):
            return


def send(task: str, *arguments: object, queue: str | None = None, expires: float = EXPIRES_SECONDS) -> bool:
    """Whether Redis took the task. Never waits longer than the socket timeouts of the settings, never raises."""
    try:
        current_app.send_task(task, args=arguments, queue=queue, expires=expires, retry=False, ignore_result=True)
    except (OperationalError, OSError) as error:
        log.info("task not sent", task=task, queue=queue, reason=str(error))
        return False
    return True
