"""What people save with forms, over REST and by commands is in the audit, in the transaction of the save."""

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils.translation import override

from agents.manifests.apply import Manner, apply
from agents.manifests.document import Rejected, document_of
from agents.models import (
    Destination,
    LaunchSetting,
    MaintenanceWindow,
    Pool,
    PoolGrant,
    ScheduledGroup,
    Server,
)
from alerts.models import AlertRule, NoticeTarget
from console.audit.log import account
from console.audit.models import AuditEntry
from console.audit.saves import LONGEST, MOST, RowKind, change_words, saving
from console.audit.text import ACTIONS
from ma_site.demo import make_groups
from tests.web.launching import delayed, enabled, group_of, scheduled
from tests.web.rows import NOW, api_client, make_alive, make_setting

pytestmark = pytest.mark.django_db
HOOK = "https://alerts.example.org/team-7/hook?key=q1w2e3"
OLD_PASSWORD, NEW_PASSWORD = "correct horse battery", "purple monkey dishwasher 7"


@pytest.fixture
def chief(db: None) -> User:
    return User.objects.create_superuser("chief", password=OLD_PASSWORD)


@pytest.fixture
def browser(chief: User, client: Client) -> Client:
    client.force_login(chief)
    return client


def entries() -> list[tuple[str, str, str, str]]:
    rows = AuditEntry.objects.exclude(action="sign_in").order_by("pk")
    return list(rows.values_list("action", "target", "result", "by_name"))


def detail() -> dict[str, Any]:
    """Of the last entry."""
    found: dict[str, Any] = AuditEntry.objects.latest("pk").detail
    return found


def form_of(client: Client, path: str) -> dict[str, Any]:
    """What a browser sends of a form of the admin as it came."""
    context = client.get(path).context
    sets = [each.formset for each in context["inline_admin_formsets"]]
    forms = [context["adminform"].form, *(each.management_form for each in sets)]
    found = {field.html_name: field.value() for form in forms for field in form}
    return {name: value for name, value in found.items() if value is not None and value is not False}


def save(client: Client, path: str, **values: Any) -> Any:
    answer = client.post(path, form_of(client, path) | values)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    return answer


# -- what an entry says --------------------------------------------------------------------------------------


def test_a_change_over_rest_names_each_field_with_both_values(pool: Pool, chief: User) -> None:
    said = {"description": "shop", "servers": ["srv-2"], "allowed_agents": ["demo.orders"]}
    assert api_client(chief).patch("/api/v1/pools/demo/", said, "json").status_code == 200
    assert entries() == [("pool.change", "pool:demo", "done", "chief")]
    assert detail() == {
        "changes": {
            "description": {"old": "", "new": "shop"},
            "servers": {"removed": ["srv-1"]},
            "allowed_agents": {"old": None, "new": ["demo.orders"]},
        }
    }


def test_a_form_of_the_admin_tells_of_the_schedule_and_of_choices_too(pool: Pool, browser: Client) -> None:
    setting = delayed(pool, "nightly")
    daily = {"schedule_choice": "daily", "schedule_time": "02:30", "schedule_missed": "once"}
    save(browser, f"/agents/launchsetting/{setting.pk}/change/", spread="MANY", **daily)
    assert entries() == [("setting.change", "setting:nightly", "done", "chief")]
    assert AuditEntry.objects.get().setting_key == "nightly"
    assert detail()["changes"] == {
        "spread": {"old": "ANY", "new": "MANY"},
        "schedule": {"old": None, "new": "30 2 * * * UTC"},
        "missed": {"old": None, "new": "once"},
    }
    save(browser, f"/agents/launchsetting/{setting.pk}/change/", schedule_choice="")
    assert detail()["changes"]["schedule"] == {"old": "30 2 * * * UTC", "new": None}


def test_members_of_a_group_and_another_order_of_them_are_told(pool: Pool, chief: User) -> None:
    group_of(*[delayed(pool, key) for key in ("one", "two")])
    delayed(pool, "three")
    for members in (["one", "three"], ["three", "one"]):
        answer = api_client(chief).patch("/api/v1/groups/night/", {"members": members}, "json")
        assert answer.status_code == 200, answer.json()
    added, turned = (entry.detail["changes"] for entry in AuditEntry.objects.order_by("pk"))
    assert added == {"members": {"added": ["three"], "removed": ["two"]}}
    assert turned == {"members": {"old": ["one", "three"], "new": ["three", "one"]}}


def test_of_a_new_row_what_was_chosen_is_told_and_of_a_deleted_one_what_it_was(
    pool: Pool, groups: None, chief: User
) -> None:
    client, said = api_client(chief), {"pool": "demo", "group": "viewer", "may_run": True}
    made = client.post("/api/v1/grants/", said, "json").json()["id"]
    assert detail() == {
        "about": {"pool": "demo", "group": "viewer"},
        "changes": {"may_run": {"new": True}},
    }
    assert client.delete(f"/api/v1/grants/{made}/").status_code == 204
    assert detail() == {
        "about": {"pool": "demo", "group": "viewer"},
        "changes": {"may_run": {"old": True}},
    }
    names = ("grant.create", "grant.delete")
    assert entries() == [(name, f"grant:{made}", "done", "chief") for name in names]


def test_who_saves_what_is_so_already_is_in_the_audit(pool: Pool, chief: User, browser: Client) -> None:
    assert api_client(chief).patch("/api/v1/pools/demo/", {"description": ""}, "json").status_code == 200
    save(browser, f"/agents/pool/{pool.pk}/change/")
    assert entries() == [("pool.change", "pool:demo", "done", "chief")] * 2
    assert [entry.detail for entry in AuditEntry.objects.all()] == [{"changed": False}] * 2


def test_rows_that_are_deleted_together_have_an_entry_each(pool: Pool, browser: Client) -> None:
    rows = [Pool.objects.create(name=name, description="spare") for name in ("a", "b")]
    said = {"action": "delete_selected", "_selected_action": [row.pk for row in rows], "post": "yes"}
    assert browser.post("/agents/pool/", said).status_code == 302
    assert sorted(entries()) == [("pool.delete", f"pool:{name}", "done", "chief") for name in ("a", "b")]
    assert detail() == {"changes": {"description": {"old": "spare"}}}
    assert [row.name for row in Pool.objects.all()] == ["demo"]


def test_what_an_operation_deletes_has_the_entry_of_the_operation_alone(
    setting: LaunchSetting, browser: Client
) -> None:
    target = NoticeTarget.objects.create(setting=setting, channel="webhook", address=HOOK)
    assert browser.post(f"/alerts/noticetarget/{target.pk}/delete/", {"post": "yes"}).status_code == 302
    assert entries() == [("notice_target.delete", f"notice_target:{target.pk}", "done", "chief")]


def test_a_narrower_list_of_agents_counts_the_settings_that_it_withholds(pool: Pool, chief: User) -> None:
    enabled(make_setting(pool))
    api_client(chief).patch("/api/v1/pools/demo/", {"allowed_agents": ["other"]}, "json")
    assert AuditEntry.objects.get().counts == {"settings withheld": 1}


def test_long_texts_and_long_lists_are_cut(pool: Pool, chief: User) -> None:
    said = {"description": "x" * 999, "allowed_agents": [f"agent-{n}" for n in range(120)]}
    api_client(chief).patch("/api/v1/pools/demo/", said, "json")
    changes = detail()["changes"]
    assert changes["description"]["new"] == "x" * LONGEST + "…"
    assert changes["allowed_agents"]["new"][MOST - 1 :] == [f"agent-{MOST - 1}", "…"]


# -- what it never says --------------------------------------------------------------------------------------


def test_no_password_is_in_the_audit_in_any_form(browser: Client, chief: User) -> None:
    new = {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD, "usable_password": "true"}
    save(browser, "/auth/user/add/", username="anna", **new)
    anna = User.objects.get(username="anna")
    again = {"password1": NEW_PASSWORD[::-1], "password2": NEW_PASSWORD[::-1], "usable_password": "true"}
    assert browser.post(f"/auth/user/{anna.pk}/password/", again).status_code == 302
    own = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    assert browser.post("/password_change/", {"old_password": "wrong", **own}).status_code == 200
    assert browser.post("/password_change/", {"old_password": OLD_PASSWORD, **own}).status_code == 302
    assert browser.post(f"/auth/user/{anna.pk}/delete/", {"post": "yes"}).status_code == 302

    assert entries() == [
        ("person.create", "user:anna", "done", "chief"),
        ("person.password", "user:anna", "done", "chief"),
        ("person.password", "user:chief", "done", "chief"),
        ("person.delete", "user:anna", "done", "chief"),
    ]
    told = [entry.detail["changes"] for entry in AuditEntry.objects.order_by("pk")]
    assert told == [{"password": {}}, {"password": {}}, {"password": {}}, {}]


def test_of_a_webhook_the_audit_has_the_host_only(
    setting: LaunchSetting, chief: User, browser: Client
) -> None:
    said = {"setting": setting.key, "channel": "webhook", "address": HOOK}
    made = api_client(chief).post("/api/v1/notice-targets/", said, "json").json()
    save(browser, f"/alerts/noticetarget/{made['id']}/change/", address=HOOK + "1")
    told = json.dumps([entry.detail for entry in AuditEntry.objects.all()])
    assert "q1w2e3" not in told and "team-7" not in told and made["secret"] not in told
    assert detail()["changes"] == {"address": dict.fromkeys(("old", "new"), "https://alerts.example.org/…")}
    assert {entry.setting_key for entry in AuditEntry.objects.all()} == {setting.key}


def test_of_the_parameters_of_an_agent_only_the_names_are_told(pool: Pool, chief: User) -> None:
    make_setting(pool, parameters={"url": "amqp://a:b@c", "shop": 1})
    said = {"parameters": {"url": "amqp://a:secret@c", "rate": 2}}
    assert api_client(chief).patch("/api/v1/settings/orders/", said, "json").status_code == 200
    assert detail()["changes"] == {"parameters": {"added": ["rate"], "removed": ["shop"], "changed": ["url"]}}


# -- both or neither -----------------------------------------------------------------------------------------


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry can be made, as when the process dies before the commit."""

    def dies(*_args: Any, **_about: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("console.audit.saves.record", dies)


def of_pools() -> list[tuple[str, str, list[str]]]:
    return [
        (pool.name, pool.description, sorted(pool.servers.values_list("name", flat=True)))
        for pool in Pool.objects.order_by("name")
    ]


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("post", "/api/v1/pools/", {"name": "new", "servers": ["srv-1"]}),
        ("patch", "/api/v1/pools/demo/", {"description": "x", "servers": []}),
        ("post", "/api/v1/settings/", {"key": "new", "agent": "a", "pool": "demo", "kind": "standalone"}),
        ("post", "/api/v1/destinations/", {"name": "demo.new"}),
        ("post", "/api/v1/groups/", {"name": "new"}),
        ("post", "/api/v1/grants/", {"pool": "demo", "group": "viewer"}),
        ("post", "/api/v1/notice-targets/", {"pool": "demo", "channel": "webhook", "address": HOOK}),
    ],
)  # fmt: skip
def test_what_cannot_be_recorded_is_not_saved_over_rest(
    setting: LaunchSetting, groups: None, chief: User, full: None, method: str, path: str, said: Any
) -> None:
    kinds = (LaunchSetting, Destination, ScheduledGroup, PoolGrant, NoticeTarget)
    before = [kind.objects.count() for kind in kinds], of_pools()
    assert getattr(api_client(chief), method)(path, said, "json").status_code == 500
    assert ([kind.objects.count() for kind in kinds], of_pools()) == before


@pytest.mark.parametrize("what", ["add", "change", "delete", "delete_selected"])
def test_what_cannot_be_recorded_is_not_saved_by_the_admin(
    pool: Pool, browser: Client, full: None, what: str
) -> None:
    path, before = {"add": "add/", "delete_selected": ""}.get(what, f"{pool.pk}/{what}/"), of_pools()
    said: dict[str, Any] = {"name": "new", "description": "x", "servers": [], "post": "yes"}
    said |= {"action": what, "_selected_action": [pool.pk]} if what == "delete_selected" else {}
    with pytest.raises(OSError, match="full"):
        browser.post(f"/agents/pool/{path}", said)
    assert of_pools() == before


@pytest.mark.parametrize("path", ["/password_change/", "/auth/user/{}/password/"])
def test_a_password_whose_change_cannot_be_recorded_stays(
    chief: User, browser: Client, full: None, path: str
) -> None:
    names = ("password1", "password2", "new_password1", "new_password2")
    said = {"old_password": OLD_PASSWORD, "usable_password": "true"} | dict.fromkeys(names, NEW_PASSWORD)
    with pytest.raises(OSError, match="full"):
        browser.post(path.format(chief.pk), said)
    assert User.objects.get().check_password(OLD_PASSWORD)


def test_of_a_file_nothing_is_stored_where_one_entry_cannot_be_recorded(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"pools": {"demo": {"description": "x"}}, "destinations": {"demo.new": {}}}
    made: list[str] = []

    def dies_at_last(action: str, **_about: Any) -> None:
        made.append(action)
        if len(made) == len(data):
            raise OSError("the disk is full")

    monkeypatch.setattr("console.audit.saves.record", dies_at_last)
    with pytest.raises(OSError, match="full"):
        apply(document_of(data), None, NOW)
    assert made == ["pool.change", "destination.create"]
    assert (Pool.objects.get().description, Destination.objects.count()) == ("", 0)


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_of_two_saves_at_once_the_second_tells_what_the_first_has_left() -> None:
    pool, inside, may_go = Pool.objects.create(name="demo"), threading.Event(), threading.Event()

    def change(text: str) -> None:
        try:
            with saving(Pool.objects.get(pk=pool.pk), None):
                Pool.objects.filter(pk=pool.pk).update(description=text)
                inside.set()
                may_go.wait(20)
        finally:
            connection.close()

    with ThreadPoolExecutor() as threads:
        first = threads.submit(change, "first")
        inside.wait(20)
        second = threads.submit(change, "second")
        with pytest.raises(TimeoutError):
            second.result(0.5)
        may_go.set()
        first.result(20)
        second.result(20)
    told = [entry.detail["changes"]["description"] for entry in AuditEntry.objects.order_by("pk")]
    assert told == [{"old": "", "new": "first"}, {"old": "first", "new": "second"}]


# -- refused -------------------------------------------------------------------------------------------------


MADE: Mapping[Any, Callable[[Pool], Any]] = {
    AlertRule: lambda pool: AlertRule.objects.create(kind="spool_filling", pool=pool, upper=50),
    Destination: lambda pool: Destination.objects.create(name="demo.spare"),
    Group: lambda pool: Group.objects.get(name="viewer"),
    LaunchSetting: make_setting,
    MaintenanceWindow: lambda pool: MaintenanceWindow.objects.create(
        pool=pool, crontab="0 2 * * 0", minutes=60
    ),
    NoticeTarget: lambda pool: NoticeTarget.objects.create(pool=pool, channel="webhook", address=HOOK),
    Pool: lambda pool: pool,
    PoolGrant: lambda pool: PoolGrant.objects.create(pool=pool, group=Group.objects.get(name="viewer")),
    ScheduledGroup: lambda pool: group_of(delayed(pool)),
    Server: lambda pool: pool.servers.get(name="srv-1"),
    User: lambda pool: User.objects.get(username="viewer"),
}


def test_every_row_that_people_save_is_tried_here() -> None:
    assert set(MADE) == set(RowKind.known)


@pytest.mark.parametrize("model", MADE, ids=lambda model: model._meta.model_name)
def test_a_form_that_is_refused_leaves_one_entry(
    pool: Pool, viewer: User, client: Client, model: Any
) -> None:
    row, kind = MADE[model](pool), RowKind.known[model]
    rows, target = f"/{model._meta.app_label}/{model._meta.model_name}/", kind.names(row, "")["target"]
    client.force_login(viewer)
    tried = [("add/", "create"), (f"{row.pk}/change/", "change"), (f"{row.pk}/delete/", "delete")]
    tried += [(f"{row.pk}/password/", "password")] if model is User else []
    for path, _verb in tried:
        assert client.post(rows + path, {"post": "yes"}).status_code == 403
    targets = [f"page:{rows}add/", *[target] * (len(tried) - 1)]
    codes = [kind.code(verb) for _path, verb in tried]
    assert entries() == [
        (code, target, "refused", "viewer") for code, target in zip(codes, targets, strict=True)
    ]
    assert {entry.detail["why"] for entry in AuditEntry.objects.all()} == {"permission denied"}
    for path, _verb in tried:
        client.get(rows + path)
    assert len(entries()) == len(tried), "a look is no attempt"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("post", "pools/", "pool.create"),
        ("patch", "pools/demo/", "pool.change"),
        ("post", "destinations/", "destination.create"),
        ("patch", "destinations/demo.orders/", "destination.change"),
        ("post", "grants/", "grant.create"),
        ("patch", "grants/{grant}/", "grant.change"),
        ("delete", "grants/{grant}/", "grant.delete"),
        ("post", "groups/", "group.create"),
        ("patch", "groups/night/", "group.change"),
        ("post", "notice-targets/", "notice_target.create"),
        ("post", "settings/", "setting.create"),
        ("patch", "settings/orders/", "setting.change"),
        ("patch", "settings/none-such/", "setting.change"),
    ],
)
def test_a_call_that_is_refused_leaves_one_entry(
    setting: LaunchSetting, viewer: User, method: str, path: str, code: str
) -> None:
    group_of(delayed(setting.pool))
    path = path.format(grant=MADE[PoolGrant](setting.pool).pk)
    said = {"pool": "demo", "channel": "webhook", "address": HOOK} if path.startswith("notice") else {}
    answer = getattr(api_client(viewer), method)(f"/api/v1/{path}", said, "json")
    assert answer.status_code == (404 if "none-such" in path else 403)
    assert entries() == [(code, f"rest:/api/v1/{path}", "refused", "viewer")]


# -- commands ------------------------------------------------------------------------------------------------


FILE = {
    "pools": {"demo": {"description": "x"}, "new": {}},
    "destinations": {"demo.orders": {}},
    "settings": {"orders": {"breaker_m": 12}, "nightly": {"schedule": {"crontab": "0 4 * * *"}}},
    "groups": {"night": {"members": ["one"], "schedule": None}},
}


@pytest.fixture
def house(pool: Pool) -> Pool:
    make_setting(pool)
    scheduled(delayed(pool, "nightly"))
    scheduled(group_of(delayed(pool, "one"), delayed(pool, "two")), "", every_seconds=3600)
    return pool


def test_a_file_that_is_applied_leaves_an_entry_for_each_row_that_it_changes(
    house: Pool, chief: User
) -> None:
    apply(document_of(FILE), chief, NOW, Manner(dry_run=True))
    assert entries() == []
    apply(document_of(FILE), chief, NOW)
    changed = ["pool.change pool:demo", "pool.create pool:new", "setting.change setting:orders"]
    changed += ["setting.change setting:nightly", "group.change group:night"]
    assert [f"{action} {target}" for action, target, *_more in entries()] == changed
    assert {(result, by) for *_names, result, by in entries()} == {("done", "chief")}
    assert detail()["changes"] == {
        "members": {"removed": ["two"]},
        "schedule": {"old": "3600 s", "new": None},
        "missed": {"old": "skip", "new": None},
    }
    apply(document_of(FILE), chief, NOW)
    assert len(entries()) == len(changed), "the second time nothing is saved"


def test_a_file_that_is_refused_leaves_no_entry(house: Pool) -> None:
    with pytest.raises(Rejected):
        apply(document_of(FILE | {"settings": {"orders": {"breaker_m": -1}}}), None, NOW)
    assert entries() == []


def test_what_a_file_switches_off_is_in_the_audit(house: Pool) -> None:
    enabled(LaunchSetting.objects.get(key="orders"))
    apply(document_of({"settings": {"orders": {"enabled": False}}}), None, NOW)
    assert entries() == [("setting.disable", "setting:orders", "done", "")]
    assert detail() == {"account": account()}


def test_what_a_file_switches_on_or_cannot_is_in_the_audit(house: Pool, chief: User) -> None:
    make_alive(*house.servers.all(), now=NOW)
    outcome = apply(document_of({"settings": {"nightly": {"enabled": True}}}), chief, NOW)
    assert not outcome.refused and entries() == [("setting.enable", "setting:nightly", "done", "chief")]
    Pool.objects.update(allowed_agents=[])
    outcome = apply(document_of({"groups": {"night": {"enabled": True}}}), chief, NOW)
    assert outcome.refused and entries()[1:] == [("group.enable", "group:night", "refused", "chief")]


def test_a_server_that_is_made_by_command_is_in_the_audit(db: None) -> None:
    for _ in range(2):
        call_command("create_server", "srv-7", stdout=StringIO(), stderr=StringIO())
    made = AuditEntry.objects.exclude(action="token.issue").get()
    assert (made.action, made.target, made.by_name) == ("server.create", "server:srv-7", "")
    assert made.detail == {"changes": {}, "account": account()}


def test_the_made_up_history_is_made_and_removed_with_an_entry(db: None) -> None:
    for options in ({}, {"remove": True}):
        call_command("demo_history", stdout=StringIO(), **options)
    assert [action for action, *_ in entries()] == ["pool.create", "setting.create", "setting.remove"]


def test_roles_that_the_site_makes_are_in_the_audit_once(db: None) -> None:
    make_groups()
    assert [row[:2] for row in entries()] == [
        ("role.create", f"role:{name}") for name in ("viewer", "operator")
    ]
    make_groups()
    Group.objects.get(name="viewer").permissions.remove(Permission.objects.get(codename="view_pool"))
    make_groups()
    assert entries()[2:] == [("role.change", "role:viewer", "done", "")]
    assert detail()["changes"] == {"permissions": {"added": ["agents.view_pool"]}}


# -- words ---------------------------------------------------------------------------------------------------


SAYS: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("setting.change", "changes", {"mode": {"old": "AUTO", "new": "TRANSACTED"}},
     "acknowledgement mode: auto acknowledge → transacted",
     "режим подтверждения: автоматически → в транзакции"),
    ("setting.change", "changes", {"count_once": {"old": False, "new": True}},
     "breaker: count each message once: no → yes",
     "предохранитель: считать каждое сообщение один раз: нет → да"),
    ("pool.change", "changes", {"allowed_agents": {"old": None, "new": ["a", "b"]}},
     "allowed agents: all agents on the pool's servers → a, b",
     "разрешённые агенты: все агенты на серверах пула → a, b"),
    ("pool.change", "changes", {"servers": {"added": ["s1", "s2"], "removed": ["s3"]}},
     "servers: added: s1, s2; removed: s3", "серверы: добавлено: s1, s2; удалено: s3"),
    ("group.create", "changes", {"schedule": {"new": "60 s"}, "missed": {"new": "once"}},
     "schedule: 60 s; missed runs: run once",
     "расписание: 60 s; пропущенные запуски: выполнить один раз"),
    ("person.password", "changes", {"password": {}}, "password: changed", "пароль: изменено"),
    ("role.change", "changes", {"permissions": {"added": ["agents.view_pool", "agents.can_enable", "x.y"]}},
     "permissions: added: Can view pools, Can enable launch settings, x.y",
     "права: добавлено: Может просматривать: пулы, Может включать настройки запуска, x.y"),
    ("alert_rule.change", "about", {"kind": "spool_filling", "pool": None},
     "kind: Spool filling up; pool: —", "вид: Буфер отчётов (spool) заполняется; пул: —"),
    ("pool.change", "changes", {"gone": {"old": "", "new": "x"}}, "gone: — → x", "gone: — → x"),
    ("none.such", "changes", {"x": {"new": 1}}, "", ""),
    ("pool.change", "changes", {"description": ["of", "a", "later", "version"]},
     "description: changed", "описание: изменено"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "part", "told", "english", "russian"), SAYS)
def test_changes_are_said_in_the_language_of_the_reader(
    action: str, part: str, told: dict[str, Any], english: str, russian: str
) -> None:
    for language, expected in (("en", english), ("ru", russian)):
        with override(language):
            said = "; ".join(f"{label}: {text}" for label, text in change_words(action, {part: told}))
            assert said == expected


def test_the_page_of_the_audit_shows_what_was_saved(pool: Pool, chief: User, browser: Client) -> None:
    api_client(chief).patch("/api/v1/pools/demo/", {"description": "<b>shop</b>"}, "json")
    page = browser.get("/audit/").content.decode()
    assert "Pools: Change" in page and "description: — → &lt;b&gt;shop&lt;/b&gt;" in page
    browser.cookies["django_language"] = "ru"
    page = browser.get("/audit/").content.decode()
    assert "Пулы: Изменить" in page and "описание: — → " in page


def test_every_code_of_a_saved_row_has_words_and_none_stands_for_an_operation() -> None:
    codes = {kind.code(verb) for kind in RowKind.known.values() for verb in kind.verbs}
    assert codes <= ACTIONS.keys()
    assert {"setting.delete", "server.delete"}.isdisjoint(ACTIONS)
