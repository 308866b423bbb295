"""Has KMAs poll their desired state at once. Nothing depends on it: each does so every 2 s anyway."""

from collections.abc import Iterable

from django.db import transaction

from console import task_queue


def poll_after_commit(servers: Iterable[str]) -> None:
    names = sorted(set(servers))
    if names:
        transaction.on_commit(lambda: poll(names), robust=True)


def poll(servers: Iterable[str]) -> None:
    """Best effort: Redis may be away, then the first failure ends it."""
    for server in servers:
        if not task_queue.send("kma.poll", queue=f"kma.{server}"):
            return
