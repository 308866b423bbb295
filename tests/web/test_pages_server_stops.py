"""Pages of a setting that is stopped on one server: who stopped it, and the buttons."""

from agents.models import LaunchSetting, Run, Server, ServerStop
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in


def stopped_in(world: World) -> LaunchSetting:
    setting = world.settings["orders-export"]
    server = Server.objects.get(name="srv-1")
    ServerStop.objects.create(setting=setting, server=server, by=world.people["operator"], reason="disk full")
    return setting


def test_the_setting_says_where_it_is_stopped_and_offers_to_start_it(world: World) -> None:
    setting = stopped_in(world)
    page = looked_at(signed_in(world, "operator"), f"/settings/{setting.key}/")

    assert "partial: stopped on srv-1 by operator" in page.text
    assert "disk full" in page.text
    assert f"/settings/{setting.key}/start_on/srv-1/" in page.links()
    assert f"/settings/{setting.key}/stop_on/srv-1/" not in page.links()
    assert f"/settings/{setting.key}/stop_on/srv-2/" in page.links()


def test_who_may_not_sees_the_button_and_the_permission(world: World) -> None:
    setting = stopped_in(world)
    page = looked_at(signed_in(world, "viewer"), f"/settings/{setting.key}/")

    assert not [url for url in page.links() if "_on/" in url]
    assert any("Can stop activations" in (attrs.get("title") or "") for tag, attrs in page.found)


def test_the_question_of_the_page_stops_it(world: World) -> None:
    client = signed_in(world, "operator")
    answer = client.post("/settings/orders-export/stop_on/srv-1/", {"reason": "disk full"}, follow=True)
    assert "Stopping on srv-1: orders-export" in answer.content.decode()

    stopped = Run.objects.get(activation=world.activations["orders-export"], server__name="srv-1")
    assert not stopped.wanted
    client.post("/settings/orders-export/start_on/srv-1/")
    assert not ServerStop.objects.exists()


def test_the_page_of_the_server_and_the_overview_say_it(world: World) -> None:
    stopped_in(world)
    client = signed_in(world, "operator")

    server = looked_at(client, "/servers/srv-1/")
    assert "Settings stopped on this server" in server.text and "disk full" in server.text
    assert "partial: stopped on srv-1 by operator" in looked_at(client, "/").text
