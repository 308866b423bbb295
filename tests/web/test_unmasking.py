"""Who may not see what a setting masks cannot take it off the list either: over REST and in the form."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from tests.web import reports
from tests.web.pages import Elements
from tests.web.rows import make_roles

pytestmark = pytest.mark.django_db


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting(masked_properties=["card", "iban"])


def person(*permissions: str) -> User:
    make_roles()
    user = reports.person("anna", *permissions)
    user.groups.add(Group.objects.get(name="operator"))
    return user


def patched(user: User, **values: Any) -> Any:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    return client.patch("/api/v1/settings/orders/", values, format="json")


def stored() -> list[str]:
    return list(LaunchSetting.objects.get(key="orders").masked_properties)


@pytest.mark.parametrize("wanted", [[], ["card"], ["CARD", "iban"]])
def test_operators_cannot_take_a_name_off_the_list(orders: LaunchSetting, wanted: list[str]) -> None:
    answer = patched(person(), masked_properties=wanted)
    assert (
        answer.status_code == 400
        and "without the permission “Can see masked properties of dead letters”. Ask someone who has it."
        in answer.content.decode()
    )
    assert stored() == ["card", "iban"]


def test_operators_add_names_and_change_the_rest(orders: LaunchSetting) -> None:
    user = person()
    assert patched(user, masked_properties=["new", "iban", "card"]).status_code == 200
    assert patched(user, description="other").status_code == 200
    assert stored() == ["new", "iban", "card"]


def test_who_may_see_it_may_stop_masking(orders: LaunchSetting) -> None:
    assert patched(person("dlq.can_see_masked"), masked_properties=["iban"]).status_code == 200
    assert stored() == ["iban"]


@pytest.mark.parametrize("wanted", ["[]", "", "null", "7", '"card iban"', '[{"card": 1}]', '["iban"]'])
def test_the_form_refuses_it_too(orders: LaunchSetting, wanted: str) -> None:
    client = Client()
    client.force_login(person())
    answer = client.post(f"/agents/launchsetting/{orders.pk}/change/", {"masked_properties": wanted})
    assert answer.status_code == 200
    assert (
        "without the permission “Can see masked properties of dead letters”. Ask someone who has it."
        in Elements(answer.content.decode()).text
    )
    assert stored() == ["card", "iban"]
