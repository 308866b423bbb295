"""What is done to one member and ends for its whole group needs the right for each member; the refusal names
where it is missing."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from agents.groups.group import enable_group, run_group_now
from agents.models import Activation, GroupActivation, LaunchSetting, ScheduledGroup, Server
from agents.pools import rights
from tests.web.rows import api_client, make_alive
from tests.web.teams import group_over_two_pools, teammate

Gab = tuple[ScheduledGroup, LaunchSetting, LaunchSetting]


@pytest.fixture
def gab(server: Server) -> Gab:
    make_alive(server, now=timezone.now())
    return group_over_two_pools(server)


@pytest.fixture
def of_pa(groups: None, gab: Gab) -> User:
    return teammate(gab[1].pool)


@pytest.fixture
def running(gab: Gab, operator: User) -> Activation:
    """Of `sa`, the first member of the pass that goes on."""
    enable_group(gab[0], operator, timezone.now())
    run_group_now(gab[0], operator, timezone.now())
    return Activation.objects.get(setting=gab[1])


def test_the_right_on_one_pool_does_not_end_a_pass_over_others(of_pa: User, running: Activation) -> None:
    client = api_client(of_pa)
    addresses = (
        "groups/gab/stop",
        "settings/sa/stop",
        f"activations/{running.pk}/stop",
        "settings/sa/disable",
    )

    for address in addresses:
        told = client.post(f"/api/v1/{address}/")
        assert told.status_code == 403, address
        # The right in pa is there: what is missing is pb.
        assert "pb" in told.json()["detail"] and "pa" not in told.json()["detail"], address
    assert GroupActivation.objects.get().state == "running" and ScheduledGroup.objects.get().enabled


def test_the_page_refuses_the_stop_too(of_pa: User, running: Activation, client: Client) -> None:
    client.force_login(of_pa)

    assert client.get(reverse("admin:setting_stop", args=["sa"])).status_code == 403
    assert client.post(reverse("admin:setting_stop", args=["sa"]), {"reason": ""}).status_code == 403
    assert "pb" in rights.why_not(of_pa, "stop", running.setting)
    assert GroupActivation.objects.get().state == "running"


def test_with_the_right_for_each_member_a_pass_is_stopped(
    groups: None, gab: Gab, running: Activation
) -> None:
    person = teammate(gab[1].pool, gab[2].pool)

    assert api_client(person).post("/api/v1/settings/sa/stop/").status_code == 200


def test_the_group_itself_names_the_pool_that_is_missing(of_pa: User, gab: Gab) -> None:
    told = api_client(of_pa).post("/api/v1/groups/gab/enable/").json()["detail"]

    assert "pb" in told and "pa" not in told


def test_without_a_right_in_its_own_pool_that_pool_is_named(of_pa: User, gab: Gab) -> None:
    assert "“pb”" in api_client(of_pa).post("/api/v1/settings/sb/disable/").json()["detail"]


def test_nobody_empties_a_group_and_locks_themselves_out(groups: None, gab: Gab) -> None:
    client: APIClient = api_client(teammate(gab[1].pool, gab[2].pool))

    assert client.patch("/api/v1/groups/gab/", {"members": []}).status_code == 403
    assert client.post("/api/v1/groups/", {"name": "empty", "members": []}).status_code == 403
    assert gab[0].members.count() == 2
    assert client.patch("/api/v1/groups/gab/", {"members": ["sb"]}).status_code == 200


def test_the_form_refuses_a_group_without_members_too(groups: None, gab: Gab, client: Client) -> None:
    client.force_login(teammate(gab[1].pool, gab[2].pool))
    change = reverse("admin:agents_scheduledgroup_change", args=[gab[0].pk])

    for url in (reverse("admin:agents_scheduledgroup_add"), change):
        told = client.post(url, {"name": "empty", "description": "", "members": " "})
        assert (
            told.status_code == 200
            and "The group has no members, so it belongs to no pool" in told.content.decode()
        )
    assert ScheduledGroup.objects.count() == 1 and gab[0].members.count() == 2


def test_who_may_edit_everything_makes_an_empty_group(operator: User, client: Client) -> None:
    client.force_login(operator)
    made = client.post(
        reverse("admin:agents_scheduledgroup_add"), {"name": "empty", "description": "", "members": ""}
    )

    assert made.status_code == 302 and ScheduledGroup.objects.get().name == "empty"
