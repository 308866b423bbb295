"""A setting gets the messages of its destination: with a right in a pool alone nobody listens to another
team."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from agents.models import Destination, LaunchSetting, Pool
from tests.web.rows import api_client, make_setting
from tests.web.teams import teammate
from tests.web.test_agents_admin import form

WISH = {"key": "listener", "agent": "demo.orders", "pool": "demo"}


@pytest.fixture
def foreign(setting: LaunchSetting) -> Destination:
    """Only settings of another pool subscribe to it; nobody does to `shop.free`."""
    Destination.objects.create(name="shop.free")
    other = make_setting(Pool.objects.create(name="other"), "others", address="shop.payments")
    return other.subscribed


@pytest.fixture
def mate(groups: None, pool: Pool) -> User:
    return teammate(pool)


def test_a_setting_listens_where_the_pool_listens_already(mate: User, foreign: Destination) -> None:
    client = api_client(mate)
    for name in ("shop.payments", "shop.free"):
        told = client.post("/api/v1/settings/", WISH | {"destination": name})
        assert (told.status_code, told.json()["where"]) == (403, "destination"), name
        assert name in told.json()["detail"]
    assert client.post("/api/v1/settings/", WISH | {"destination": "demo.orders"}).status_code == 201
    standalone = {"key": "report", "agent": "demo.report", "kind": "standalone", "pool": "demo"}
    assert client.post("/api/v1/settings/", standalone).status_code == 201


def test_a_setting_is_not_moved_to_the_messages_of_others(mate: User, foreign: Destination) -> None:
    LaunchSetting.objects.filter(key="orders").update(provisioned_hash="", provision_state="pending")

    told = api_client(mate).patch("/api/v1/settings/orders/", {"destination": "shop.payments"})
    assert (told.status_code, told.json()["where"]) == (403, "destination")
    same = api_client(mate).patch(
        "/api/v1/settings/orders/", {"destination": "demo.orders", "concurrency": 2}
    )
    assert same.status_code == 200


@pytest.mark.parametrize("permission", ["add_destination", "add_launchsetting"])
def test_a_permission_opens_every_destination(mate: User, foreign: Destination, permission: str) -> None:
    mate.user_permissions.add(Permission.objects.get(codename=permission))

    assert api_client(mate).post("/api/v1/settings/", WISH | {"destination": foreign.name}).status_code == 201


def test_the_form_offers_what_the_pool_listens_to(
    mate: User, foreign: Destination, setting: LaunchSetting, client: Client
) -> None:
    client.force_login(mate)
    url = reverse("admin:agents_launchsetting_add")
    page = client.get(url).content.decode()
    assert "demo.orders" in page and "shop.payments" not in page

    wish = form(setting) | {"key": "listener"}
    assert client.post(url, wish | {"destination": foreign.pk}).status_code == 200
    assert not LaunchSetting.objects.filter(key="listener").exists()
    assert client.post(url, wish).status_code == 302
