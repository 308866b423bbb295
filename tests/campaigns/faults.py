"""A house on PostgreSQL whose site, database and Redis are killed in turn while its agents fail."""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deploy.services import postgres
from tests.product import scripted
from tests.product.house import House, children_of

SERVERS = ("srv-1", "srv-2")
VICTIMS = ("web", "postgres", "redis")
# Of which one message in six is handled well, so that no breaker trips; each other one fails so often and is
# dead.
EVERY, ATTEMPTS = 6, 5
# Failures per second of both servers together.
RATE = 100

Attempt = tuple[str, int]


class FaultHouse(House):
    """`database` is its own: what it has confirmed survives a kill."""

    def __init__(self, data: Path) -> None:
        self.database = postgres.start(postgres.DURABLE)
        own = {"MA_DATABASE_URL": self.database.url(), "DJANGO_SUPERUSER_PASSWORD": "only for the fault run"}
        super().__init__(data, SERVERS, **own)

    def up(self, *arguments: str) -> str:
        printed = super().up("--no-demo", *arguments)
        self.call("POST", "pools/", {"name": "demo", "servers": list(SERVERS)})
        return printed

    def down(self) -> None:
        try:
            super().down()
        finally:
            self.database.stop()

    def kill_one(self, victim: str, pause: float) -> None:
        """Returns when it is there again; the database stays away for `pause` seconds."""
        if victim == "postgres":
            self.database.kill()
            time.sleep(pause)
            self.database.restart()
            return
        self.until(f"{victim} is back", lambda: bool(self.pid(victim)))
        workers = children_of(self.pid(victim), "gunicorn") if victim == "web" else []
        self.kill(victim)
        for pid in workers:
            with suppress(ProcessLookupError):  # it heard of its master's death in this moment
                os.kill(pid, signal.SIGKILL)
        self.until(f"{victim} is back", lambda: bool(self.pid(victim)))

    def failed_attempts(self, key: str) -> Counter[Attempt]:
        """(message key, attempt) of every attempt that failed, as the agents wrote it down themselves."""
        file = self.data / f"truth-{key}.jsonl"
        lines = (json.loads(line) for line in file.read_text().splitlines())
        return Counter((line["key"], line["attempt"]) for line in lines if fails(line["note"]))

    def stored(self, key: str) -> list[dict[str, Any]]:
        return list(self.pages(f"protocols/?setting={key}&page_size=500"))

    @contextmanager
    def failing(self, address: str) -> Iterator[None]:
        """Messages at the rate, as long as the block lasts."""
        over = threading.Event()
        thread = threading.Thread(target=self._publish, args=(address, over), name="publisher")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _publish(self, address: str, over: threading.Event) -> None:
        n, began = 0, time.monotonic()
        while not over.wait(0.2):
            due = int((time.monotonic() - began) * RATE / ATTEMPTS)
            bodies = []
            while n * (EVERY - 1) // EVERY < due:
                bodies.append(scripted.poisoned(n) if fails(n) else scripted.ok(n))
                n += 1
            if bodies:
                self.publish(address, bodies)


def fails(n: int) -> bool:
    return n % EVERY != 0


def victims(chance: random.Random) -> Iterator[str]:
    """All of them in an order of their own, again and again."""
    while True:
        yield from chance.sample(VICTIMS, len(VICTIMS))
