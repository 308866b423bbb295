"""Server time of every long list, as a page and over REST, at 200 settings, 50 servers and a million
activations.

Each request goes through the whole site (middleware, permissions, templates) in this process, with a database
of its own, filled by SQL, and a broker in memory that takes as long to answer as one beside the MA does. 95th
percentile over the rounds, beside a bare query of 50 rows by an index. `--postgresql` measures there too, on
a throw-away cluster. The same for what runs every few seconds whether or not anybody looks: one heartbeat and
`tend`.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import Delay, percentile_95, site

GOAL = 0.3  # seconds
# Seconds. One question; and the list of its 400 queues, as Artemis answers where other work is done beside
# it.
ANSWER_OF_THE_BROKER, LIST_OF_QUEUES = 0.001, 0.1
MANY_KEY, SERVER = "setting-000", "srv-07"

PAGES = {
    "overview": "/",
    "settings": "/settings/",
    "one setting": f"/settings/{MANY_KEY}/",
    "activations": "/activations/",
    "activations of a setting": f"/activations/?setting={MANY_KEY}",
    "activations that failed": "/activations/?state=failed",
    "activations of a server": f"/activations/?server={SERVER}",
    "servers": "/servers/",
    "one server": f"/servers/{SERVER}/",
    "groups": "/groups/",
    "trips": "/trips/",
    "rows of activations": "/agents/activation/",
    "rows of activations of a setting": "/agents/activation/?setting__id__exact=1",
    "rows of the history": "/agents/statechange/",
    "rows of settings": "/agents/launchsetting/",
    "rows of servers": "/agents/server/",
}
REST = {
    "settings": "settings/",
    "activations": "activations/",
    "activations of a setting": f"activations/?setting={MANY_KEY}",
    "activations that failed": "activations/?state=failed",
    "activations of a server": f"activations/?server={SERVER}",
    "activations of a setting that failed": f"activations/?setting={MANY_KEY}&state=failed",
    "servers": "servers/",
    "groups": "groups/",
    "trips": "trips/",
}


def run(arguments: Sequence[str]) -> list[Delay]:
    options = _options(arguments)
    if options.only:
        print(json.dumps(_measured(options)))
        sys.exit(0)
    databases = site.DATABASES if options.postgresql else site.DATABASES[:1]
    return [line for database in databases for line in _in_a_process(database, arguments)]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench pages")
    parser.add_argument("--activations", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--postgresql", action="store_true", help="also there")
    parser.add_argument("--only", choices=site.DATABASES, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _in_a_process(database: str, arguments: Sequence[str]) -> list[Delay]:
    """A site knows one database."""
    with TemporaryDirectory(prefix="bench-pages-") as folder, site.database(database, Path(folder)) as url:
        environment = {**os.environ, **site.environment(Path(folder), url)}
        command = [sys.executable, "-m", "bench", "pages", "--only", database, *arguments]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [Delay(**each) for each in json.loads(done.stdout.splitlines()[-1])]


# -- in the process of the site ------------------------------------------------------------------------------


def _measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    site.set_up()
    from bench.pages_rows import make

    make(options.activations)
    give_it_a_broker()
    reference = times(_bare_query, options.rounds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        {
            "name": f"{options.only} · {name}",
            "product": percentile_95(times(step, options.rounds)),
            "reference": percentile_95(reference),
            "goal": GOAL,
            "peak_memory_mb": peak,
        }
        for name, step in _steps().items()
    ]


def _steps() -> dict[str, Callable[[], object]]:
    from django.contrib.auth.models import User
    from django.test import Client
    from django.utils import timezone
    from rest_framework.test import APIClient

    from console.models import ApiToken

    root = User.objects.create_superuser("bench")
    people, scripts = Client(), APIClient()
    people.force_login(root)
    scripts.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(root, 'bench', now=timezone.now())}")
    steps: dict[str, Callable[[], object]] = {}
    for name, path in PAGES.items():
        steps[f"page: {name}"] = _getter(people, path)
    steps["page: the fifth of activations"] = _getter(people, _fifth(people, "/activations/"))
    for name, path in REST.items():
        steps[f"REST: {name}"] = _getter(scripts, f"/api/v1/{path}")
    return steps | {"a heartbeat": _heartbeat, "tend": _tend}


def _getter(client: Any, path: str) -> Callable[[], object]:
    def get() -> object:
        answer = client.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path}: {answer.status_code}")
        return answer

    return get


def _fifth(client: Any, path: str) -> str:
    """Four times the link to older rows."""
    import re
    from html import unescape

    here = path
    for _ in range(4):
        found = re.search(r'href="(\?[^"]*before=[^"]*)"', client.get(here).content.decode())
        if not found:
            return here
        here = path + unescape(found[1])
    return here


def _heartbeat() -> object:
    from datetime import UTC, datetime
    from uuid import UUID

    from django.utils import timezone

    from agents.heartbeat.heartbeats import accept_heartbeat
    from agents.models import Server
    from contract.messages import Heartbeat, OfferedAgent, SpoolReport

    said = Heartbeat(
        server=SERVER,
        boot=UUID(int=1),
        sent_at=datetime.now(UTC),
        kma_version="1",
        desired_version="",
        agents=(OfferedAgent(name="bench.noop", kind="message", version="1"),),
        runs=(),
        spool=SpoolReport(limit_bytes=1),
        problems=(),
    )
    return accept_heartbeat(Server.objects.get(name=SERVER), said, timezone.now())


def _tend() -> object:
    """All servers were heard just now: nothing is to be taken over."""
    from django.utils import timezone

    from agents.models import Server
    from agents.reconciler import tend

    now = timezone.now()
    Server.objects.update(last_seen_at=now)
    tend(now)
    return None


def _bare_query() -> object:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("select * from agents_activation order by started_at desc, id desc limit 50")
        return cursor.fetchall()


def times(step: Callable[[], object], rounds: int) -> list[float]:
    from ma_site.requests.stack import OF_A_THREAD, with_room

    def measure() -> list[float]:
        step()  # what is read once per process
        found = []
        for _ in range(rounds):
            began = time.perf_counter()
            step()
            found.append(time.perf_counter() - began)
        return found

    return with_room(measure, OF_A_THREAD)()  # as in a thread of the site


def give_it_a_broker() -> None:
    from agents.models import LaunchSetting
    from broker.memory.broker import MemoryBroker
    from console import broker as service
    from contract.names import dead_letter_queue

    in_memory = MemoryBroker().management()
    for address in ("bench", "dead"):
        in_memory.call("broker", "createAddress", address, "MULTICAST")
    for key in LaunchSetting.objects.values_list("key", flat=True):
        for name, address in ((key, "bench"), (dead_letter_queue(key), "dead")):
            in_memory.call("broker", "createQueue", json.dumps({"name": name, "address": address}))

    class Slow:
        """Answers as late as a broker beside the MA does."""

        def call(self, resource: str, operation: str, *values: Any) -> Any:
            time.sleep(LIST_OF_QUEUES if operation == "listQueues" else ANSWER_OF_THE_BROKER)
            return in_memory.call(resource, operation, *values)

        def attribute(self, resource: str, name: str) -> Any:
            time.sleep(ANSWER_OF_THE_BROKER)
            return in_memory.attribute(resource, name)

        def attributes(self, resource: str, *names: str) -> list[Any]:
            time.sleep(ANSWER_OF_THE_BROKER)
            return in_memory.attributes(resource, *names)

        def close(self) -> None:
            in_memory.close()

    service._connection, service._process = Slow(), os.getpid()
