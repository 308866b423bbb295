"""Server time of the console of dead letters at 1,000,000 indexed letters: groups, lists, one letter, words.

Each request goes through the whole site (middleware, permissions, templates) in this process; the broker is
one in memory that takes as long to answer as one beside the MA does. 95th percentile over the rounds, beside
a bare query of 50 rows by an index.
"""

import resource
from collections.abc import Sequence

from bench import Delay, Line, percentile_95
from bench.dlq import Here
from bench.dlq_pages_rows import CUSTOMERS, LARGE, make
from bench.pages import give_it_a_broker, times

# Seconds.
GOALS = {"sqlite": 0.5, "postgresql": 0.3}
GOAL_OF_WORDS = 1.0
ROUNDS = 60  # of fewer the 95th percentile would be the slowest one
OF_LARGE = f"/dead-letters/{LARGE}/"
GROUPS = {
    "groups of a setting, by fault": f"{OF_LARGE}groups/",
    "groups of a setting, by exception": f"{OF_LARGE}groups/?by=exception",
    "groups of a setting, by server": f"{OF_LARGE}groups/?by=server",
    "groups of a setting, by activation": f"{OF_LARGE}groups/?by=activation",
    "groups of a setting, by day": f"{OF_LARGE}groups/?by=day",
    "groups of all settings, by fault": "/letters/groups/",
    "groups of all settings, by server": "/letters/groups/?by=server",
    "groups of all settings, by day": "/letters/groups/?by=day",
}
LISTS = {
    "overview": "/dead-letters/",
    "list": OF_LARGE,
    "list, every state, old page": f"{OF_LARGE}?state=every&before=150000",
    "list of all settings": "/letters/",
    "list, one fault": f"{OF_LARGE}?fingerprint=v1:{3:016}",
    "list, part of an exception": f"{OF_LARGE}?exception=error1",
    "list, exception, server, day": f"{OF_LARGE}?exception=error1&server=srv-08&span=1d",
    "list, attempts and replays": f"{OF_LARGE}?delivered_from=7&replays_from=1",
    "list, activation": f"{OF_LARGE}?activation=00000000-0000-0000-0000-000000000002",
    "list, nothing matches": f"{OF_LARGE}?delivered_from=7&server=srv-03&replays_from=1&span=7d",
    "list of all settings, one fault": f"/letters/?fingerprint=v1:{3:016}",
}
WORDS = {
    "words, one letter": f"{OF_LARGE}?text=4242",
    "words, in every letter": f"{OF_LARGE}?text=customer+export",
    "words, one customer": f"/letters/?text=c{CUSTOMERS - 1}",
    "words, begin": f"{OF_LARGE}?text=c12*",
    "words, and a filter": f"{OF_LARGE}?text=customer&server=srv-08&exception=error3",
    "words, that never meet": "/letters/?text=c17+c18",
    "property = value": f"{OF_LARGE}?prop=region%3Dsouth",
    "property = value and words": "/letters/?prop=region%3Dsouth&prop=tenant%3D7&text=c33",
}


def measure(here: Here) -> Sequence[Line]:
    make(here.rows)
    give_it_a_broker()
    goal = GOALS[here.database]
    bare = percentile_95(times(_bare_query, ROUNDS))
    pages = [
        (name, path, goal) for name, path in {**GROUPS, **LISTS, "one letter": _letter(here.rows)}.items()
    ]
    pages += [(name, path, GOAL_OF_WORDS) for name, path in WORDS.items()]
    return [_line(here, name, path, goal, bare) for name, path, goal in pages]


def _letter(rows: int) -> str:
    return f"/letters/{rows // 2}/"


def _line(here: Here, name: str, path: str, goal: float, bare: float) -> Delay:
    from django.contrib.auth.models import User
    from django.test import Client

    user = User.objects.filter(username="bench").first() or User.objects.create_superuser(
        "bench", password="bench"
    )
    client = Client()
    client.force_login(user)

    def look() -> None:
        answer = client.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answers {answer.status_code}")

    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Delay(
        name=f"{here.database} · {name}",
        product=percentile_95(times(look, ROUNDS)),
        reference=bare,
        goal=goal,
        peak_memory_mb=memory,
    )


def _bare_query() -> object:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "select * from dlq_deadletter where queue = %s and state = 'dead' order by id desc limit 50",
            [f"DLQ.{LARGE}"],
        )
        return cursor.fetchall()
