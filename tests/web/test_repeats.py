"""The guard against repeats in the MA: which keys are taken, what servers are told, where repeats are
seen."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.heartbeat.desired import desired_state
from agents.models import Activation, LaunchSetting, Pool, Run, Server
from tests.web.rows import api_client, make_alive, make_setting
from tests.web.test_agents_admin import form

pytestmark = pytest.mark.both_databases

SETTINGS = "/api/v1/settings/"
WRONG = [
    "id",
    "KEY",
    "property:",
    "pointer:",
    "pointer:a",
    "pointer:/a~2b",
    "property",
    "key:x",
    "<b>key</b>",
]
RIGHT = ["", "key", "property:order", "property:with space", "pointer:/order/id", "pointer:/a~1b/0"]


def browsing(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def guarded(pool: Pool, server: Server) -> LaunchSetting:
    make_alive(server, now=timezone.now())
    setting = make_setting(
        pool, "guarded", enabled=True, duplicate_key="property:<b>order</b>", duplicate_window_seconds=7200.0
    )
    activation = Activation.objects.create(setting=setting, state="running")
    Run.objects.create(activation=activation, server=server, epoch=1, handled=40, repeats=3)
    return setting


@pytest.mark.parametrize("key", RIGHT)
def test_a_key_is_taken_in_the_form_and_over_rest(operator: User, setting: LaunchSetting, key: str) -> None:
    page = reverse("admin:agents_launchsetting_change", args=[setting.pk])
    saved = browsing(operator).post(page, form(setting, duplicate_key=key, duplicate_window_seconds=60))
    assert saved.status_code == 302, saved.content.decode()[:3000]
    setting.refresh_from_db()
    assert (setting.duplicate_key, setting.duplicate_window_seconds) == (key, 60)

    told = api_client(operator).patch(f"{SETTINGS}{setting.key}/", {"duplicate_key": key}).json()
    assert (told["duplicate_key"], told["duplicate_window_seconds"]) == (key, 60)


@pytest.mark.parametrize("key", WRONG)
def test_another_key_is_refused_where_it_stands(operator: User, setting: LaunchSetting, key: str) -> None:
    page = reverse("admin:agents_launchsetting_change", args=[setting.pk])
    refused = browsing(operator).post(page, form(setting, duplicate_key=key))
    assert refused.status_code == 200
    assert list(refused.context["adminform"].form.errors) == ["duplicate_key"]
    answer = api_client(operator).patch(f"{SETTINGS}{setting.key}/", {"duplicate_key": key})
    assert (answer.status_code, answer.json()["where"]) == (400, "duplicate_key")
    setting.refresh_from_db()
    assert setting.duplicate_key == ""


@pytest.mark.parametrize("seconds", [0, -1, "x", 1e12, None])
def test_a_window_that_is_none_is_refused(operator: User, setting: LaunchSetting, seconds: Any) -> None:
    answer = api_client(operator).patch(
        f"{SETTINGS}{setting.key}/", {"duplicate_key": "key", "duplicate_window_seconds": seconds}
    )
    assert (answer.status_code, answer.json()["where"]) == (400, "duplicate_window_seconds")


def test_servers_are_told(guarded: LaunchSetting, server: Server) -> None:
    (run,) = desired_state(server).runs
    assert (run.duplicate_key, run.duplicate_window_seconds) == ("property:<b>order</b>", 7200.0)


def test_pages_tell_the_guard_and_its_repeats(guarded: LaunchSetting, operator: User) -> None:
    client = browsing(operator)
    of_setting = client.get("/settings/guarded/").content.decode()
    of_activation = client.get(f"/activations/{Activation.objects.get().pk}/").content.decode()

    assert "Identify repeats by" in of_setting and "property:&lt;b&gt;order&lt;/b&gt;" in of_setting
    assert "3 repeats, not processed" in of_setting and "3 repeats, not processed" in of_activation
    assert "<dt>Repeats</dt><dd>3</dd>" in of_activation
    assert "<b>order</b>" not in of_setting + of_activation


def test_without_a_guard_nothing_is_said_of_repeats(guarded: LaunchSetting, operator: User) -> None:
    LaunchSetting.objects.update(duplicate_key="")
    Run.objects.update(repeats=0)
    client = browsing(operator)
    for page in ("/settings/guarded/", f"/activations/{Activation.objects.get().pk}/"):
        assert "epeats" not in client.get(page).content.decode()
