"""Fields of a filter for one of hundreds of names: a part is typed, and an unknown name is said to be one."""

import pytest
from django.test import Client

from agents.models import LaunchSetting
from alerts.models import Alert
from tests.web.crowd import make_crowd
from tests.web.factories import World
from tests.web.pages import Elements, signed_in

STRICT = ("/trips/", "/activations/", "/fingerprints/", "/alerts/", "/answers/")
LENIENT = ("/protocols/", "/insights/tables/activation_health/")
UNKNOWN = "Unknown name “no-such”: choose a name from the list."
DELETED = "No existing object has this name. Only records of deleted objects can match."


@pytest.fixture
def client(world: World) -> Client:
    return signed_in(world, "chief")


def shown(client: Client, address: str) -> Elements:
    answer = client.get(address)
    assert answer.status_code == 200
    return Elements(answer.content.decode())


@pytest.mark.parametrize("path", [*STRICT[:-1], *LENIENT])
def test_a_name_is_typed_with_suggestions_of_those_that_there_are(
    path: str, client: Client, world: World
) -> None:
    make_crowd(world, 30, 0)
    page = shown(client, path)

    [field] = [each for tag, each in page.found if tag == "input" and each.get("name") == "setting"]
    assert field["list"] == "setting-names" and field["type"] == "text"
    suggested = {each.get("value") for tag, each in page.found if tag == "option"}
    assert set(LaunchSetting.objects.values_list("key", flat=True)) <= suggested
    assert [each["id"] for tag, each in page.found if tag == "datalist"].count("setting-names") == 1


@pytest.mark.parametrize("path", STRICT)
def test_a_name_that_nothing_has_is_refused_where_nothing_can_match(path: str, client: Client) -> None:
    page = shown(client, f"{path}?setting=no-such")
    assert UNKNOWN in page.text and "No results." in page.text
    known = client.get(path, {"setting": "invoices" if path != "/answers/" else ""})
    assert "Unknown name" not in known.content.decode()


@pytest.mark.parametrize("path", LENIENT)
def test_a_name_of_something_deleted_is_searched_for_and_said_to_be_gone(path: str, client: Client) -> None:
    page = shown(client, f"{path}?setting=no-such")

    assert DELETED in page.text and "Unknown name" not in page.text
    [field] = [each for tag, each in page.found if tag == "input" and each.get("name") == "setting"]
    assert field["aria-describedby"] == "setting-note" and field["value"] == "no-such"
    assert DELETED not in shown(client, f"{path}?setting=invoices").text


def test_what_was_deleted_is_found_by_its_name(client: Client, world: World) -> None:
    assert "orders-export" in shown(client, "/protocols/?setting=orders-export").text
    row = world.protocols[0]
    type(row).objects.filter(pk=row.pk).update(setting=None, setting_key="long-gone")

    assert str(row.pk) in " ".join(shown(client, "/protocols/?setting=long-gone").links())


def test_alerts_are_narrowed_by_their_setting(client: Client, world: World) -> None:
    Alert.objects.filter(kind="dead_letters_old").update(state="open")
    narrowed = client.get("/alerts/?setting=orders-export").context["open"]

    assert [row.alert.kind for row in narrowed] == ["dead_letters_old"]
    assert client.get("/alerts/?setting=invoices").context["open"] == []
    assert len(client.get("/alerts/").context["open"]) == 2


def test_hostile_names_stay_text(client: Client, world: World) -> None:
    hostile = '"><script>alert(1)</script>\u202e'
    for path in (*STRICT, *LENIENT):
        html = client.get(path, {"setting": hostile}).content.decode()
        assert "<script>alert" not in html, path
        outside = html.replace(f'value="{hostile}"', "")
        assert "\u202e" not in Elements(outside).text, path
