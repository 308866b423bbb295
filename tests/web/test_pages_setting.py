"""The page of a setting says what follows from each field; forms show it before they are saved."""

import pytest
from django.conf import settings

from agents.destinations import redelivery
from agents.models import Destination, LaunchSetting, OfferedAgent, Pool, Schedule
from agents.pages import setting_fields
from failures.models import FailureProtocol
from failures.pages import groups as failure_groups
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import make_setting


def test_what_the_breaker_does_at_its_limit_is_said(world: World) -> None:
    text = looked_at(signed_in(world, "viewer"), "/settings/orders-export/").text

    assert "consecutive failures: 3 of one type, or 10 of any type" in text
    assert (
        "When a server reaches the threshold, the setting is interrupted on that server. "
        "After interruptions on two servers, it is disabled everywhere."
    ) in text
    of_any = looked_at(signed_in(world, "viewer"), "/settings/mail-send/").text
    assert "disabled until someone re-enables it" in of_any
    assert "2 of 3 KeyError" in text and "4 of 10" in text


def test_the_schedule_is_drawn_with_its_band_and_the_time_to_the_dead_letter_queue(world: World) -> None:
    text = looked_at(signed_in(world, "viewer"), "/settings/orders-export/").text

    # 5 s, 10 s and 20 s, each 15 % more or less.
    assert (
        "1 immediately 2 4.25 s – 5.75 s 3 13 s – 17 s 4 30 s – 40 s dead-lettered 30 s – 40 s"
        in text.replace("\xa0", " ")
    )


def test_one_bad_message_alone_is_warned_of(world: World) -> None:
    client = signed_in(world, "viewer")

    many = looked_at(client, "/settings/orders-export/").text
    assert (
        "On a quiet queue, one bad message can interrupt this setting on a server after 3 "
        "attempts, before the message is dead-lettered."
    ) in many
    any_one = looked_at(client, "/settings/mail-send/").text
    assert (
        "On a quiet queue, one bad message disables this setting after 3 attempts, before the "
        "message is dead-lettered."
    ) in any_one
    assert (
        "To avoid this, count each message once, raise the threshold, or reduce the "
        "destination's maximum attempts."
    ) in any_one
    assert (
        "On a quiet queue, one bad message disables this setting after"
        not in looked_at(client, "/settings/invoices/").text
    )


def test_a_bad_message_that_dies_with_the_trip_is_told_truly(world: World) -> None:
    setting = LaunchSetting.objects.get(key="mail-send")
    Destination.objects.filter(pk=setting.subscribed.pk).update(max_attempts=3)

    text = looked_at(signed_in(world, "viewer"), "/settings/mail-send/").text
    assert (
        "On a quiet queue, one bad message disables this setting when the last attempt (3) fails."
    ) in text
    assert "On a quiet queue, one bad message disables this setting after" not in text


def test_one_that_only_people_start_waits_for_no_schedule(world: World) -> None:
    setting = LaunchSetting.objects.get(key="stock-sync")
    LaunchSetting.objects.filter(pk=setting.pk).update(timing="DELAYED", enabled=True)
    client = signed_in(world, "viewer")

    assert "idle (manual start)" in looked_at(client, f"/settings/{setting.key}/").text
    Schedule.objects.create(setting=setting, every_seconds=3600)
    assert "idle (schedule)" in looked_at(client, f"/settings/{setting.key}/").text


def test_a_message_that_counts_once_is_not_warned_of(world: World) -> None:
    LaunchSetting.objects.filter(key="mail-send").update(count_once=True)

    assert "One bad message" not in looked_at(signed_in(world, "viewer"), "/settings/mail-send/").text


def test_few_failures_that_trip_are_told() -> None:
    setting = LaunchSetting(key="k", breaker_m=5, destination=Destination(name="a", max_attempts=3))
    warnings = setting_fields.breaker_warnings(setting)

    assert len(warnings) == 2 and "At this threshold, 1 failure is enough to trip the breaker." in warnings[1]


def test_a_policy_without_end_never_ends_in_the_drawing() -> None:
    endless = redelivery.preview(Destination(name="a", max_attempts=-1))

    assert endless.endless and len(endless.attempts) == 10


def test_a_long_schedule_leaves_its_middle_out() -> None:
    preview = redelivery.preview(Destination(name="a", max_attempts=1000))

    assert len(preview.attempts) == redelivery.SHOWN_ATTEMPTS
    assert preview.left_out == 1000 - redelivery.SHOWN_ATTEMPTS
    assert preview.attempts[-1].number == 1000


def test_an_agent_that_a_server_does_not_offer_is_named(world: World) -> None:
    OfferedAgent.objects.filter(name="orders.export", server__name="srv-3").delete()

    assert "Not available on srv-3" in looked_at(signed_in(world, "viewer"), "/settings/orders-export/").text


def test_an_empty_pool_is_said_to_run_nothing(world: World) -> None:
    Pool.objects.get(name="north").servers.clear()

    assert "The pool has no server" in looked_at(signed_in(world, "viewer"), "/settings/stock-sync/").text


def test_a_form_previews_the_schedule_before_it_is_saved(world: World) -> None:
    client = signed_in(world, "operator")
    query = "max_attempts=3&delay_ms=5000&multiplier=2&max_delay_ms=&collision_avoidance=0"
    page = looked_at(client, f"/previews/destination/?{query}")

    assert "1 immediately 2 5 s 3 15 s dead-lettered 15 s" in page.text.replace("\xa0", " ")
    for wrong in ("", "max_attempts=x", query.replace("=2&", "=1e999&"), query.replace("=3&", "=-7&")):
        assert (
            "The preview appears when all fields are filled in."
            in looked_at(client, f"/previews/destination/?{wrong}").text
        )


def test_the_form_of_a_setting_previews_its_breaker(world: World) -> None:
    client = signed_in(world, "operator")

    of_destination = world.settings["orders-export"].destination_id
    assert (
        "consecutive failures: 1 of one type, or 4 of any type"
        in looked_at(client, f"/previews/setting/?breaker_m=4&destination={of_destination}").text
    )
    assert "10 of any" in looked_at(client, "/previews/setting/?breaker_m=10&setting=invoices").text
    assert (
        "Choose a destination to see how a failing message is redelivered."
        in looked_at(client, "/previews/setting/?breaker_m=10&destination=").text
    )


def test_the_history_is_told_in_sentences(world: World) -> None:
    text = looked_at(signed_in(world, "viewer"), "/settings/orders-export/").text

    for words in (
        "Enabled",
        "Disabled",
        "new version of the agent",
        "Assigned to a server · srv-3",
    ):
        assert words in text


def test_an_activation_shows_its_servers_and_its_failures_by_kind(world: World) -> None:
    activation = world.activations["orders-export"]
    page = looked_at(signed_in(world, "viewer"), f"/activations/{activation.pk}/")

    assert "srv-1 · 18 failures" in page.text and "srv-4 · 16 failures" in page.text
    assert any("fingerprint=" in link and "server=srv-1" in link for link in page.links())


def test_failures_of_a_server_say_how_many_of_them_were_temporary(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    activation, client = world.activations["orders-export"], signed_in(world, "viewer")
    on_server = FailureProtocol.objects.filter(activation=activation, server_name="srv-1")
    some = on_server.filter(temporary=True).count()
    assert 1 < some < on_server.count()
    path = f"/activations/{activation.pk}/"
    assert f"srv-1 · {on_server.count()} failures, {some} of them temporary" in looked_at(client, path).text
    # Where small groups are left out nobody has counted the temporary ones among these.
    monkeypatch.setattr(failure_groups, "GROUPS_PER_SERVER", 2)
    assert f"failures, at least {some} of them temporary" in looked_at(client, path).text
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "ru"
    assert "из них не меньше" in looked_at(client, path).text

    without = world.activations["returns"]
    assert (
        "of them temporary" not in looked_at(signed_in(world, "viewer"), f"/activations/{without.pk}/").text
    )


def test_a_silent_server_is_not_said_to_run(world: World) -> None:
    assert "last reported: running" in looked_at(signed_in(world, "viewer"), "/settings/orders-export/").text


def test_a_standalone_setting_speaks_of_no_messages(world: World) -> None:
    make_setting(Pool.objects.get(name="north"), "report", kind="standalone", agent="demo.report")

    text = looked_at(signed_in(world, "viewer"), "/settings/report/").text

    assert "messages wait" not in text and "Open dead letters" not in text


def test_a_setting_without_queues_yet_does_not_blame_the_broker(world: World) -> None:
    make_setting(Pool.objects.get(name="north"), "fresh", provision_state="pending")

    text = looked_at(signed_in(world, "viewer"), "/settings/fresh/").text

    assert "being created on the broker" in text and "The broker is not responding, and" not in text
