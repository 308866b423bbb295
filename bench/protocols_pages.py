"""Server time of the pages of failures at 10,000,000 protocols of 200 settings on 20 servers, and whether the
intake is slower there than into an empty table. 95th percentile over the rounds, beside a bare query of 50
rows by an index."""

import resource
from collections.abc import Callable, Sequence

from bench import Delay, Line, Measure, percentile_95
from bench.pages import give_it_a_broker, times
from bench.protocols import Here
from bench.protocols_rows import TABLE, make
from bench.protocols_sent import SENDERS, send_all, senders, web
from deploy.services.ports import free_ports

GOAL = 0.3  # seconds
GOAL_OF_INTAKE = 0.8
ROUNDS = 60  # of fewer the 95th percentile would be the slowest one
KEY, SERVER = "setting-042", "srv-07"
ACTIVATION = f"{43 * 1000 + 17:032x}"
FINGERPRINT = f"v1:{42 * 100 + 3:016x}"
ACTIVATION_PATH = (
    f"{ACTIVATION[:8]}-{ACTIVATION[8:12]}-{ACTIVATION[12:16]}-{ACTIVATION[16:20]}-{ACTIVATION[20:]}"
)
PAGES = {
    "one activation": f"/activations/{ACTIVATION_PATH}/",
    "activations of a setting": f"/activations/?setting={KEY}",
    "one setting": f"/settings/{KEY}/",
    "one server": f"/servers/{SERVER}/",
    "fingerprints": "/fingerprints/",
    "fingerprints of a setting": f"/fingerprints/?setting={KEY}",
    "one fingerprint": f"/fingerprint/?of={FINGERPRINT}",
    "protocols": "/protocols/",
    "protocols of a setting": f"/protocols/?setting={KEY}",
    "protocols of an activation": f"/protocols/?activation={ACTIVATION_PATH}",
    "protocols of an activation and a server": f"/protocols/?activation={ACTIVATION_PATH}&server={SERVER}",
    "protocols of a server": f"/protocols/?server={SERVER}",
    "protocols of a fingerprint": f"/protocols/?fingerprint={FINGERPRINT}",
    "protocols of a message": "/protocols/?message_key=ID:123456",
    "protocols, setting, server, exception": f"/protocols/?setting={KEY}&server={SERVER}&exception=Error7",
    "protocols, part of a text": "/protocols/?text=currency",
    "protocols, a text that is nowhere": "/protocols/?text=nobody-wrote-this",
    "protocols, temporary ones, of which there are none": "/protocols/?temporary=true",
    "protocols of the last hour": "/protocols/?span=1h",
}


def measure(here: Here) -> Sequence[Line]:
    empty = _intake(here, "empty")
    _forget()
    make(here.rows)
    give_it_a_broker()
    bare = percentile_95(times(_bare_query, ROUNDS))
    lines: list[Line] = [_line(here, name, path, bare) for name, path in PAGES.items()]
    full = _intake(here, "full")
    name = f"{here.database} · intake beside {here.rows:,} protocols and into an empty table"
    return [*lines, Measure(name=name, product=full, reference=empty, goal=GOAL_OF_INTAKE, unit="/s")]


def _intake(here: Here, name: str) -> float:
    ready = senders(here.sent, [f"{name}-{number}" for number in range(SENDERS)])
    with web(free_ports(1)[0]) as url:
        lasted, _ = send_all(url, ready)
    return sum(len(sender.batches) for sender in ready) * 100 / lasted


def _forget() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "truncate agents_server, agents_launchsetting, agents_pool, agents_destination cascade"
        )
        cursor.execute(f"truncate {TABLE}, failures_failuredelta cascade")


def _line(here: Here, name: str, path: str, bare: float) -> Line:
    return Delay(
        name=f"{here.database} · {name}",
        product=percentile_95(times(_look(path), ROUNDS)),
        reference=bare,
        goal=GOAL,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _look(path: str) -> Callable[[], object]:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(
        User.objects.filter(username="bench").first() or User.objects.create_superuser("bench")
    )

    def look() -> object:
        answer = client.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answers {answer.status_code}")
        return answer

    return look


def _bare_query() -> object:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            f"select * from {TABLE} where fingerprint = %s order by occurred_at desc limit 50", [FINGERPRINT]
        )
        return cursor.fetchall()
