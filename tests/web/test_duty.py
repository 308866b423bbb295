"""Servers that are cordoned, drained and taken back; settings that are off for a time."""

from datetime import timedelta

import pytest

from agents.activations.plan import plan_open_activations
from agents.models import BreakerTrip, Duty, LaunchSetting, Pool, Run, Server, StateChange
from agents.reasons import TIME_OVER
from agents.servers.operations import expire_duties, set_duty
from agents.settings.enable import disable_setting, enable_setting, end_pauses
from console.operations.refusals import Refused
from console.reasons import said
from tests.web.rows import NOW, make_alive, make_setting

pytestmark = pytest.mark.both_databases

HOUR = timedelta(hours=1)


def homes() -> list[str]:
    return sorted(Run.objects.filter(wanted=True).values_list("server__name", flat=True))


def test_nothing_new_begins_on_a_cordoned_server_and_what_runs_there_stays(
    pool: Pool, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW)
    stays = make_setting(pool, "stays")
    enable_setting(stays, None, NOW)
    assert set_duty(server, Duty.CORDONED, None, NOW, reason="new disks")
    assert not set_duty(server, Duty.CORDONED, None, NOW, reason="new disks")
    enable_setting(make_setting(pool, "many", spread="MANY"), None, NOW)

    assert homes() == ["srv-1", "srv-2"]
    assert Run.objects.get(activation__setting=stays).server == server


def test_the_activation_says_that_every_server_is_cordoned(
    setting: LaunchSetting, pool: Pool, server: Server
) -> None:
    make_alive(server, now=NOW)
    set_duty(server, Duty.CORDONED, None, NOW)
    activation = enable_setting(setting, None, NOW)

    assert activation is not None
    assert str(activation.reason).endswith("is cordoned or draining.")
    assert set_duty(server, Duty.ACTIVE, None, NOW)
    assert homes() == ["srv-1"]


def test_a_draining_server_gives_its_runs_away(pool: Pool, server: Server, second_server: Server) -> None:
    make_alive(server, second_server, now=NOW)
    enable_setting(make_setting(pool, "any"), None, NOW)
    enable_setting(make_setting(pool, "many", spread="MANY"), None, NOW)
    set_duty(server, Duty.DRAINING, None, NOW)

    assert homes() == ["srv-2", "srv-2"]
    set_duty(server, Duty.ACTIVE, None, NOW)
    assert homes() == ["srv-1", "srv-2", "srv-2"]


def test_the_only_able_server_keeps_the_run_of_any_though_it_drains(
    setting: LaunchSetting, server: Server
) -> None:
    make_alive(server, now=NOW)
    enable_setting(setting, None, NOW)
    set_duty(server, Duty.DRAINING, None, NOW)
    plan_open_activations(NOW)

    assert homes() == ["srv-1"]


def test_a_standalone_run_of_any_begins_elsewhere_only_when_it_has_stopped(
    pool: Pool, server: Server, second_server: Server
) -> None:
    setting = standalone(pool, server, second_server)
    activation = enable_setting(setting, None, NOW)
    assert activation is not None
    set_duty(server, Duty.DRAINING, None, NOW)
    plan_open_activations(NOW)
    assert homes() == []

    Run.objects.update(state="finished", closed_at=NOW)
    plan_open_activations(NOW)
    assert homes() == ["srv-2"]


def test_a_standalone_run_of_any_is_taken_over_only_when_its_lease_is_over(
    pool: Pool, server: Server, second_server: Server
) -> None:
    enable_setting(standalone(pool, server, second_server), None, NOW)
    for seconds, home in ((16, "srv-1"), (24, "srv-1"), (25, "srv-2")):
        later = NOW + timedelta(seconds=seconds)
        make_alive(second_server, now=later)
        plan_open_activations(later)
        assert homes() == [home]


def test_a_standalone_run_of_any_waits_for_the_one_of_the_activation_before(
    pool: Pool, server: Server
) -> None:
    setting = standalone(pool, server)
    enable_setting(setting, None, NOW)
    disable_setting(setting, None, said(""), NOW)
    activation = enable_setting(setting, None, NOW)

    assert activation is not None
    assert (homes(), str(activation.reason)) == ([], "The previous instance is still stopping.")


def standalone(pool: Pool, *servers: Server) -> LaunchSetting:
    from agents.models import OfferedAgent

    make_alive(*servers, now=NOW)
    OfferedAgent.objects.update(kind="standalone")
    return make_setting(pool, kind="standalone", destination=None)


def test_the_end_of_a_duty_takes_the_server_back(setting: LaunchSetting, server: Server) -> None:
    make_alive(server, now=NOW)
    set_duty(server, Duty.CORDONED, None, NOW, reason="new disks", until=NOW + HOUR)
    enable_setting(setting, None, NOW)
    assert expire_duties(NOW + HOUR - timedelta(seconds=1)) == 0

    make_alive(server, now=NOW + HOUR)
    assert expire_duties(NOW + HOUR) == 1
    assert homes() == ["srv-1"]
    changes = (
        StateChange.objects.filter(what="server", setting=None)
        .order_by("id")
        .values_list("server", "old", "new")
    )
    assert list(changes) == [(server.pk, "active", "cordoned"), (server.pk, "cordoned", "active")]


def test_an_end_in_the_past_is_refused(setting: LaunchSetting, server: Server) -> None:
    with pytest.raises(Refused, match="in the past"):
        set_duty(server, Duty.CORDONED, None, NOW, until=NOW)
    with pytest.raises(Refused, match="in the past"):
        disable_setting(setting, None, said(""), NOW, until=NOW)


def test_a_setting_that_is_off_for_a_time_is_enabled_by_itself(setting: LaunchSetting) -> None:
    enable_setting(setting, None, NOW)
    disable_setting(setting, None, said("supplier moves"), NOW, ticket="OPS-12", until=NOW + HOUR)
    setting.refresh_from_db()
    assert (setting.disabled_ticket, setting.disabled_until) == ("OPS-12", NOW + HOUR)
    assert end_pauses(NOW + HOUR - timedelta(seconds=1)) == 0

    assert end_pauses(NOW + HOUR) == 1
    setting.refresh_from_db()
    assert (setting.enabled, setting.disabled_ticket, setting.disabled_until) == (True, "", None)
    assert StateChange.objects.filter(new="enabled", reason=TIME_OVER()).exists()


def test_after_a_trip_it_stays_off(setting: LaunchSetting) -> None:
    LaunchSetting.objects.update(disabled_until=NOW)
    trip = BreakerTrip.objects.create(setting=setting, reason="any_type", at=NOW)
    assert end_pauses(NOW + HOUR) == 0

    BreakerTrip.objects.filter(pk=trip.pk).update(ended_at=NOW)
    assert end_pauses(NOW + HOUR) == 1


def test_what_cannot_be_enabled_yet_is_tried_again(setting: LaunchSetting) -> None:
    LaunchSetting.objects.update(disabled_until=NOW, provision_state="pending")
    assert end_pauses(NOW + HOUR) == 0
    LaunchSetting.objects.update(provision_state="ready")

    assert end_pauses(NOW + HOUR) == 1
