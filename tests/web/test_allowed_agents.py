"""A pool says which agents its settings may run; who edits settings there cannot go beyond it."""

from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from agents.activations.operations import run_now
from agents.models import Activation, LaunchSetting, Pool, PoolGrant, Run, Server
from agents.settings.enable import enable_setting
from console.operations.refusals import Refused
from tests.web.rows import api_client, heartbeat_json, make_alive, make_person, make_setting

pytestmark = pytest.mark.django_db

AGENTS = ("shop.prices", "shop.report", "demo.scripted")


@pytest.fixture
def chief(groups: None) -> User:
    """May change pools and settings."""
    return make_person("chief", "operator")


@pytest.fixture
def mate(viewer: User, pool: Pool) -> User:
    """Sees everything, and has every right in the pool `demo`; no permission beside it."""
    group = Group.objects.create(name="of demo")
    viewer.groups.add(group)
    rights = ("edit", "enable", "disable", "run", "stop")
    PoolGrant.objects.create(pool=pool, group=group, **{f"may_{name}": True for name in rights})
    return User.objects.get(pk=viewer.pk)


@pytest.fixture
def prices(pool: Pool) -> LaunchSetting:
    return make_setting(pool, "prices", agent="shop.prices", spread="MANY")


@pytest.fixture
def scripted(pool: Pool) -> LaunchSetting:
    return make_setting(pool, "scripted", agent="demo.scripted", spread="MANY")


@pytest.fixture
def house(server: Server, second_server: Server, prices: LaunchSetting, scripted: LaunchSetting) -> Pool:
    """Two live servers that run both settings."""
    make_alive(server, second_server, now=timezone.now(), agents=AGENTS)
    for setting in (prices, scripted):
        enable_setting(setting, None, timezone.now())
    return prices.pool


def allow(who: User, *agents: str | None) -> Any:
    """The answer to the list of the pool `demo`; None: every agent."""
    wanted = None if agents == (None,) else list(agents)
    return api_client(who).patch("/api/v1/pools/demo/", {"allowed_agents": wanted}, "json")


def desired_of(server: Server) -> list[str]:
    """Keys of what a KMA that comes now is sent."""
    said = heartbeat_json(server.name, sent_at=timezone.now(), agents=AGENTS)
    answer = api_client(server).post("/api/v1/heartbeat/", said, format="json")
    assert answer.status_code == 200, answer.content
    return [run["setting"] for run in answer.json()["desired"]["runs"]]


@pytest.mark.both_databases
def test_a_setting_that_runs_leaves_the_desired_state_when_the_list_is_narrowed(
    house: Pool, chief: User, server: Server, second_server: Server
) -> None:
    assert [desired_of(each) for each in (server, second_server)] == [["prices", "scripted"]] * 2
    allow(chief, "shop.prices")
    assert [desired_of(each) for each in (server, second_server)] == [["prices"]] * 2, "it goes on as before"
    assert set(Run.objects.exclude(withheld_because="").values_list("withheld_because", flat=True)) == {
        "agent_not_allowed"
    }
    allow(chief, None)
    assert [desired_of(each) for each in (server, second_server)] == [["prices", "scripted"]] * 2, (
        "it comes again"
    )
    assert not Run.objects.exclude(withheld_because="").exists()


def test_who_edits_in_a_pool_cannot_choose_an_agent_beyond_its_list(
    house: Pool, chief: User, mate: User, prices: LaunchSetting
) -> None:
    allow(chief, "shop.prices", "shop.report")
    client = api_client(mate)
    answer = client.patch("/api/v1/settings/prices/", {"agent": "demo.scripted"}, "json")
    assert answer.status_code == 400, "the REST call was taken"
    body = answer.json()
    assert body["where"] == "agent" and "does not allow the agent “demo.scripted”" in body["detail"]
    assert "shop.prices, shop.report" in body["detail"], "and says what helps"
    new = {"key": "third", "agent": "demo.scripted", "kind": "standalone", "pool": "demo"}
    assert client.post("/api/v1/settings/", new, "json").json()["where"] == "agent"
    assert client.post("/api/v1/settings/", {**new, "agent": "shop.report"}, "json").status_code == 201
    assert client.patch("/api/v1/settings/prices/", {"agent": "shop.report"}, "json").status_code == 200


def test_a_setting_cannot_be_moved_into_a_pool_that_does_not_allow_its_agent(
    house: Pool, chief: User, prices: LaunchSetting
) -> None:
    Pool.objects.create(name="narrow", allowed_agents=["shop.report"])
    answer = api_client(chief).patch("/api/v1/settings/prices/", {"pool": "narrow"}, "json")
    assert answer.status_code == 400 and answer.json()["where"] == "pool", answer.json()
    both = {"pool": "narrow", "agent": "shop.report"}
    assert api_client(chief).patch("/api/v1/settings/prices/", both, "json").status_code == 200


def test_the_rest_of_a_setting_that_is_not_allowed_may_be_edited(
    house: Pool, chief: User, scripted: LaunchSetting
) -> None:
    allow(chief, "shop.prices")
    assert (
        api_client(chief).patch("/api/v1/settings/scripted/", {"description": "?"}, "json").status_code == 200
    )


def test_the_form_of_a_setting_says_it_at_the_field(
    house: Pool, chief: User, scripted: LaunchSetting
) -> None:
    client = _signed_in(chief)
    path = f"/agents/launchsetting/{scripted.pk}/change/"
    form = _form_of(client, path)
    allow(chief, "shop.prices")
    answer = client.post(path, {**form, "agent": "shop.report"})
    assert answer.status_code == 200
    assert "does not allow the agent" in str(answer.context["adminform"].form.errors["agent"])
    preview = client.get(
        "/previews/setting/", {"breaker_m": "10", "agent": "shop.report", "pool": str(house.pk)}
    )
    assert "does not allow the agent" in preview.content.decode()


@pytest.mark.parametrize("allowed", [[], ["shop.prices"]])
def test_what_is_not_allowed_cannot_be_enabled_nor_started(
    pool: Pool, server: Server, scripted: LaunchSetting, operator: User, allowed: list[str]
) -> None:
    make_alive(server, now=timezone.now(), agents=AGENTS)
    Pool.objects.filter(pk=pool.pk).update(allowed_agents=allowed)
    answer = api_client(operator).post("/api/v1/settings/scripted/enable/", {}, "json")
    assert answer.status_code == 409 and answer.json()["error"] == "agent_not_allowed", answer.json()
    assert "“demo”" in answer.json()["detail"] and "who" in answer.json()["what_to_do"]
    page = _signed_in(operator).get("/settings/scripted/").content.decode()
    assert "The pool does not allow the agent." in page
    nightly = make_setting(pool, "nightly", agent="demo.scripted", timing="DELAYED", enabled=True)
    with pytest.raises(Refused) as refused:
        run_now(nightly, None, timezone.now())
    assert refused.value.code == "agent_not_allowed"


def test_only_who_may_change_pools_changes_the_list_and_the_audit_has_it(
    house: Pool, chief: User, mate: User
) -> None:
    assert allow(mate, "demo.scripted").status_code == 403
    assert _signed_in(mate).post(f"/agents/pool/{house.pk}/change/", {"allows": "every"}).status_code == 403
    assert allow(chief, "shop.prices", "shop.report").status_code == 200
    allow(chief, "shop.prices")
    done = "/api/v1/audit/?action=pool.change&result=done"
    told = api_client(_with(mate, "view_auditentry")).get(done).json()["results"]
    assert [(entry["by"], entry["target"]) for entry in told] == [("chief", "pool:demo")] * 2
    second, first = (entry["detail"]["changes"]["allowed_agents"] for entry in told)
    assert first == {"old": None, "new": ["shop.prices", "shop.report"]}
    assert second == {"removed": ["shop.report"]} and told[1]["counts"] == {"settings withheld": 1}
    history = [
        (change.what, change.new, str(change.by))
        for change in house.settings.get(key="scripted").changes.all()
    ]
    assert ("agent", "not_allowed", "chief") in history
    allow(chief, "shop.prices")
    assert api_client(mate).get(done).json()["results"][0]["detail"] == {"changed": False}


@pytest.mark.parametrize(
    "wanted", ["shop.prices", [1, {}], ["x" * 201], ["a", "a"], [""], {"a": 1}, [f"a{n}" for n in range(501)]]
)
def test_a_list_that_is_none_is_refused(pool: Pool, chief: User, wanted: Any) -> None:
    answer = api_client(chief).patch("/api/v1/pools/demo/", {"allowed_agents": wanted}, "json")
    assert answer.status_code == 400 and "allowed_agents" in answer.json()["where"], answer.json()
    assert Pool.objects.get().allowed_agents is None


@pytest.mark.both_databases
def test_pools_from_before_the_list_allow_every_agent(pool: Pool, chief: User) -> None:
    assert api_client(chief).get("/api/v1/pools/demo/").json()["allowed_agents"] is None
    assert pool.allows("whatever")


@pytest.mark.both_databases
@pytest.mark.parametrize("stored", ["demo.scripted and more", 5, {"demo.scripted": 1}])
def test_what_is_no_list_in_the_row_allows_nothing_and_stops_nobody_else(
    house: Pool, server: Server, stored: Any
) -> None:
    other = Pool.objects.create(name="other")
    other.servers.add(server)
    make_setting(other, "elsewhere", agent="shop.report", spread="MANY")
    enable_setting(LaunchSetting.objects.get(key="elsewhere"), None, timezone.now())
    Pool.objects.filter(pk=house.pk).update(allowed_agents=stored)
    assert desired_of(server) == ["elsewhere"]


def test_the_page_of_a_pool_says_what_a_list_would_stop_before_it_is_saved(house: Pool, chief: User) -> None:
    make_setting(house, "off", agent="demo.scripted")
    client, path = _signed_in(chief), f"/agents/pool/{house.pk}/change/"
    preview = f"/previews/pool/{house.pk}/"
    assert "Every setting in this pool uses an allowed agent." in client.get(path).content.decode()
    hint = client.get(
        preview, {"allows": "listed", "listed_agents": "shop.prices\nshop.gone"}
    ).content.decode()
    assert (
        "With this list, these enabled settings will not be sent to their servers:" in hint
        and "/settings/scripted/" in hint
        and "/settings/prices/" not in hint
    )
    assert (
        "With this list, these disabled settings cannot be enabled:" in hint
        and "/settings/off/" in hint
        and "shop.gone" in hint
    )
    form = _form_of(client, path)
    answer = client.post(
        path, {**form, "allows": "listed", "listed_agents": "shop.prices, shop.report"}, follow=True
    )
    assert Pool.objects.get(pk=house.pk).allowed_agents == ["shop.prices", "shop.report"]
    assert (
        "Settings no longer sent to their servers because the pool does not allow their agents:"
        in answer.content.decode()
        and "scripted" in answer.content.decode()
    )
    assert list(house.servers.values_list("name", flat=True)) == ["srv-1", "srv-2"]
    answer = client.post(path, {**form, "allows": "every", "listed_agents": "shop.prices"})
    assert "This list has no effect while all agents are allowed." in str(
        answer.context["adminform"].form.errors["listed_agents"]
    )
    answer = client.post(path, {**form, "allows": "listed", "listed_agents": "x" * 201})
    assert "at most 200 characters" in str(answer.context["adminform"].form.errors["listed_agents"])
    client.post(path, {**form, "allows": "every", "listed_agents": ""})
    assert Pool.objects.get(pk=house.pk).allowed_agents is None


def test_who_may_only_look_at_a_pool_sees_its_list(house: Pool, viewer: User) -> None:
    Pool.objects.filter(pk=house.pk).update(allowed_agents=["shop.prices"])
    answer = _signed_in(viewer).get(f"/agents/pool/{house.pk}/change/")
    assert answer.status_code == 200 and "shop.prices" in answer.content.decode()
    assert 'name="listed_agents"' not in answer.content.decode()


def test_the_alert_opens_and_closes_by_itself(house: Pool, chief: User, server: Server) -> None:
    from alerts.evaluation import evaluate_all
    from alerts.models import Alert, AlertEvaluation

    def look(seconds: int) -> list[str]:
        AlertEvaluation.objects.all().delete()
        evaluate_all(timezone.now() + timedelta(seconds=seconds))
        found = Alert.objects.filter(kind="setting_withheld", state="open").order_by("subject")
        return list(found.values_list("subject", flat=True))

    make_setting(house, "nightly", agent="demo.scripted", timing="DELAYED", enabled=True)
    allow(chief, "shop.prices")
    desired_of(server)
    look(0)
    assert look(30) == ["nightly", "scripted"], "also where no run is wanted now"
    allow(chief, None)
    desired_of(server)
    look(60)
    assert look(90) == []


@pytest.mark.both_databases
@pytest.mark.parametrize("fields", [{"kind": "standalone"}, {"timing": "DELAYED"}])
def test_what_would_end_by_itself_is_stopped_and_does_not_pass_for_done(
    house: Pool, chief: User, server: Server, fields: dict[str, str]
) -> None:
    setting = make_setting(house, "once", agent="demo.scripted", enabled=True, **fields)
    for each in house.servers.all():
        each.offered_agents.update_or_create(name="demo.scripted", defaults={"kind": setting.kind})
    activation = _started(setting)
    assert activation.runs.filter(wanted=True).exists()
    allow(chief, "shop.prices")
    activation.refresh_from_db()
    assert activation.ending == "stopped" and not activation.runs.filter(wanted=True).exists()
    page = _signed_in(chief).get(f"/activations/{activation.pk}/").content.decode()
    assert "the pool no longer allows the agent" in page


def test_a_file_narrows_the_list_and_says_what_it_stops(house: Pool, tmp_path: Any) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text("pools: {demo: {allowed_agents: [shop.prices]}}\n")
    printed = _printed("apply", str(file))
    assert '~ pools/demo/allowed_agents: none → ["shop.prices"]' in printed
    assert "scripted: is not sent to servers" in printed
    exported = _printed("export")
    assert "allowed_agents:\n    - shop.prices" in exported
    file.write_text(exported)
    assert "Nothing to change." in _printed("apply", str(file))
    file.write_text("pools: {demo: {allowed_agents: null}}\n")
    assert '~ pools/demo/allowed_agents: ["shop.prices"] → none' in _printed("apply", str(file))


def test_a_file_cannot_bring_an_agent_that_the_pool_does_not_allow(
    house: Pool, mate: User, tmp_path: Any
) -> None:
    from agents.manifests.apply import apply
    from agents.manifests.document import Rejected, document_of

    def problems(data: Any, by: Any = None) -> list[str]:
        with pytest.raises(Rejected) as refused:
            apply(document_of(data), by, timezone.now())
        return [problem.path for problem in refused.value.problems]

    Pool.objects.filter(pk=house.pk).update(allowed_agents=["shop.prices"])
    assert problems({"settings": {"prices": {"agent": "shop.report"}}}) == ["settings/prices/agent"]
    new = {"agent": "shop.report", "pool": "demo", "kind": "standalone"}
    assert problems({"settings": {"third": new}}) == ["settings/third/agent"]
    assert problems({"pools": {"demo": {"allowed_agents": None}}}, mate) == ["pools/demo/allowed_agents"]
    assert problems({"pools": {"demo": {"allowed_agents": "shop.prices"}}}) == ["pools/demo/allowed_agents"]
    assert problems({"pools": {"demo": {"allowed_agents": ["a", "a"]}}}) == ["pools/demo/allowed_agents"]


def test_doctor_leaves_out_samples_that_no_pool_allows(house: Pool, server: Server) -> None:
    from ma_site.checks.kmas import check_kmas

    def warned() -> list[str]:
        return [finding.detail for finding in check_kmas(timezone.now()) if "sample agents" in finding.detail]

    main = Pool.objects.create(name="main")
    main.servers.add(server)
    assert len(warned()) == 1
    Pool.objects.filter(pk=main.pk).update(allowed_agents=["shop.prices"])
    assert warned() == []
    Pool.objects.filter(pk=main.pk).update(allowed_agents=["demo.scripted"])
    assert len(warned()) == 1


def test_doctor_names_what_a_list_keeps_from_running(house: Pool) -> None:
    from ma_site.checks.kmas import check_kmas

    Pool.objects.filter(pk=house.pk).update(allowed_agents=["shop.prices"])
    told = [finding.detail for finding in check_kmas(timezone.now())]
    assert "scripted is enabled but runs nowhere: its pool demo does not allow demo.scripted" in told


@pytest.mark.both_databases
def test_a_form_that_was_checked_before_the_list_changed_leads_to_nothing_that_runs(
    house: Pool, chief: User, server: Server, prices: LaunchSetting
) -> None:
    """As at the same moment: saved with an agent that is not allowed any more."""
    LaunchSetting.objects.filter(pk=prices.pk).update(agent="shop.report")
    Pool.objects.filter(pk=house.pk).update(allowed_agents=["shop.prices", "demo.scripted"])
    assert desired_of(server) == ["scripted"]
    prices.refresh_from_db()
    prices.clean()  # both as they are stored
    prices.agent = "shop.other"
    with pytest.raises(ValidationError):
        prices.clean()


@pytest.mark.both_databases
def test_a_change_whose_audit_cannot_be_written_is_no_change(
    house: Pool, chief: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kill between the two: row, audit and ends are one transaction."""

    def dies(*_: Any, **__: Any) -> None:
        raise KeyError("killed here")

    monkeypatch.setattr("console.audit.saves.record", dies)
    assert allow(chief, "shop.prices").status_code == 500
    assert Pool.objects.get(pk=house.pk).allowed_agents is None
    assert desired_of(server) == ["prices", "scripted"]


def test_a_run_that_was_given_up_is_not_resumed_with_an_agent_that_is_not_allowed(
    house: Pool, chief: User, server: Server, scripted: LaunchSetting
) -> None:
    run = Run.objects.get(activation__setting=scripted, server=server)
    Run.objects.filter(pk=run.pk).update(state="interrupted", wanted=False, closed_at=timezone.now())
    allow(chief, "shop.prices")
    answer = api_client(chief).post("/api/v1/settings/scripted/resume/", {"server": server.name}, "json")
    assert answer.status_code == 409 and answer.json()["error"] == "agent_not_allowed", answer.json()


def _started(setting: LaunchSetting) -> Activation:
    from agents.activations.operations import start_activation
    from agents.models import Trigger

    now: datetime = timezone.now()
    return start_activation(setting, Trigger.PERSON, None, now)


def _signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


def _with(who: User, permission: str) -> User:
    who.user_permissions.add(Permission.objects.get(codename=permission))
    return User.objects.get(pk=who.pk)


def _form_of(client: Client, path: str) -> dict[str, Any]:
    """What a browser would send of the form as it is."""
    form = client.get(path).context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in values.items() if value not in (None, False)}


def _printed(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue()
