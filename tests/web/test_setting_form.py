"""The form of a setting: *Advanced* is folded until it has something to show, and a setting may be copied."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from agents.models import LaunchSetting, Pool, PoolGrant, Schedule
from tests.web.rows import make_person, make_setting
from tests.web.test_agents_admin import form

ADD = "admin:agents_launchsetting_add"
FOLDED, OPEN = '<details class="advanced">', '<details class="advanced" open>'


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def page_of(person: User, address: str, **asked: Any) -> str:
    answer = signed_in(person).get(address, asked)
    assert answer.status_code == 200
    return answer.content.decode()


def change(setting: LaunchSetting) -> str:
    return reverse("admin:agents_launchsetting_change", args=[setting.pk])


def value_of(page: str, name: str) -> str:
    return page.partition(f'name="{name}" value="')[2].partition('"')[0]


# -- Advanced ----------------------------------------------------------------------------------------------


def test_a_new_form_begins_with_what_when_where_and_folds_the_rest(operator: User) -> None:
    page = page_of(operator, reverse(ADD))

    plain, _folded, advanced = page.partition(FOLDED)
    for name in ("key", "agent", "parameters", "timing", "schedule_choice", "spread", "pool", "destination"):
        assert f'name="{name}"' in plain, name
    for name in (
        "mode",
        "concurrency",
        "breaker_m",
        "drain_idle_seconds",
        "retention_days",
        "ordered",
        "goal_seconds",
    ):
        assert f'name="{name}"' not in plain and f'name="{name}"' in advanced, name


def test_a_setting_with_the_values_of_a_new_one_is_folded(operator: User, setting: LaunchSetting) -> None:
    assert FOLDED in page_of(operator, change(setting))


@pytest.mark.parametrize(
    "values",
    [
        {"concurrency": 4},
        {"ordered": True, "mode": "AUTO"},
        {"masked_properties": ["card"]},
        {"breaker_m": 3},
    ],
)
def test_a_setting_with_another_value_is_open(
    operator: User, setting: LaunchSetting, values: dict[str, Any]
) -> None:
    LaunchSetting.objects.update(**values)

    assert OPEN in page_of(operator, change(setting))


def test_a_mistake_in_a_folded_field_opens_it(operator: User, setting: LaunchSetting) -> None:
    client = signed_in(operator)
    wrong = client.post(change(setting), form(setting, breaker_m=0)).content.decode()
    assert OPEN in wrong
    other = client.post(change(setting), form(setting, agent="")).content.decode()
    assert FOLDED in other, "the mistake is in sight already"


def test_who_only_looks_sees_the_same(viewer: User, setting: LaunchSetting) -> None:
    assert FOLDED in page_of(viewer, change(setting))
    LaunchSetting.objects.update(concurrency=4)
    assert OPEN in page_of(viewer, change(setting))


# -- Copy --------------------------------------------------------------------------------------------------


def test_a_copy_has_every_value_but_the_key(operator: User, setting: LaunchSetting) -> None:
    LaunchSetting.objects.update(
        timing="DELAYED", concurrency=4, description="of the shop", parameters={"to": "x"}, spread="MANY"
    )
    Schedule.objects.create(setting=setting, crontab="30 2 * * *", time_zone="Europe/Berlin")
    page = page_of(operator, reverse(ADD), copy="orders")

    assert value_of(page, "concurrency") == "4" and OPEN in page
    assert 'name="key" value=' not in page
    assert "of the shop" in page and "&quot;to&quot;: &quot;x&quot;" in page
    for chosen in ("DELAYED", "MANY", "daily", "Europe/Berlin", str(setting.pool_id)):
        assert f'<option value="{chosen}" selected>' in page, chosen
    assert value_of(page, "schedule_time") == "02:30"
    assert "The values are copied from orders." in page


def test_saved_under_a_key_of_its_own_it_is_a_disabled_setting(
    operator: User, setting: LaunchSetting
) -> None:
    LaunchSetting.objects.update(enabled=True)
    saved = signed_in(operator).post(f"{reverse(ADD)}?copy=orders", form(setting, key="orders-2"))

    assert saved.status_code == 302
    assert not LaunchSetting.objects.get(key="orders-2").enabled
    same = signed_in(operator).post(f"{reverse(ADD)}?copy=orders", form(setting))
    assert same.status_code == 200, "the key is taken"


def test_what_is_not_there_or_may_not_be_seen_is_not_copied(
    operator: User, outsider: User, setting: LaunchSetting
) -> None:
    assert signed_in(operator).get(reverse(ADD), {"copy": "nothing"}).status_code == 404
    assert signed_in(outsider).get(reverse(ADD), {"copy": "orders"}).status_code == 403


def test_who_may_add_in_a_pool_alone_copies_into_that_one(setting: LaunchSetting, viewer: User) -> None:
    team, mine = Group.objects.create(name="team"), Pool.objects.create(name="mine")
    viewer.groups.add(team)
    PoolGrant.objects.create(pool=mine, group=team, may_edit=True)
    make_setting(mine, "listens")
    page = page_of(viewer, reverse(ADD), copy="orders")

    assert f'<option value="{mine.pk}">mine</option>' in page
    assert f">{setting.pool.name}</option>" not in page, "no pool of others is offered"


def test_the_page_offers_it_to_those_who_may_add_one(
    operator: User, viewer: User, setting: LaunchSetting
) -> None:
    address = f"{reverse(ADD)}?copy=orders"
    assert address in page_of(operator, "/settings/orders/")
    assert address not in page_of(viewer, "/settings/orders/")
    adder = make_person("adder")
    adder.user_permissions.add(*_permissions("view_launchsetting", "add_launchsetting"))
    assert address in page_of(adder, "/settings/orders/")


def _permissions(*names: str) -> Any:
    return Permission.objects.filter(codename__in=names)
