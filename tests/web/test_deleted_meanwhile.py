"""A group is deleted by somebody at the very moment somebody else acts on it: 404 or a message, never an
error."""

from pkgutil import resolve_name
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.groups.group import delete_group
from agents.groups.group import group_of as real_group_of
from agents.models import LaunchSetting, Pool, ScheduledGroup
from console.audit.models import AuditEntry
from tests.web.launching import enabled, group_of
from tests.web.rows import api_client, make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def group(pool: Pool) -> ScheduledGroup:
    return group_of(make_setting(pool, "m-1", timing="DELAYED"), make_setting(pool, "m-2", timing="DELAYED"))


def vanish(*_args: Any, **_options: Any) -> str:
    """In the place of the question for the right: the last thing before anything is done."""
    for group in ScheduledGroup.objects.all():
        delete_group(group, None, timezone.now())
    return ""


def gone_first(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Somebody deletes it right before this function does its work."""
    real = resolve_name(name)
    monkeypatch.setattr(name, lambda *args, **options: (vanish(), real(*args, **options))[1])


@pytest.mark.parametrize(
    ("method", "action", "body"),
    [
        ("post", "enable/", {}),
        ("post", "disable/", {}),
        ("post", "run/", {}),
        ("delete", "", {}),
        ("patch", "", {"description": "new"}),
        ("patch", "", {"members": ["m-2", "m-1"]}),
    ],
)
def test_rest_does_not_find_it(
    group: ScheduledGroup,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    action: str,
    body: Any,
) -> None:
    client = api_client(operator)
    monkeypatch.setattr("agents.api.groups.check_group", vanish)
    monkeypatch.setattr("agents.pools.rights.why_not_group", vanish)

    told = getattr(client, method)(f"/api/v1/groups/night/{action}", body)
    assert (told.status_code, told.json()["error"]) == (404, "not_found")
    assert not ScheduledGroup.objects.exists()


@pytest.mark.parametrize(
    ("action", "seam"),
    [
        ("enable", "pools.rights.why_not_group"),
        ("disable", "pools.rights.why_not_group"),
        ("run", "pools.rights.why_not_group"),
        ("move", "groups.operations.reorder"),
        ("delete", "groups.operations.delete_group"),
    ],
)
def test_a_page_says_so_and_leads_to_the_list(
    group: ScheduledGroup,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    action: str,
    seam: str,
) -> None:
    client.force_login(operator)
    gone_first(monkeypatch, f"agents.{seam}")

    url = reverse(f"admin:group_{action}", args=["night"])
    told = client.post(url, {"reason": "", "member": "m-1", "to": "down"}, follow=True)
    assert (told.status_code, told.redirect_chain[-1][0]) == (200, reverse("admin:groups"))
    assert "This object has already been deleted." in told.content.decode()


def test_a_form_says_so_and_leads_to_the_list(
    group: ScheduledGroup, operator: User, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    client.force_login(operator)
    gone_first(monkeypatch, "agents.admin.groups.check_members")

    url = reverse("admin:agents_scheduledgroup_change", args=[group.pk])
    told = client.post(url, {"description": "new", "members": "m-2 m-1"}, follow=True)
    assert told.status_code == 200 and "This object has already been deleted." in told.content.decode()
    entries = AuditEntry.objects.values_list("action", "target", "result")
    assert list(entries) == [("group.change", "group:night", "refused")]


def test_a_member_is_disabled_though_its_group_goes(
    group: ScheduledGroup, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found_and_gone(setting: LaunchSetting) -> ScheduledGroup | None:
        found = real_group_of(setting)
        vanish()
        enabled(setting)
        return found

    monkeypatch.setattr("agents.settings.enable.group_of", found_and_gone)
    told = api_client(operator).post("/api/v1/settings/m-1/disable/", {"reason": "enough"})

    assert (told.status_code, told.json()["enabled"], told.json()["disabled_reason"]) == (
        200,
        False,
        "enough",
    )
