"""Lists of activations: narrowed, paged by key, and read by an index also among a million."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from agents.activations.queries import activations
from agents.heartbeat.desired import desired_state
from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import Activation, ActivationState, LaunchSetting, Pool, Run, Server
from agents.reconciler import tend
from agents.settings.enable import enable_setting
from tests.web.rows import NOW, api_client, heartbeat, make_alive, make_setting

pytestmark = pytest.mark.both_databases


def ended(
    setting: LaunchSetting,
    *servers: Server,
    at: datetime = NOW,
    state: str = ActivationState.SUCCEEDED,
) -> Activation:
    made = Activation.objects.create(setting=setting, state=state, started_at=at, ended_at=at)
    for epoch, server in enumerate(servers, start=1):
        Run.objects.create(
            activation=made, server=server, epoch=epoch, wanted=False, closed_at=at, created_at=at
        )
    return made


def crowd(pool: Pool, server: Server, setting: LaunchSetting) -> None:
    """Enough rows for a choice of index to matter: of a few PostgreSQL takes any. Failures are so rare that
    to walk by start until there are enough of them costs far more. `setting` has never failed here."""
    others = [make_setting(pool, f"crowd-{number}") for number in range(9)]
    made = Activation.objects.bulk_create(
        Activation(
            setting=others[n % 9] if n % 50 else setting,
            state="failed" if n % 50 == 7 else "succeeded",
            started_at=NOW + timedelta(seconds=n),
            ended_at=NOW,
        )
        for n in range(3000)
    )
    Run.objects.bulk_create(
        Run(activation=one, server=server, epoch=1, wanted=False, closed_at=NOW, created_at=NOW)
        for one in made
    )


def plan_of(rows: QuerySet[Any]) -> str:
    """What the database says of how it reads the first page; PostgreSQL would read a small table whole."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE agents_activation, agents_run")
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
    return rows[:51].explain()


def test_the_list_is_narrowed_by_setting_state_and_server(
    operator: User, setting: LaunchSetting, pool: Pool, server: Server, second_server: Server
) -> None:
    other = make_setting(pool, "other")
    first = ended(setting, server, at=NOW)
    failed = ended(
        setting, second_server, server, second_server, at=NOW + timedelta(1), state=ActivationState.FAILED
    )
    last = ended(other, second_server, at=NOW + timedelta(2))

    def found(query: str) -> list[str]:
        answer = api_client(operator).get(f"/api/v1/activations/{query}").json()
        return [row["id"] for row in answer["results"]]

    assert found("") == [str(last.pk), str(failed.pk), str(first.pk)]
    assert found("?setting=orders") == [str(failed.pk), str(first.pk)]
    assert found("?state=failed") == [str(failed.pk)]
    assert found("?server=srv-2") == [str(last.pk), str(failed.pk)]
    assert found("?server=srv-1&setting=orders&state=succeeded") == [str(first.pk)]
    assert found("?setting=nothing") == found("?server=nothing") == []


def test_pages_by_key_hold_every_row_once(operator: User, setting: LaunchSetting, server: Server) -> None:
    """Some begin at the same instant, and one more begins between two pages."""
    made = {str(ended(setting, server, at=NOW + timedelta(seconds=number // 3)).pk) for number in range(20)}
    for query in ("?page_size=3", "?page_size=3&server=srv-1"):
        client, seen = api_client(operator), []
        url = f"/api/v1/activations/{query}"
        while url:
            answer = client.get(url).json()
            assert "count" not in answer
            seen += [row["id"] for row in answer["results"]]
            if len(seen) == 3:
                ended(setting, server, at=NOW + timedelta(days=1))
            url = answer["next"]
        assert len(seen) == len(set(seen)) and made <= set(seen)


@pytest.mark.parametrize(("query", "where"), [("state=gone", "state"), ("speed=1", "speed")])
def test_a_filter_that_is_none_is_named(
    operator: User, setting: LaunchSetting, query: str, where: str
) -> None:
    answer = api_client(operator).get(f"/api/v1/activations/?{query}")

    assert (answer.status_code, answer.json()["where"]) == (400, where)


@pytest.mark.parametrize(
    ("narrowed", "index"),
    [
        ({}, "activations_by_start"),
        ({"state": "failed"}, "activations_by_state"),
        ({"setting": "orders"}, "activation_of_setting"),
        ({"setting": "orders", "state": "failed"}, "activations_of_setting_state"),
        ({"server": "srv-1"}, "runs_of_server_by_start"),
    ],
)
def test_each_narrowing_is_read_by_its_index(
    narrowed: dict[str, str],
    index: str,
    setting: LaunchSetting,
    pool: Pool,
    server: Server,
    second_server: Server,
) -> None:
    crowd(pool, second_server, setting)
    ended(setting, server)
    told = plan_of(activations(**narrowed).rows)

    assert index in told, told
    assert "SCAN agents_run\n" not in told and "Seq Scan on agents_activation" not in told, told


def test_a_page_asks_as_many_questions_whatever_its_length(
    operator: User, setting: LaunchSetting, server: Server, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        ended(setting, server, at=NOW + timedelta(seconds=number))
    client = api_client(operator)
    client.get("/api/v1/activations/")

    with django_assert_max_num_queries(8):
        assert len(client.get("/api/v1/activations/").json()["results"]) == 20


# What is indexed only while it goes on: its size does not grow with what ended.
PARTIAL = (
    "unended_activations", "one_open_activation_per_setting", "open_runs_of_activation",
    "open_runs_of_server",
    "wanted_runs_of_server",
)  # fmt: skip


def scans(sql: str) -> list[str]:
    """How a query reads activations, runs or the history from one end to the other, if it does."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {sql}")
            lines = [row[0] for row in cursor.fetchall()]
            return [line for line in lines if "Seq Scan on agents_" in line and _grows(line)]
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        lines = [row[3] for row in cursor.fetchall()]
    whole = [line for line in lines if line.startswith("SCAN ") and _grows(line)]
    return [line for line in whole if not any(index in line for index in PARTIAL)]


def _grows(line: str) -> bool:
    return any(table in line for table in ("agents_activation", "agents_run", "agents_statechange"))


def test_what_runs_every_few_seconds_reads_nothing_whole(setting: LaunchSetting, server: Server) -> None:
    """Heartbeat and tend, with an open activation, an ended one and a run that is being stopped."""
    make_alive(server, now=NOW)
    ended(setting, server, at=NOW - timedelta(days=1))
    enable_setting(setting, None, NOW)
    with CaptureQueriesContext(connection) as asked:
        accept_heartbeat(server, heartbeat("srv-1"), NOW)
        tend(NOW + timedelta(seconds=1))
        desired_state(server)

    selects = {query["sql"] for query in asked.captured_queries if query["sql"].startswith("SELECT")}
    assert len(selects) > 10
    assert not {sql: found for sql in selects if (found := scans(sql))}
