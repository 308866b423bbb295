"""Switching a setting on and off from its page: asked first, done by POST, told honestly."""

import re

import pytest
from django.test import Client

from agents.models import Activation, LaunchSetting, OfferedAgent, ProvisionState, Server
from console.reasons import said
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in


def test_looking_at_the_question_changes_nothing(world: World) -> None:
    client = signed_in(world, "operator")
    page = looked_at(client, "/settings/orders-export/disable/")

    assert (
        "New messages wait in the subscription until the setting is enabled again. Nothing is lost."
        in page.text
    )
    assert LaunchSetting.objects.get(key="orders-export").enabled


def test_switching_off_keeps_who_and_why(world: World) -> None:
    client = signed_in(world, "operator")
    answer = client.post("/settings/orders-export/disable/", {"reason": "wrong <b>currency</b>"}, follow=True)

    setting = LaunchSetting.objects.get(key="orders-export")
    assert (setting.enabled, setting.disabled_by, str(setting.disabled_reason)) == (
        False, world.people["operator"], "wrong <b>currency</b>",
    )  # fmt: skip
    html = answer.content.decode()
    assert "Disabled: orders-export" in html and "wrong &lt;b&gt;currency" in html
    assert "<b>currency" not in html


def test_switching_on_starts_an_activation(world: World) -> None:
    client = signed_in(world, "operator")
    Server.objects.filter(name__in=["srv-1", "srv-2"]).update(last_seen_at=world.now)
    answer = client.post("/settings/stock-sync/enable/", follow=True)

    assert "Enabled: stock-sync" in answer.content.decode()
    assert Activation.objects.filter(setting__key="stock-sync").count() == 1


def ticked(client: Client, address: str) -> bool:
    """Whether the question proposes to try one message first."""
    (box,) = re.findall(r'<input[^>]*name="try_one_first"[^>]*>', client.get(address).content.decode())
    return "checked" in box


def test_the_question_offers_to_try_one_message_first(world: World) -> None:
    client = signed_in(world, "operator")
    Server.objects.filter(name__in=["srv-1", "srv-2"]).update(last_seen_at=world.now)
    LaunchSetting.objects.filter(key="stock-sync").update(disabled_reason=said("stock is counted"))

    page = looked_at(client, "/settings/stock-sync/enable/")
    assert "stock is counted" in page.text and "Try one message first" in page.text
    assert not ticked(client, "/settings/stock-sync/enable/")
    client.post("/settings/stock-sync/enable/", {"try_one_first": "on"})

    assert Activation.objects.get(setting__key="stock-sync").trial
    assert not LaunchSetting.objects.get(key="stock-sync").try_one_first


def test_after_a_trip_the_question_says_why_and_tries_one_unless_told_otherwise(world: World) -> None:
    assert world.launches
    client = signed_in(world, "operator")

    page = looked_at(client, "/settings/returns/enable/")
    assert "3 consecutive IndexError failures on srv-2, srv-3" in page.text
    assert f"/trips/{world.launches.trip.pk}/" in page.links()
    assert ticked(client, "/settings/returns/enable/")
    client.post("/settings/returns/enable/")

    assert not Activation.objects.filter(setting__key="returns").order_by("-number")[0].trial


def test_a_refusal_is_shown_and_nothing_is_started(world: World) -> None:
    client = signed_in(world, "operator")
    Server.objects.update(last_seen_at=world.now)
    OfferedAgent.objects.filter(name="stock.sync").delete()
    answer = client.post("/settings/stock-sync/enable/", follow=True)

    assert "stock.sync" in looked_at(client, "/settings/stock-sync/").text
    assert "has the agent" in answer.content.decode()
    assert not LaunchSetting.objects.get(key="stock-sync").enabled


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ProvisionState.PENDING, "The broker is still creating the queues of this setting."),
        (ProvisionState.FAILED, "Provisioning on the broker failed:"),
    ],
)
def test_what_is_not_on_the_broker_cannot_be_switched_on(world: World, state: str, words: str) -> None:
    LaunchSetting.objects.filter(key="stock-sync").update(provision_state=state)
    client = signed_in(world, "operator")

    assert words in looked_at(client, "/settings/stock-sync/").text
    client.post("/settings/stock-sync/enable/")
    assert not LaunchSetting.objects.get(key="stock-sync").enabled


def test_a_setting_that_is_not_there_is_not_found(world: World) -> None:
    client = signed_in(world, "operator")
    for path in (
        "/settings/nothing/",
        "/settings/nothing/enable/",
        "/servers/nothing/",
        "/dead-letters/nothing/",
    ):
        assert client.get(path).status_code == 404, path
