"""A setting that a person stops on one server of several: it ends there, the others go on, and nothing of it
begins there until it is started again."""

import threading
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from agents.activations import plan
from agents.activations.placement_facts import PlanningFacts, read_facts
from agents.activations.plan import plan_open_activations, plan_runs
from agents.models import Duty, LaunchSetting, OfferedAgent, Pool, Run, Server, ServerStop, StateChange
from agents.reasons import STOPPED_HERE, STOPPED_THERE
from agents.reconciler import tend
from agents.servers.operations import set_duty
from agents.settings.enable import disable_setting, enable_setting
from agents.settings.operations import StartOnServer, StopOnServer
from console.operations.operation import perform
from console.operations.refusals import Refused
from console.reasons import said
from tests.web.rows import NOW, activate, api_client, make_alive, make_setting
from tests.web.test_breaker_trips import give_up, is_on, started

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def alive(server: Server, second_server: Server) -> None:
    make_alive(server, second_server, now=NOW)


@pytest.fixture
def many(pool: Pool) -> LaunchSetting:
    return make_setting(pool, spread="MANY")


def stop_on_server(
    setting: LaunchSetting, server: Server, by: User | None, now: datetime, reason: str = ""
) -> bool:
    return perform(StopOnServer, setting, by, now, server=server, reason=reason).changed


def start_on_server(setting: LaunchSetting, server: Server, by: User | None, now: datetime) -> bool:
    return perform(StartOnServer, setting, by, now, server=server).changed


def homes() -> list[str]:
    return sorted(Run.objects.filter(wanted=True).values_list("server__name", flat=True))


def test_it_ends_there_alone_and_does_not_begin_again_until_it_is_started(
    many: LaunchSetting, server: Server, operator: User
) -> None:
    enable_setting(many, None, NOW)
    assert stop_on_server(many, server, operator, NOW, reason="disk full")
    assert homes() == ["srv-2"]
    tend(NOW)
    assert homes() == ["srv-2"]
    withdrawn = StateChange.objects.get(what="run", new="withdrawn")
    assert (withdrawn.server, withdrawn.reason) == (server, STOPPED_HERE())

    disable_setting(many, None, said(""), NOW)
    enable_setting(many, None, NOW)
    assert homes() == ["srv-2"], "until it is started again, whatever else happens"

    assert start_on_server(many, server, operator, NOW)
    assert homes() == ["srv-1", "srv-2"]
    told = StateChange.objects.filter(what="server_stop").order_by("pk")
    assert list(told.values_list("old", "new", "by__username")) == [
        ("", "stopped", "operator"), ("stopped", "started", "operator"),
    ]  # fmt: skip


def test_asked_twice_nothing_more_happens(many: LaunchSetting, server: Server) -> None:
    assert not start_on_server(many, server, None, NOW)
    assert stop_on_server(many, server, None, NOW)
    assert not stop_on_server(many, server, None, NOW, reason="another")
    assert ServerStop.objects.get().reason == ""


def test_what_runs_on_one_server_moves_to_another_one(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    assert homes() == ["srv-1"]
    stop_on_server(setting, server, None, NOW)

    assert homes() == ["srv-2"]


def test_it_ends_there_also_where_nobody_can_take_over_and_says_what_it_waits_for(
    setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    activation = activate(setting, None, NOW)
    Server.objects.filter(pk=second_server.pk).update(last_seen_at=NOW - timedelta(hours=1))
    stop_on_server(setting, server, None, NOW)
    plan_open_activations(NOW)

    activation.refresh_from_db()
    assert (homes(), activation.reason) == ([], STOPPED_THERE(pool="demo", agent="demo.orders"))


def test_a_standalone_run_of_any_begins_elsewhere_only_when_it_has_stopped(
    pool: Pool, server: Server
) -> None:
    OfferedAgent.objects.update(kind="standalone")
    setting = make_setting(pool, kind="standalone", destination=None)
    enable_setting(setting, None, NOW)
    stop_on_server(setting, server, None, NOW)
    assert homes() == []

    Run.objects.update(state="finished", closed_at=NOW)
    plan_open_activations(NOW)
    assert homes() == ["srv-2"]


def test_a_silent_leased_run_is_not_taken_over_before_its_lease_is_over(pool: Pool, server: Server) -> None:
    OfferedAgent.objects.update(kind="standalone")
    setting = make_setting(pool, kind="standalone", destination=None)
    enable_setting(setting, None, NOW)
    later = NOW + timedelta(seconds=16)
    make_alive(Server.objects.get(name="srv-2"), now=later)
    stop_on_server(setting, server, None, later)

    assert (homes(), Run.objects.get().closed_at) == ([], None), "it may still run there"


def test_the_last_server_is_not_stopped(many: LaunchSetting, server: Server, second_server: Server) -> None:
    stop_on_server(many, server, None, NOW)
    with pytest.raises(Refused, match="no other server in its pool can run it"):
        stop_on_server(many, second_server, None, NOW)

    assert ServerStop.objects.count() == 1


def test_a_server_without_the_agent_is_no_other_server(
    many: LaunchSetting, server: Server, second_server: Server
) -> None:
    OfferedAgent.objects.filter(server=second_server).delete()
    with pytest.raises(Refused, match="no other server in its pool can run it"):
        stop_on_server(many, server, None, NOW)


def test_a_server_outside_of_the_pool_is_refused(many: LaunchSetting) -> None:
    with pytest.raises(Refused, match="is not in the pool"):
        stop_on_server(many, Server.objects.create(name="srv-9"), None, NOW)


def test_of_two_that_stop_the_last_two_servers_at_once_one_is_refused(
    many: LaunchSetting, server: Server, second_server: Server
) -> None:
    together = threading.Barrier(2)
    answers: list[bool | str] = []

    def stop(there: Server) -> None:
        try:
            together.wait(10)
            answers.append(stop_on_server(many, there, None, NOW))
        except Refused as refused:
            answers.append(refused.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=stop, args=(there,)) for there in (server, second_server)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(answers, key=str) == [True, "only_server"]


def test_a_planner_that_looked_before_the_stop_starts_nothing_there(
    many: LaunchSetting, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    Server.objects.filter(pk=server.pk).update(last_seen_at=NOW - timedelta(hours=1))
    activation = activate(many, None, NOW)
    assert homes() == ["srv-2"]
    make_alive(server, now=NOW)
    looked: list[bool] = []

    def look(activations: Any, now: datetime) -> PlanningFacts:
        facts = read_facts(activations, now)
        if not looked:
            looked.append(True)
            stop_on_server(many, server, None, NOW)
        return facts

    monkeypatch.setattr(plan, "read_facts", look)
    assert not plan_runs(activation.pk, NOW)

    assert looked and homes() == ["srv-2"]
    assert not Run.objects.filter(server=server).exists()


def test_killed_after_the_commit_the_next_look_withdraws_it(many: LaunchSetting, server: Server) -> None:
    enable_setting(many, None, NOW)
    ServerStop.objects.create(setting=many, server=server, since=NOW)
    assert homes() == ["srv-1", "srv-2"]

    tend(NOW)
    assert homes() == ["srv-2"]


def test_it_goes_with_its_setting_and_its_server(many: LaunchSetting, server: Server) -> None:
    stop_on_server(many, server, None, NOW)
    OfferedAgent.objects.filter(server=server).delete()
    server.delete()

    assert not ServerStop.objects.exists()


# -- the breaker -----------------------------------------------------------------------------------------


def three(many: LaunchSetting) -> dict[str, Run]:
    third = Server.objects.create(name="srv-3")
    many.pool.servers.add(third)
    make_alive(third, now=NOW)
    return started(many)


def test_what_gave_up_where_it_is_stopped_counts_for_nothing(many: LaunchSetting, server: Server) -> None:
    runs = three(many)
    give_up(runs["srv-1"])
    stop_on_server(many, server, None, NOW)
    give_up(runs["srv-2"])
    tend(NOW)
    assert is_on(many), "srv-3 goes on, and srv-1 is not asked"

    give_up(runs["srv-3"])
    assert not is_on(many)


def test_started_again_its_interruption_counts_again(many: LaunchSetting, server: Server) -> None:
    runs = three(many)
    give_up(runs["srv-1"])
    stop_on_server(many, server, None, NOW)
    give_up(runs["srv-2"])
    start_on_server(many, server, None, NOW)
    tend(NOW)

    assert not is_on(many)


def test_one_that_is_stopped_for_a_minute_is_no_witness(
    many: LaunchSetting, server: Server, second_server: Server
) -> None:
    runs = started(many)
    stop_on_server(many, second_server, None, NOW)
    give_up(runs["srv-1"])
    for seconds, on in ((59, True), (60, False)):
        later = NOW + timedelta(seconds=seconds)
        Server.objects.update(last_seen_at=later)
        tend(later)
        assert is_on(many) is on


def test_cordoned_and_stopped_it_counts_from_the_first_of_the_two(
    many: LaunchSetting, second_server: Server
) -> None:
    runs = started(many)
    stop_on_server(many, second_server, None, NOW)
    set_duty(second_server, Duty.CORDONED, None, NOW + timedelta(seconds=30))
    give_up(runs["srv-1"])
    later = NOW + timedelta(seconds=60)
    Server.objects.update(last_seen_at=later)
    tend(later)

    assert not is_on(many)


def test_a_stopped_one_is_not_resumed(many: LaunchSetting, server: Server, operator: User) -> None:
    give_up(started(many)["srv-1"])
    stop_on_server(many, server, None, NOW)
    answer = api_client(operator).post("/api/v1/settings/orders/resume/", {"server": "srv-1"})

    assert (answer.status_code, answer.json()["error"]) == (409, "stopped_there")


# -- REST and command ------------------------------------------------------------------------------------


def test_rest_stops_and_starts_it_and_says_where_it_is_stopped(many: LaunchSetting, operator: User) -> None:
    client = api_client(operator)
    stopped = client.post("/api/v1/settings/orders/stop-on/", {"server": "srv-1", "reason": "disk"})
    [stop] = stopped.json()["stopped_on"]
    assert (stop["server"], stop["by"], stop["reason"]) == ("srv-1", "operator", "disk")
    refused = client.post("/api/v1/settings/orders/stop-on/", {"server": "srv-2"})
    assert (refused.status_code, refused.json()["error"]) == (409, "only_server")

    started_again = client.post("/api/v1/settings/orders/start-on/", {"server": "srv-1"})
    assert started_again.json()["stopped_on"] == []


def test_the_command_line_stops_and_starts_it(many: LaunchSetting) -> None:
    def told(*arguments: str) -> str:
        out = StringIO()
        call_command("settings", *arguments, stdout=out)
        return out.getvalue()

    assert told("stop_on", "orders", "--server", "srv-1") == "Stopping on srv-1: orders\n"
    with pytest.raises(CommandError, match="Disable the setting instead"):
        told("stop_on", "orders", "--server", "srv-2")
    assert told("start_on", "orders", "--server", "srv-1") == "Stop on srv-1 removed: orders\n"
