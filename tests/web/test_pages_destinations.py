"""Destinations have a list and a page of their own, and the forms of the admin say by crumbs where they
are."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.models import Destination, FoundPolicy, LaunchSetting, ProvisionState
from agents.pages.destinations import (
    DIFFERS,
    FAILED,
    IN_SYNC,
    NOT_CREATED,
    UNREAD,
    broker_state,
)
from console.ui.page import StateLabel
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import NOW

MINUTE = timedelta(minutes=1)


def seen(*, ago: timedelta, differs: datetime | None = None) -> FoundPolicy:
    return FoundPolicy(address="a", seen_at=NOW - ago, differs_since=differs)


@pytest.mark.parametrize(
    ("found", "receivers", "failed", "state"),
    [
        (seen(ago=MINUTE), 2, 0, IN_SYNC),
        (seen(ago=MINUTE, differs=NOW), 2, 0, DIFFERS),
        (seen(ago=4 * MINUTE, differs=NOW), 2, 0, UNREAD),
        (None, 1, 0, UNREAD),
        (seen(ago=MINUTE), 2, 1, FAILED),
        (seen(ago=MINUTE), 0, 0, NOT_CREATED),
    ],
)
def test_the_state_of_a_destination_is_what_was_read_lately(
    found: FoundPolicy | None, receivers: int, failed: int, state: StateLabel
) -> None:
    assert broker_state(found, receivers, failed, NOW) is state


def test_the_list_says_policy_settings_and_what_the_broker_has(world: World) -> None:
    destination = world.settings["orders-export"].subscribed
    LaunchSetting.objects.filter(destination=destination).update(provision_state=ProvisionState.READY)
    Destination.objects.filter(pk=destination.pk).update(
        max_attempts=4,
        delay_ms=1000,
        multiplier=2.0,
        max_delay_ms=8000,
        collision_avoidance=0,
        expiry_ms=None,
    )
    now = timezone.now()
    FoundPolicy.objects.update_or_create(
        address=destination.name, defaults={"seen_at": now, "differs_since": now - 3 * MINUTE}
    )
    Destination.objects.create(name="lone.one", description="Nobody receives from it.")

    page = looked_at(signed_in(world, "viewer"), "/destinations/")
    text = page.text.replace("\N{NO-BREAK SPACE}", " ")
    assert f"{destination.name} 2 differs 3 min 4 1 s, then × 2, at most 8 s never" in text
    assert "lone.one Nobody receives from it. 0 not created: no settings" in text
    assert f"/destinations/{destination.pk}/" in page.links()
    assert (
        "Add a destination" not in text
        and "Add a destination" in signed_in(world, "chief").get("/destinations/").content.decode()
    )


def test_the_list_is_searched_by_address_and_description(world: World) -> None:
    Destination.objects.create(name="lone.one", description="Nobody receives from it.")
    client = signed_in(world, "viewer")
    for text in ("LONE", "receives from"):
        page = looked_at(client, f"/destinations/?q={text}")
        rows = [each for each in page.links() if re.fullmatch(r"/destinations/\d+/", each)]
        assert len(rows) == 1, text
    assert "No results." in looked_at(client, "/destinations/?q=nothing").text


def test_many_destinations_come_in_pages_that_keep_the_search(
    world: World, django_assert_max_num_queries: Any
) -> None:
    Destination.objects.bulk_create(Destination(name=f"many.{n:03}") for n in range(120))
    client = signed_in(world, "viewer")
    with django_assert_max_num_queries(14):
        page = looked_at(client, "/destinations/?q=many")
    assert "many.049" in page.text and "many.050" not in page.text
    assert "?q=many&page=2" in page.links()
    assert "many.119" in looked_at(client, "/destinations/?q=many&page=3").text


def test_the_page_shows_the_policy_the_schedule_and_who_shares_it(world: World) -> None:
    destination = world.settings["orders-export"].subscribed
    page = looked_at(signed_in(world, "viewer"), f"/destinations/{destination.pk}/")

    assert (
        "Redelivery policy Maximum attempts" in page.text and "Redelivery of a failing message" in page.text
    )
    assert "/settings/orders-export/" in page.links() and "/settings/orders-archive/" in page.links()
    assert "Cannot read the values from the broker" in page.text, "the broker of this world is away"
    form = reverse("admin:agents_destination_change", args=[destination.pk])
    assert form not in page.links()
    assert form in looked_at(signed_in(world, "operator"), f"/destinations/{destination.pk}/").links()


def test_who_may_not_see_settings_does_not_read_their_names_there(world: World) -> None:
    outsider, role = world.people["outsider"], Group.objects.create(name="addresses")
    role.permissions.set(Group.objects.get(name="viewer").permissions.filter(codename="view_destination"))
    outsider.groups.add(role)
    client = Client()
    client.force_login(outsider)
    destination = world.settings["orders-export"].subscribed
    page = looked_at(client, f"/destinations/{destination.pk}/")
    assert "orders-export" not in page.text and "Redelivery policy" in page.text


def test_a_saved_destination_leads_to_its_page(world: World) -> None:
    values: dict[str, Any] = {
        "name": "new.one", "max_attempts": 2, "delay_ms": 7000, "multiplier": 1, "max_delay_ms": "",
        "collision_avoidance": 0, "expiry_ms": "", "description": "",
        "settings-TOTAL_FORMS": 0, "settings-INITIAL_FORMS": 0,
    }  # fmt: skip
    answer = signed_in(world, "chief").post(reverse("admin:agents_destination_add"), values)
    assert (answer.status_code, answer.headers["Location"]) == (
        302,
        f"/destinations/{Destination.objects.get(name='new.one').pk}/",
    )


def crumbs(client: Client, path: str) -> str:
    html = client.get(path).content.decode()
    (found,) = re.findall(r'<div class="breadcrumbs">(.*?)</div>', html, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", "", found).replace("&rsaquo;", "›").split())


def test_the_crumbs_of_every_form_are_of_one_kind(world: World) -> None:
    client, key = signed_in(world, "chief"), "orders-export"
    setting, person = world.settings[key], world.people["viewer"]
    destination = setting.subscribed
    assert world.launches
    group, pool = world.launches.group, setting.pool
    launching = f"Overview › Settings › Launch settings › {key}"
    expected = {
        "/destinations/": "Overview › Settings › Destinations",
        f"/destinations/{destination.pk}/": f"Overview › Settings › Destinations › {destination.name}",
        f"/agents/destination/{destination.pk}/change/": (
            f"Overview › Settings › Destinations › {destination.name} › Edit"
        ),
        f"/agents/destination/{destination.pk}/delete/": (
            f"Overview › Settings › Destinations › {destination.name} › Delete"
        ),
        "/agents/destination/add/": "Overview › Settings › Destinations › Add destination",
        "/agents/destination/": "Overview › Settings › Destinations",
        f"/agents/launchsetting/{setting.pk}/change/": f"{launching} › Edit",
        f"/agents/launchsetting/{setting.pk}/history/": f"{launching} › History",
        f"/agents/scheduledgroup/{group.pk}/change/": f"Overview › Settings › Groups › {group} › Edit",
        f"/agents/pool/{pool.pk}/change/": f"Overview › System › Administration › Pools › {pool} › Edit",
        "/agents/server/add/": "Overview › Servers › Add server",
        f"/auth/user/{person.pk}/change/": "Overview › System › Administration › Users › viewer › Edit",
        f"/auth/user/{person.pk}/password/": (
            "Overview › System › Administration › Users › viewer › Set password"
        ),
        "/auth/user/": "Overview › System › Administration › Users",
        "/auth/": "Overview › Administration › Authentication and Authorization",
        "/password_change/": "Overview › Password change",
    }
    assert {path: crumbs(client, path) for path in expected} == expected


def test_the_crumbs_lead_back_and_are_in_the_language_of_the_reader(world: World) -> None:
    client, destination = signed_in(world, "chief"), world.settings["orders-export"].subscribed
    path = f"/agents/destination/{destination.pk}/change/"
    links = looked_at(client, path).links()
    assert "/destinations/" in links and f"/destinations/{destination.pk}/" in links

    client.cookies["django_language"] = "ru"
    assert crumbs(client, path) == f"Обзор › Настройки › Назначения › {destination.name} › Изменить"


def test_who_only_looks_at_a_form_does_not_edit_by_its_crumbs(world: World) -> None:
    destination = world.settings["orders-export"].subscribed
    path = f"/agents/destination/{destination.pk}/change/"
    assert (
        crumbs(signed_in(world, "viewer"), path) == f"Overview › Settings › Destinations › {destination.name}"
    )


def test_a_list_of_the_admin_is_named_by_what_it_lists(world: World) -> None:
    html = signed_in(world, "chief").get("/agents/destination/").content.decode()
    assert (
        "<h1>Destinations</h1>" in html
        and "<title>Destinations |" in html
        and "Select destination" not in html
    )
