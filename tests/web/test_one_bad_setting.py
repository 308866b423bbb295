"""A setting harms only itself: what cannot be sent is left out and shown; all others of its servers go on."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import LaunchSetting, Pool, Run, Server
from agents.settings.enable import disable_setting, enable_setting
from alerts.evaluation import evaluate_all
from alerts.models import Alert, AlertEvaluation
from console.operations.refusals import Refused
from console.reasons import said
from failures.api.intake import DEEPEST_BATCH
from tests.web.rows import api_client, heartbeat_json, make_alive, make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _level in range(levels - 1):
        value = {"a": value}
    return value


class Kma:
    """A KMA as it polls: it says which desired state it has, and takes what it is sent."""

    def __init__(self, server: Server) -> None:
        self.name = server.name
        self.client: APIClient = api_client(server)
        self.version = ""
        self.settings: list[str] = []

    def beat(self) -> int:
        said = heartbeat_json(self.name, desired_version=self.version, sent_at=timezone.now())
        answer = self.client.post("/api/v1/heartbeat/", said, format="json")
        if answer.status_code == 200:
            reply = answer.json()
            self.version = reply["desired_version"]
            if reply["desired"] is not None:
                self.settings = [run["setting"] for run in reply["desired"]["runs"]]
        return int(answer.status_code)


@pytest.fixture
def good(pool: Pool) -> LaunchSetting:
    return make_setting(pool, "good", spread="MANY")


@pytest.fixture
def bad(pool: Pool) -> LaunchSetting:
    return make_setting(pool, "bad", spread="MANY")


@pytest.fixture
def kmas(server: Server, second_server: Server, good: LaunchSetting, bad: LaunchSetting) -> list[Kma]:
    """Two servers that run both settings."""
    make_alive(server, second_server, now=timezone.now())
    for setting in (good, bad):
        enable_setting(setting, None, timezone.now())
    return [Kma(server), Kma(second_server)]


def put_into_the_row(setting: LaunchSetting, parameters: Any) -> None:
    """As an edition without bounds stored it."""
    LaunchSetting.objects.filter(pk=setting.pk).update(parameters=parameters)


def test_a_setting_whose_parameters_nest_too_deep_stops_nobody_else(
    kmas: list[Kma], good: LaunchSetting, bad: LaunchSetting, admin_client: Client
) -> None:
    assert [kma.beat() for kma in kmas] == [200, 200]
    assert [kma.settings for kma in kmas] == [["bad", "good"]] * 2
    put_into_the_row(bad, nested(600))

    assert [kma.beat() for kma in kmas] == [200, 200], "one setting took the answers from all of its servers"
    assert [kma.settings for kma in kmas] == [["good"]] * 2
    answer = admin_client.get("/settings/bad/")
    assert answer.status_code == 200 and "nested too deeply" in answer.content.decode()
    assert disable_setting(good, None, said("a test"), timezone.now())
    assert [kma.beat() for kma in kmas] == [200, 200]
    assert [kma.settings for kma in kmas] == [[], []], "the off switch works"


def test_a_withheld_run_stays_wanted_and_is_sent_as_soon_as_it_can_be(
    kmas: list[Kma], bad: LaunchSetting
) -> None:
    put_into_the_row(bad, nested(600))
    for kma in kmas:
        kma.beat()
    runs = Run.objects.filter(activation__setting=bad, wanted=True, closed_at=None)
    assert [run.withheld_because for run in runs] == ["parameters_too_deep"] * 2
    put_into_the_row(bad, {"a": 1})
    for kma in kmas:
        assert kma.beat() == 200 and "bad" in kma.settings
    assert not Run.objects.exclude(withheld_because="").exists()


def test_the_alert_of_a_withheld_setting_opens_and_closes_by_itself(
    kmas: list[Kma], bad: LaunchSetting
) -> None:
    def look(seconds: int) -> list[str]:
        AlertEvaluation.objects.all().delete()
        evaluate_all(timezone.now() + timedelta(seconds=seconds))
        return list(
            Alert.objects.filter(kind="setting_withheld", state="open").values_list("subject", flat=True)
        )

    for kma in kmas:
        kma.beat()
    assert look(0) == [] and look(30) == []
    put_into_the_row(bad, nested(600))
    for kma in kmas:
        kma.beat()
    look(60)
    assert look(80) == ["bad"], "one alert, however many servers should run it"
    put_into_the_row(bad, {})
    for kma in kmas:
        kma.beat()
    look(100)
    assert look(120) == []


def test_anything_that_goes_wrong_with_one_run_is_kept_to_it(
    kmas: list[Kma], bad: LaunchSetting, monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    from agents.heartbeat import desired

    def carried(run: Run) -> Any:
        if run.activation.setting.key == "bad":
            raise KeyError("what nobody thought of")

    monkeypatch.setattr(desired, "carried_counts", carried)
    assert [kma.beat() for kma in kmas] == [200, 200]
    assert [kma.settings for kma in kmas] == [["good"]] * 2
    assert set(Run.objects.filter(activation__setting=bad).values_list("withheld_because", flat=True)) == {
        "cannot_be_sent"
    }
    assert "servers cannot be prepared." in admin_client.get("/settings/bad/").content.decode()


@pytest.mark.parametrize("levels", [33, 150, 600, 900])
def test_pages_and_forms_of_a_row_from_before_the_bounds_answer(
    bad: LaunchSetting, admin_client: Client, levels: int
) -> None:
    put_into_the_row(bad, nested(levels))
    form = f"/agents/launchsetting/{bad.pk}/change/"
    for path in ("/", "/settings/", "/settings/bad/", form, "/agents/launchsetting/"):
        assert admin_client.get(path).status_code == 200, path
    answer = admin_client.post(form, {"parameters": "[" * levels + "]" * levels})
    assert answer.status_code == 200 and "parameters" in answer.context["adminform"].form.errors


def test_a_setting_that_cannot_be_sent_cannot_be_enabled(bad: LaunchSetting, server: Server) -> None:
    make_alive(server, now=timezone.now())
    put_into_the_row(bad, nested(600))
    bad.refresh_from_db()
    with pytest.raises(Refused) as refused:
        enable_setting(bad, None, timezone.now())
    assert refused.value.code == "parameters_too_deep"


@pytest.mark.parametrize("path", ["settings/", "settings/bad/"])
def test_parameters_are_bounded_where_they_are_saved(bad: LaunchSetting, operator: User, path: str) -> None:
    client = api_client(operator)
    send = client.patch if path == "settings/bad/" else client.post
    whole = {"key": "third", "agent": "x", "kind": "standalone", "pool": "demo"}
    for parameters in (nested(33), nested(99), {"a": "x" * 70_000}):
        answer = send(
            f"/api/v1/{path}", {**(whole if send == client.post else {}), "parameters": parameters}, "json"
        )
        assert answer.status_code == 400 and "parameters" in str(answer.json()), answer.json()
    for parameters in (nested(32), {"a": "x" * 60_000}):
        answer = client.patch("/api/v1/settings/bad/", {"parameters": parameters}, "json")
        assert answer.status_code == 200, answer.json()


@pytest.mark.parametrize("levels", [101, 400, 5000])
def test_no_body_nests_deeper_than_readers_can_take(operator: User, server: Server, levels: int) -> None:
    body = '{"a":' * levels + "1" + "}" * levels
    for client, path in (
        (api_client(operator), "settings/"),
        (api_client(server), "heartbeat/"),
        (api_client(server), "protocols/"),
    ):
        answer = client.post(f"/api/v1/{path}", body, content_type="application/json")
        assert answer.status_code == 400, path
        # A batch of records may nest deeper: a record is refused alone, or one of them would stop a spool.
        if path != "protocols/" or levels > DEEPEST_BATCH:
            assert "not_json" in str(answer.json()), path
