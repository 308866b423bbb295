"""Pages, heartbeats and what runs every few seconds ask the same number of questions however much there
is."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.utils.serializer_helpers import BindingDict

from agents.activations.plan import plan_open_activations
from agents.activations.queries import open_runs
from agents.breaker.trip import evaluate_open
from agents.heartbeat.desired import desired_state
from agents.heartbeat.heartbeats import accept_heartbeat
from agents.liveness import servers_without_broker
from agents.models import LaunchSetting, Pool, Run, Server
from agents.provisioning import queue_counts as figures
from agents.reconciler import tend
from agents.settings.enable import enable_setting
from tests.web.pages import broker_answers, broker_figures
from tests.web.rows import api_client, heartbeat, make_alive, make_setting

pytestmark = pytest.mark.both_databases

PAGES = (
    "/",
    "/settings/",
    "/settings/s-0/",
    "/servers/",
    "/servers/srv-1/",
    "/activations/",
    "/trips/",
    "/groups/",
)
REST = ("settings", "activations", "servers", "groups", "trips")


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    figures.forget()
    broker_answers(monkeypatch, broker_figures(dead=0))
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 0)


def house(pool: Pool, servers: int, settings: int) -> None:
    """So many of both, every second setting on every server, all of them enabled and running."""
    now = timezone.now()
    for number in range(Server.objects.count(), servers):
        pool.servers.add(Server.objects.create(name=f"more-{number}"))
    make_alive(*Server.objects.all(), now=now)
    for number in range(settings):
        if not pool.settings.filter(key=f"s-{number}").exists():
            spread = "MANY" if number % 2 else "ANY"
            enable_setting(make_setting(pool, f"s-{number}", spread=spread), None, now)
    Run.objects.update(state="running", connected=True, reported_at=now)


def questions(step: Callable[[], object]) -> int:
    step()  # what is asked once per process
    with CaptureQueriesContext(connection) as asked:
        step()
    return len(asked)


def grows(pool: Pool, step: Callable[[], object]) -> tuple[int, int]:
    """The questions of `step` in a small house and in a larger one."""
    house(pool, servers=2, settings=3)
    few = questions(step)
    house(pool, servers=7, settings=16)
    return few, questions(step)


@pytest.mark.parametrize("path", PAGES)
def test_a_page(
    path: str, answering: None, client: Client, operator: User, pool: Pool, server: Server
) -> None:
    client.force_login(operator)
    few, many = grows(pool, lambda: client.get(path))

    assert client.get(path).status_code == 200
    assert many <= few <= 44


@pytest.mark.parametrize("path", REST)
def test_a_list_of_the_api(path: str, operator: User, pool: Pool, server: Server) -> None:
    person = api_client(operator)
    few, many = grows(pool, lambda: person.get(f"/api/v1/{path}/"))

    assert person.get(f"/api/v1/{path}/").status_code == 200
    assert many <= few <= 12


def test_what_a_list_of_settings_tells_is_looked_up_once_for_all_rows(
    monkeypatch: pytest.MonkeyPatch, operator: User, pool: Pool, server: Server
) -> None:
    """It has dozens of fields, of which each was asked for each row whether it may be read."""
    looked = Counter[str]()
    look = BindingDict.__getitem__

    def counted(fields: BindingDict, name: str) -> object:
        looked[name] += 1
        return look(fields, name)

    monkeypatch.setattr(BindingDict, "__getitem__", counted)
    house(pool, servers=2, settings=16)
    assert len(api_client(operator).get("/api/v1/settings/").json()["results"]) == 16
    assert 0 < looked["key"] < 5


def test_a_heartbeat(pool: Pool, server: Server) -> None:
    few, many = grows(pool, lambda: accept_heartbeat(server, heartbeat("srv-1"), timezone.now()))

    assert len(desired_state(server).runs) > 3
    assert many <= few <= 20


def test_tend(pool: Pool, server: Server) -> None:
    few, many = grows(pool, lambda: tend(timezone.now()))

    assert many <= few <= 40


def test_what_waits_for_a_server_is_looked_at_together(pool: Pool, server: Server) -> None:
    """It is with every heartbeat while something waits."""
    few, many = grows(pool, lambda: plan_open_activations(timezone.now() + timedelta(hours=1), server))

    assert many <= few <= 10


def test_open_activations_are_planned_by_their_ids(pool: Pool, server: Server) -> None:
    """Joined with the settings, SQLite reads every activation that ever was."""
    house(pool, servers=2, settings=3)
    with CaptureQueriesContext(connection) as asked:
        plan_open_activations(timezone.now())

    joined = [
        query["sql"] for query in asked.captured_queries if 'JOIN "agents_launchsetting"' in query["sql"]
    ]
    assert joined and all('"agents_activation"."id" IN' in sql for sql in joined)


def test_each_choice_goes_by_the_starts_before_it(pool: Pool, server: Server, second_server: Server) -> None:
    """All are looked at with the same facts, and yet they do not all go to the server that was the least
    loaded."""
    now = timezone.now()
    for number in range(6):
        enable_setting(make_setting(pool, f"s-{number}"), None, now)
    make_alive(server, second_server, now=now)

    assert plan_open_activations(now) == 6
    assert sorted(Run.objects.values_list("server__name", flat=True)) == ["srv-1"] * 3 + ["srv-2"] * 3


@pytest.mark.parametrize(
    "look",
    (
        lambda: open_runs(LaunchSetting.objects.values_list("pk", flat=True)),
        lambda: evaluate_open(timezone.now()),
    ),
)
def test_runs_of_open_activations_are_sought_by_these_alone(
    look: Callable[[], object], pool: Pool, server: Server
) -> None:
    """Joined with them or sorted, SQLite reads every run that ever was."""
    house(pool, servers=2, settings=3)
    with CaptureQueriesContext(connection) as asked:
        look()

    [sql] = [query["sql"] for query in asked.captured_queries if 'FROM "agents_run"' in query["sql"]]
    assert "JOIN" not in sql and "ORDER BY" not in sql
    assert len(open_runs(pool.settings.values_list("pk", flat=True))) == 3


def test_the_page_of_a_silent_server_reads_its_runs_once(
    answering: None, client: Client, pool: Pool, server: Server
) -> None:
    """Whether it can be removed is a question of their settings alone."""
    house(pool, servers=2, settings=3)
    Server.objects.update(last_seen_at=timezone.now() - timedelta(hours=1))
    client.force_login(User.objects.create_superuser("root"))
    with CaptureQueriesContext(connection) as asked:
        shown = client.get(f"/servers/{server.name}/").content.decode()

    wide = [query["sql"] for query in asked.captured_queries if '"agents_run"."handled"' in query["sql"]]
    assert len([sql for sql in wide if "LIMIT" not in sql]) == 1, "those before have a limit"
    assert "open instances (s-0" in shown


def test_who_has_lost_the_broker_is_sought_among_open_runs_alone(pool: Pool, server: Server) -> None:
    """Begun with the servers, each overview would read every run that ever was."""
    house(pool, servers=2, settings=3)
    with CaptureQueriesContext(connection) as asked:
        assert servers_without_broker(timezone.now()) == []

    [sql] = [query["sql"] for query in asked.captured_queries]
    assert '"agents_run"."closed_at" IS NULL' in sql.partition(" WHERE ")[2].partition(" GROUP BY ")[0]
    assert "OUTER JOIN" not in sql

    Run.objects.update(connected=False)
    lost = dict(servers_without_broker(timezone.now()))
    open_there = Run.objects.filter(closed_at=None).order_by().values("server").annotate(runs=Count("pk"))
    assert {each.pk: runs for each, runs in lost.items()} == dict(open_there.values_list("server", "runs"))
