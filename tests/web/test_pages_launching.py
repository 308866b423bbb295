"""Groups, activations and duties on pages: shown as they are, changed by POST, refused with the reason."""

from datetime import timedelta

import pytest

from agents.models import Activation, Duty, LaunchSetting, Run, ScheduledGroup, Server
from agents.state_history import note
from console.lists import keyset
from tests.web.factories import World
from tests.web.launches import GROUP
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in


def test_a_pass_is_a_line_of_steps(world: World) -> None:
    text = looked_at(signed_in(world, "viewer"), f"/groups/{GROUP}/").text

    assert "Current group run" in text
    assert "1 night-load succeeded 2 min" in text.replace("\xa0", " ")
    assert "2 night-sum running" in text and "3 night-mail pending" in text
    assert "skipped" in text and "02:30" in text


def test_members_move_by_buttons(world: World) -> None:
    client = signed_in(world, "operator")
    client.post(f"/groups/{GROUP}/move/", {"member": "night-sum", "to": "up"})
    client.post(f"/groups/{GROUP}/move/", {"member": "night-sum", "to": "up"})
    client.post(f"/groups/{GROUP}/move/", {"member": "nobody", "to": "down"})

    group = ScheduledGroup.objects.get(name=GROUP)
    keys = list(group.members.order_by("position").values_list("setting__key", flat=True))
    assert keys == ["night-sum", "night-load", "night-mail"]


def test_a_group_is_switched_off_with_its_members(world: World) -> None:
    answer = signed_in(world, "operator").post(
        f"/groups/{GROUP}/disable/", {"reason": "moves house"}, follow=True
    )

    assert "Disabled: nightly" in answer.content.decode()
    assert not LaunchSetting.objects.filter(key__startswith="night-", enabled=True).exists()


def test_a_member_that_is_switched_off_says_that_its_group_went_with_it(world: World) -> None:
    answer = signed_in(world, "operator").post("/settings/night-sum/disable/", follow=True)

    assert f"Disabled: night-sum and its group {GROUP}" in answer.content.decode()


def test_a_member_cannot_be_run_or_switched_on_alone(world: World) -> None:
    client = signed_in(world, "operator")

    assert "belongs to the group" in looked_at(client, "/settings/night-mail/").text
    LaunchSetting.objects.filter(key="night-mail").update(enabled=False)
    why = (
        "The setting cannot be enabled alone: it belongs to the group “nightly”. Enable the "
        "group: its members are enabled together."
    )
    assert why in looked_at(client, "/settings/night-mail/").text
    client.post("/settings/night-mail/enable/")
    assert not LaunchSetting.objects.get(key="night-mail").enabled


def test_switching_off_takes_a_ticket_and_an_end(world: World) -> None:
    client = signed_in(world, "operator")
    client.post("/settings/invoices/disable/", {"reason": "bank closed", "ticket": "OPS-17", "until": "4h"})

    setting = LaunchSetting.objects.get(key="invoices")
    assert (setting.enabled, setting.disabled_ticket) == (False, "OPS-17")
    assert setting.disabled_until and setting.disabled_until - setting.state_since == timedelta(hours=4)
    text = looked_at(client, "/settings/invoices/").text
    assert "ticket OPS-17" in text and "enables automatically in 3 h" in text.replace("\xa0", " ")


def test_a_wrong_end_changes_nothing_and_says_so(world: World) -> None:
    answer = signed_in(world, "operator").post("/settings/invoices/disable/", {"until": "9 years"})

    assert answer.status_code == 200 and "errorlist" in answer.content.decode()
    assert LaunchSetting.objects.get(key="invoices").enabled


def test_an_activation_is_stopped_from_the_page_of_its_setting(world: World) -> None:
    client = signed_in(world, "operator")
    assert "/settings/night-sum/stop/" in looked_at(client, "/settings/night-sum/").links()
    client.post("/settings/night-sum/stop/", {"reason": "wrong day"})

    activation = Activation.objects.filter(setting__key="night-sum").order_by("-started_at").first()
    assert activation and (activation.state == "stopped" or activation.ending == "stopped")


def test_a_server_is_cordoned_with_reason_and_end(world: World) -> None:
    client = signed_in(world, "operator")
    answer = client.post(
        "/servers/srv-1/cordon/", {"reason": "new <b>memory</b>", "until": "1d"}, follow=True
    )

    server = Server.objects.get(name="srv-1")
    assert (server.duty, server.duty_reason) == (Duty.CORDONED, "new <b>memory</b>")
    assert "new &lt;b&gt;memory" in answer.content.decode()
    client.post("/servers/srv-1/uncordon/")
    assert Server.objects.get(name="srv-1").duty == Duty.ACTIVE


def test_a_duty_is_shown_with_who_why_and_until_when(world: World) -> None:
    text = looked_at(signed_in(world, "viewer"), "/servers/srv-3/").text.replace("\xa0", " ")

    assert "cordoned 3 h ago by operator: new disk on Friday" in text
    assert "The server will be uncordoned automatically in 4 h" in text
    assert "Can cordon and drain servers" in text


def test_a_drain_says_when_it_is_complete(world: World) -> None:
    client = signed_in(world, "viewer")
    busy = Server.objects.filter(runs__closed_at=None)[0]
    Server.objects.filter(name__in=[busy.name, "srv-5"]).update(duty=Duty.DRAINING, duty_since=world.now)
    Run.objects.filter(server__name="srv-5").update(closed_at=world.now, state="finished")

    assert "instances are still running here." in looked_at(client, f"/servers/{busy.name}/").text
    assert "The drain is complete: nothing runs here." in looked_at(client, "/servers/srv-5/").text


def test_runs_before_are_listed_by_their_end(world: World) -> None:
    run = Run.objects.exclude(closed_at=None).order_by("created_at")[0]
    Run.objects.filter(pk=run.pk).update(closed_at=world.now + timedelta(seconds=1))

    answer = signed_in(world, "viewer").get(f"/servers/{run.server.name}/")
    ends = [past.closed_at for past, _shown in answer.context["past"]]
    assert answer.context["past"][0][0] == run and ends == sorted(ends, reverse=True)


def test_the_history_says_schedules_in_words_of_people(world: World) -> None:
    setting = LaunchSetting.objects.get(key="stock-sync")
    for new in ("0 2 * * * Europe/Berlin, skip", "90 s, once", "cut where it is lo"):
        note(setting, "schedule", "", new, now=world.now)
    text = looked_at(signed_in(world, "viewer"), "/settings/stock-sync/").text

    assert "Schedule: every day at 02:00, Europe/Berlin, missed runs: skip" in text
    assert "Schedule: every 90 seconds, missed runs: run once" in text.replace("\xa0", " ")
    assert "Schedule: cut where it is lo" in text


def test_what_launch_control_needs_a_person_for_is_on_the_overview(world: World) -> None:
    assert world.launches
    page = looked_at(signed_in(world, "operator"), "/")

    assert (
        "disabled by the breaker 9 min ago: 3 consecutive IndexError failures on srv-2, srv-3"
        in page.text.replace("\xa0", " ")
    )
    assert "/settings/returns/enable/" in page.links() and f"/trips/{world.launches.trip.pk}/" in page.links()
    assert "cordoned for 3 h · operator · new disk on Friday" in page.text.replace("\xa0", " ")
    world.launches.passes[1].delete()
    assert "the last group run failed 23 h ago" in looked_at(signed_in(world, "viewer"), "/").text.replace(
        "\xa0", " "
    )


def test_activations_are_paged_by_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyset, "PAGE", 2)
    monkeypatch.setattr(keyset.keyset_page, "__defaults__", (2,))
    client, seen, path = signed_in(world, "viewer"), [], "/activations/"
    for _page in range(20):
        page = looked_at(client, path)
        seen += [link for link in page.links() if link.startswith("/activations/") and len(link) > 20]
        older = [link for link in page.links() if link.startswith("?before=")]
        if not older:
            break
        path = f"/activations/{older[0]}"

    ids = [str(pk) for pk in Activation.objects.order_by("-started_at", "-id").values_list("pk", flat=True)]
    assert [link.split("/")[2] for link in seen] == ids


def test_a_cursor_that_nobody_wrote_is_no_error(world: World) -> None:
    client = signed_in(world, "viewer")
    for wrong in ("x", "2026-01-01T00:00:00+00:00_x", "2026-01-01T00:00:00+00:00_99999999999999999999", "_"):
        for path in ("/activations/", "/trips/"):
            assert client.get(path, {"before": wrong}).status_code == 200, (path, wrong)


def test_a_servers_differing_is_a_badge(world: World) -> None:
    assert (
        "partial: failing on some servers"
        in looked_at(signed_in(world, "viewer"), "/settings/orders-export/").text
    )
    assert "partial" not in looked_at(signed_in(world, "viewer"), "/settings/mail-send/").text


def test_members_that_went_off_with_their_group_are_told_by_the_trip(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_answers(monkeypatch, broker_figures(waiting=7, dead=0))
    LaunchSetting.objects.filter(key__startswith="night-").update(enabled=False)
    operator = signed_in(world, "operator")
    page = looked_at(operator, "/")
    assert "night-mail disabled for" in page.text and "/settings/night-mail/enable/" not in page.links()

    trip = world.launches.trip  # type: ignore[union-attr]
    trip.group, trip.setting = (
        ScheduledGroup.objects.get(name=GROUP),
        LaunchSetting.objects.get(key="night-load"),
    )
    trip.save()
    page = looked_at(operator, "/")
    assert "group nightly is disabled too" in page.text and f"/groups/{GROUP}/" in page.links()
    assert "night-mail disabled for" not in page.text
