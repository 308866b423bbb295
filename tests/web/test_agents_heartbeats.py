"""What a KMA's heartbeat does."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.heartbeat import heartbeats
from agents.heartbeat.heartbeats import WrongServer, accept_heartbeat
from agents.models import LaunchSetting, OfferedAgent, Pool, Run, RunPhase, Server, StateChange
from agents.pages.history import sentence
from agents.settings.enable import disable_setting, enable_setting
from console.reasons import NO_REASON, said
from contract import wire
from contract.messages import OLDEST_VERSION, VERSION, BlockedMessage, Heartbeat, RunReport, SpoolReport
from contract.reasons import HANDLING_SLOW
from contract.records import BreakerCounts, RunState
from tests.web.rows import NOW, activate, api_client, heartbeat, heartbeat_json

SLOW = HANDLING_SLOW(seconds=2.5, limit=3.0)


def report(run: Run, state: RunState = RunState.RUNNING, **more: Any) -> RunReport:
    return RunReport(
        run.activation_id, more.pop("epoch", run.epoch), run.activation.setting.key, state, **more
    )


def test_the_first_heartbeat_makes_a_server_alive_and_stores_what_it_says(server: Server) -> None:
    sent = NOW + timedelta(seconds=3)
    accept_heartbeat(
        server,
        heartbeat("srv-1", sent_at=sent, agents=("demo.orders", "demo.scripted"), problems=(SLOW,)),
        NOW,
    )

    server.refresh_from_db()
    assert (server.state(NOW), server.clock_skew_seconds) == ("alive", 3.0)
    assert [(each.code, each.params) for each in server.problems] == [
        ("run.handling_slow", {"seconds": 2.5, "limit": 3.0})
    ]
    assert set(server.offered_agents.values_list("name", flat=True)) == {"demo.orders", "demo.scripted"}


def test_an_agent_that_is_no_longer_offered_is_forgotten(server: Server) -> None:
    accept_heartbeat(server, heartbeat("srv-1", agents=("a", "b")), NOW)
    accept_heartbeat(server, heartbeat("srv-1", agents=("b",)), NOW)

    assert list(OfferedAgent.objects.values_list("name", flat=True)) == ["b"]


def test_a_heartbeat_for_another_server_is_refused_whole(server: Server, second_server: Server) -> None:
    with pytest.raises(WrongServer):
        accept_heartbeat(server, heartbeat("srv-2"), NOW)

    second_server.refresh_from_db()
    assert second_server.last_seen_at is None


def test_a_setting_enabled_before_any_server_is_alive_starts_when_one_appears(
    setting: LaunchSetting, server: Server
) -> None:
    activation = activate(setting, None, NOW)
    assert (activation.state, activation.runs.count()) == ("pending", 0)
    assert "No server in the pool" in str(activation.reason)

    reply = accept_heartbeat(server, heartbeat("srv-1"), NOW)

    assert reply.desired is not None
    assert [(run.setting, run.agent, run.queue, run.epoch) for run in reply.desired.runs] == [
        ("orders", "demo.orders", "orders", 1)
    ]
    activation.refresh_from_db()
    assert (activation.state, activation.reason) == ("running", NO_REASON)


def test_a_kma_that_has_the_desired_state_gets_no_copy_of_it(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    first = accept_heartbeat(server, heartbeat("srv-1"), NOW)
    second = accept_heartbeat(server, heartbeat("srv-1", desired_version=first.desired_version), NOW)

    assert first.desired is not None and first.desired.version == first.desired_version
    assert (second.desired, second.desired_version) == (None, first.desired_version)


def test_the_version_changes_exactly_when_the_content_does(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    versions = [accept_heartbeat(server, heartbeat("srv-1"), NOW).desired_version for _ in range(2)]
    LaunchSetting.objects.update(concurrency=4)
    versions.append(accept_heartbeat(server, heartbeat("srv-1"), NOW).desired_version)
    LaunchSetting.objects.update(concurrency=1, description="words do not matter to a KMA")
    versions.append(accept_heartbeat(server, heartbeat("srv-1"), NOW).desired_version)

    assert versions[0] == versions[1] == versions[3] != versions[2]


def test_a_heartbeat_without_news_writes_one_row_only(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    reply = accept_heartbeat(server, heartbeat("srv-1"), NOW)
    run = Run.objects.get()
    boot = uuid4()
    same: dict[str, Any] = {"desired_version": reply.desired_version, "boot": boot, "sent_at": NOW}
    accept_heartbeat(server, heartbeat("srv-1", report(run, handled=7), **same), NOW)

    with CaptureQueriesContext(connection) as queries:
        accept_heartbeat(server, heartbeat("srv-1", report(run, handled=7), **same), NOW)

    written = [query["sql"] for query in queries if query["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]
    assert len(written) == 1 and "agents_server" in written[0]
    assert len(queries) < 12


def test_claims_about_a_run_are_stored(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    run = Run.objects.get()
    counts = BreakerCounts(same_type="KeyError", same=2, any=5)
    claim = report(
        run, handled=10, restarts=1, in_progress=2, connected=True, counts=counts, problems=(SLOW,)
    )
    accept_heartbeat(server, heartbeat("srv-1", claim), NOW)

    run.refresh_from_db()
    assert (run.state, run.handled, run.restarts, run.in_progress, run.connected) == (
        "running",
        10,
        1,
        2,
        True,
    )
    assert (run.same_type, run.same_count, run.any_count) == ("KeyError", 2, 5)
    assert [str(problem) for problem in run.problems] == ["processing has taken 2.5 s; the limit is 3 s"]


def test_claims_of_an_old_epoch_or_an_unknown_run_have_no_effect(
    setting: LaunchSetting, server: Server
) -> None:
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    old = Run.objects.get()
    new = Run.objects.create(activation=old.activation, server=server, epoch=old.epoch + 1)
    unknown = RunReport(uuid4(), 1, "nothing", RunState.RUNNING, handled=1)
    reply = accept_heartbeat(server, heartbeat("srv-1", report(old, handled=99), unknown), NOW)

    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.handled, new.handled, new.state) == (0, 0, RunPhase.WANTED)
    assert reply.desired is not None


def test_a_lost_run_is_not_revived_by_the_server_that_was_cut_off(
    setting: LaunchSetting, server: Server
) -> None:
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    Run.objects.update(state=RunPhase.LOST, wanted=False)
    accept_heartbeat(server, heartbeat("srv-1", report(Run.objects.get())), NOW)

    assert Run.objects.filter(wanted=False).get().state == RunPhase.LOST


def test_a_run_withdrawn_before_its_kma_began_it_is_closed(setting: LaunchSetting, server: Server) -> None:
    activation = activate(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    disable_setting(setting, None, said(""), NOW)
    reply = accept_heartbeat(server, heartbeat("srv-1"), NOW)
    accept_heartbeat(server, heartbeat("srv-1", desired_version=reply.desired_version), NOW)

    activation.refresh_from_db()
    assert (activation.state, activation.ended_at) == ("stopped", NOW)


def test_a_run_withdrawn_while_it_was_to_start_is_no_loss(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    starting = report(Run.objects.get(), RunState.STARTING)
    accept_heartbeat(server, heartbeat("srv-1", starting), NOW)
    disable_setting(setting, None, said(""), NOW)
    reply = accept_heartbeat(server, heartbeat("srv-1", starting), NOW)
    accept_heartbeat(server, heartbeat("srv-1", starting, desired_version=reply.desired_version), NOW)
    assert Run.objects.get().closed_at is None, "the KMA still speaks of it"
    accept_heartbeat(server, heartbeat("srv-1", desired_version=reply.desired_version), NOW)

    assert Run.objects.get().state == RunPhase.FINISHED


def test_a_spool_beyond_the_database_is_bounded(server: Server) -> None:
    accept_heartbeat(server, heartbeat("srv-1", spool=SpoolReport(rows=2**63, bytes=2**70)), NOW)
    assert Server.objects.get().spool_rows == 2**63 - 1


def test_numbers_beyond_the_database_are_bounded(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    accept_heartbeat(
        server, heartbeat("srv-1", report(Run.objects.get(), handled=10**30, in_progress=-5)), NOW
    )

    run = Run.objects.get()
    assert (run.handled, run.in_progress) == (2**63 - 1, 0)


# -- over HTTP -----------------------------------------------------------------------------------------------


def test_a_kma_heartbeats_over_rest(server: Server) -> None:
    answer = api_client(server).post("/api/v1/heartbeat/", heartbeat_json("srv-1"), format="json")

    assert answer.status_code == 200
    assert answer.json()["desired"] == {
        "server": "srv-1",
        "version": answer.json()["desired_version"],
        "runs": [],
    }


def test_another_servers_heartbeat_is_answered_403(server: Server, second_server: Server) -> None:
    answer = api_client(server).post("/api/v1/heartbeat/", heartbeat_json("srv-2"), format="json")

    assert answer.status_code == 403
    assert answer.json()["error"] == "other_server"


def test_people_cannot_heartbeat(operator: Any) -> None:
    assert (
        api_client(operator).post("/api/v1/heartbeat/", heartbeat_json("srv-1"), format="json").status_code
        == 401
    )
    assert api_client().post("/api/v1/heartbeat/", heartbeat_json("srv-1"), format="json").status_code == 401


def test_a_heartbeat_of_another_shape_is_refused_with_the_place(server: Server) -> None:
    body = heartbeat_json("srv-1") | {"runs": [{"activation": "no uuid"}]}
    answer = api_client(server).post("/api/v1/heartbeat/", body, format="json")

    assert answer.status_code == 400
    assert (answer.json()["error"], answer.json()["where"]) == ("not_as_agreed", "runs[0].activation")


@pytest.mark.parametrize("version", [0, VERSION + 1])
def test_a_version_that_is_too_new_or_too_old_is_refused_with_what_to_do(
    server: Server, version: int
) -> None:
    body = heartbeat_json("srv-1") | {"version": version}
    answer = api_client(server).post("/api/v1/heartbeat/", body, format="json")

    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_version")


def test_the_version_before_is_heard_and_answered_in_its_names(
    setting: LaunchSetting, server: Server
) -> None:
    setting.breaker_m = 7
    setting.save()
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    claim: Any = wire.dump(report(Run.objects.get(), handled=3))
    del claim["problems"], claim["blocked"]
    body = heartbeat_json("srv-1") | {
        "version": OLDEST_VERSION,
        "problems": ["disk is slow"],
        "runs": [claim | {"problem": "blocked by the message ID:1"}],
    }
    answer = api_client(server).post("/api/v1/heartbeat/", body, format="json")

    assert (answer.status_code, answer.json()["version"]) == (200, OLDEST_VERSION)
    (sent,) = answer.json()["desired"]["runs"]
    assert sent["breaker_m"] == 7 and "max_failures" not in sent
    run = Run.objects.get()
    server.refresh_from_db()
    assert (run.handled, run.blocked, [str(each) for each in run.problems]) == (
        3,
        None,
        ["blocked by the message ID:1"],
    )
    assert [each.code for each in (*run.problems, *server.problems)] == ["legacy.text"] * 2


def test_a_block_without_a_sensible_wait_is_one_for_a_person(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    for seconds, stored in ((float("inf"), None), (float("nan"), None), (-1.0, None), (2.5, 2.5)):
        blocked = BlockedMessage("k\0" * 999, 2**80, seconds)
        accept_heartbeat(server, heartbeat("srv-1", report(Run.objects.get(), blocked=blocked)), NOW)
        found: Any = Run.objects.get().blocked
        assert (found["retry_seconds"], found["attempt"]) == (stored, 2**31 - 1)
        assert found["key"].startswith("k␀k") and len(found["key"]) == 255


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_hostile_text_is_stored_readable(server: Server, text: str) -> None:
    message = heartbeat("srv-1", spool=SpoolReport(rows=3))
    data: Any = wire.dump(message)
    data["problems"] = [{"code": text, "params": {text: text}}]
    accept_heartbeat(server, wire.load(Heartbeat, data), NOW)

    server.refresh_from_db()
    assert len(server.problems) == 1


def test_a_pool_is_planned_only_for_its_own_servers(
    setting: LaunchSetting, pool: Pool, server: Server
) -> None:
    stranger = Server.objects.create(name="srv-9")
    enable_setting(setting, None, NOW)
    accept_heartbeat(stranger, heartbeat("srv-9"), NOW)

    assert not Run.objects.exists()


def test_a_flood_of_problems_is_kept_within_bounds(setting: LaunchSetting, server: Server) -> None:
    enable_setting(setting, None, NOW)
    accept_heartbeat(server, heartbeat("srv-1"), NOW)
    claim = report(Run.objects.get(), problems=(SLOW,) * 99)
    accept_heartbeat(server, heartbeat("srv-1", claim, problems=(SLOW,) * 99), NOW)

    server.refresh_from_db()
    assert (len(Run.objects.get().problems), len(server.problems)) == (5, 20)


# -- versions ------------------------------------------------------------------------------------------------


def versions(server: Server) -> list[tuple[str, str, str]]:
    rows = StateChange.objects.filter(server=server, what="version").order_by("pk")
    return [(str(row.reason), row.old, row.new) for row in rows]


def offering(version: str, kma: str = "1.0") -> Heartbeat:
    sent = heartbeat("srv-1", agents=("demo.orders",))
    return replace(sent, kma_version=kma, agents=(replace(sent.agents[0], version=version),))


def test_a_new_version_of_an_agent_or_of_the_kma_is_in_the_history_and_a_first_one_is_not(
    server: Server,
) -> None:
    accept_heartbeat(server, offering("1.3"), NOW)
    assert versions(server) == []

    for version in ("1.4", "1.4"):
        accept_heartbeat(server, offering(version), NOW)
    accept_heartbeat(server, offering("1.4", kma="1.1"), NOW)

    assert versions(server) == [("agent demo.orders", "1.3", "1.4"), ("KMA", "1.0", "1.1")]
    [history] = StateChange.objects.filter(reason__params__agent="demo.orders")
    assert sentence(history) == "Version: 1.3 → 1.4"


def test_a_server_that_changes_versions_all_the_time_fills_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "MOST_VERSIONS", 3)
    for number in range(8):
        accept_heartbeat(server, offering(f"1.{number}"), NOW + timedelta(seconds=number))
    assert [new for _reason, _old, new in versions(server)] == ["1.5", "1.6", "1.7"]
