"""Server time of every page with charts, beside a year of figures: as a signed-in person asks for it, through
the whole site (middleware, permissions, templates) in this process. Beside the 95th percentile stand the
median, and for each request its questions and the processor time of the site and of its database server."""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import NAMESPACE_OID, uuid5

from bench import Delay, percentile_95
from bench.pages import MANY_KEY, give_it_a_broker

GOAL = 0.3  # seconds
ROUNDS = 40
_MILLISECONDS_OF_A_TICK = 1000 / os.sysconf("SC_CLK_TCK")


def pages_with_charts(servers: int, now: datetime) -> Iterator[Delay]:
    from django.contrib.auth.models import User
    from django.test import Client

    give_it_a_broker()
    people = Client()
    people.force_login(User.objects.create_superuser("bench"))
    for name, path in _paths(now).items():
        found = _Requests()
        _in_a_thread_of_the_site(_asked(people, path, found))
        print(f"{servers} servers · page: {name}: {found.said}", file=sys.stderr, flush=True)
        yield Delay(
            name=f"{servers} servers · page: {name}",
            product=percentile_95(found.took),
            reference=statistics.median(found.took),
            goal=GOAL,
            runs=[found.figures],
        )


def _paths(now: datetime) -> dict[str, str]:
    from agents.models import Activation, Destination, LaunchSetting, Server

    setting = LaunchSetting.objects.get(key=MANY_KEY)
    destination = Destination.objects.get()
    server = Server.objects.order_by("pk")[0]
    long = Activation.objects.filter(pk=uuid5(NAMESPACE_OID, str(setting.pk)))
    assert long.update(started_at=now - timedelta(days=90))
    ago = {name: (now - timedelta(days=days)).isoformat() for name, days in (("90 d", 90), ("30 d", 30))}
    ranges = {"24 h": "range=24h", "30 d": "range=30d", "90 d": urlencode({"from": ago["90 d"]})}
    charted = {
        "setting": (f"/settings/{MANY_KEY}/", ("24 h", "30 d", "90 d")),
        "server": (f"/servers/{server.name}/", ("24 h", "90 d")),
        "destination": (f"/destinations/{destination.pk}/", ("24 h", "90 d")),
        "timeline": ("/timeline/", ("24 h", "90 d")),
        "timeline of a setting": (f"/timeline/?setting={MANY_KEY}", ("90 d",)),
    }
    found = {
        "overview": "/",
        "settings": "/settings/",
        "activation of 90 d": f"/activations/{long.get().pk}/",
    }
    for page, (path, wanted) in charted.items():
        mark = "&" if "?" in path else "?"
        found |= {f"{page}, {name}": f"{path}{mark}{ranges[name]}" for name in wanted}
    week = f"/settings/{MANY_KEY}/?{ranges['90 d']}&compare=week"
    return found | {"setting, 90 d and a week before": week}


# -- what a request takes ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Requests:
    """`took`: seconds on the wall of each. Of the rest the mean: milliseconds, questions, kilobytes."""

    took: list[float] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def said(self) -> str:
        wall = {"p95 ms": percentile_95(self.took) * 1000, "median ms": statistics.median(self.took) * 1000}
        return ", ".join(f"{name} {value:.0f}" for name, value in {**wall, **self.figures}.items())


def _asked(client: Any, path: str, into: _Requests) -> Callable[[], None]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def get() -> Any:
        answer = client.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path}: {answer.status_code}")
        return answer

    def measure() -> None:
        get()  # what is read once per process
        with CaptureQueriesContext(connection) as asked:
            size, questions = len(get().content), len(asked)
        server = _server_process()
        site_before, server_before = time.thread_time(), _processor_of(server)
        for _ in range(ROUNDS):
            began = time.perf_counter()
            get()
            into.took.append(time.perf_counter() - began)
        into.figures = {
            "site ms": (time.thread_time() - site_before) * 1000 / ROUNDS,
            "database ms": (_processor_of(server) - server_before) / ROUNDS,
            "questions": questions,
            "kB": size / 1000,
        }

    return measure


def _in_a_thread_of_the_site(step: Callable[[], None]) -> None:
    from ma_site.requests.stack import OF_A_THREAD, with_room

    with_room(step, OF_A_THREAD)()


def _server_process() -> int:
    """Of PostgreSQL, which answers this connection: its cluster is of this machine."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _processor_of(process: int) -> float:
    """Returns milliseconds."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) * _MILLISECONDS_OF_A_TICK
