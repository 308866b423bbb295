"""Every operation: who asked is in the audit, with what was done or instead of it; page, REST and command say
the same."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from agents.acknowledgements.operations import Commit, RollBack
from agents.activations.operations import StopActivation
from agents.alerts.operations import CloseAlert, SnoozeAlert
from agents.destinations.operations import AdoptPolicy, ApplyPolicy
from agents.groups.operations import DeleteGroup, DisableGroup, EnableGroup, MoveMember, RunGroup, StopGroup
from agents.models import (
    Acknowledgement,
    Activation,
    Alert,
    AlertState,
    AlertTransition,
    Duty,
    GroupActivation,
    GroupMember,
    Interruption,
    LaunchSetting,
    Notice,
    NoticeTarget,
    OfferedAgent,
    Pool,
    Run,
    Schedule,
    ScheduledGroup,
    Server,
    ServerToken,
    StateChange,
    Window,
)
from agents.notices.operations import DeleteTarget, RenewSecret, SendTest
from agents.servers.operations import Cordon, Drain, RemoveServer, Uncordon
from agents.services import answering
from agents.services.duty import set_duty
from agents.services.groups import enable_group, run_group_now
from agents.services.settings import enable_setting
from agents.services.starting import run_now
from agents.services.tokens import issue_server_token
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
    RemoveSetting,
    ResumeRun,
    RetryMessage,
    RunSetting,
    StopSetting,
)
from console.audit.log import account
from console.audit.models import AuditEntry
from console.operations.operation import Operation, check_allowed, perform
from console.operations.refusals import NotAllowed, Refused
from tests.web.launching import group_of
from tests.web.rows import api_client, make_alive, make_person, make_setting

TABLES = (
    Acknowledgement, Activation, Alert, AlertTransition, GroupActivation, GroupMember, Interruption,
    LaunchSetting, Notice, NoticeTarget, OfferedAgent, Run, Schedule, ScheduledGroup, Server, ServerToken,
    StateChange, Window,
)  # fmt: skip


def entries() -> list[tuple[str, str, str, str]]:
    rows = AuditEntry.objects.order_by("pk")
    return list(rows.values_list("action", "target", "result", "by_name"))


# -- an object of each operation, with which it can be done --------------------------------------------------


def server_of(pool: Pool) -> Server:
    return pool.servers.get(name="srv-1")


def cordoned(pool: Pool) -> Server:
    set_duty(server_of(pool), Duty.CORDONED, None, timezone.now())
    return server_of(pool)


def silent(pool: Pool) -> Server:
    server = Server.objects.create(name="gone")
    issue_server_token(server, now=timezone.now())
    OfferedAgent.objects.create(server=server, name="demo.orders", kind="message")
    return server


def off(pool: Pool) -> LaunchSetting:
    return make_setting(pool, "off")


def on(pool: Pool) -> LaunchSetting:
    setting = make_setting(pool, "on", timing="DELAYED")
    enable_setting(setting, None, timezone.now())
    return LaunchSetting.objects.get(pk=setting.pk)


def running(pool: Pool) -> LaunchSetting:
    setting = on(pool)
    run_now(setting, None, timezone.now())
    return setting


def ordered(pool: Pool) -> LaunchSetting:
    setting = make_setting(pool, "ordered", ordered=True, spread="MANY", mode="AUTO")
    enable_setting(setting, None, timezone.now())
    return LaunchSetting.objects.get(pk=setting.pk)


def interrupted(pool: Pool) -> LaunchSetting:
    setting = make_setting(pool, "interrupted", spread="MANY")
    enable_setting(setting, None, timezone.now())
    runs = Run.objects.filter(activation__setting=setting, server__name="srv-1")
    runs.update(state="interrupted", closed_at=timezone.now())
    return LaunchSetting.objects.get(pk=setting.pk)


def standalone(pool: Pool) -> LaunchSetting:
    """Nothing of it is on the broker."""
    return make_setting(pool, "report", kind="standalone", destination=None, timing="DELAYED")


def group_off(pool: Pool) -> ScheduledGroup:
    return group_of(make_setting(pool, "m-1", timing="DELAYED"), make_setting(pool, "m-2", timing="DELAYED"))


def group_on(pool: Pool) -> ScheduledGroup:
    return enable_group(group_off(pool), None, timezone.now())


def group_running(pool: Pool) -> ScheduledGroup:
    group = group_on(pool)
    run_group_now(group, None, timezone.now())
    return group


def activation(pool: Pool) -> Activation:
    return Activation.objects.get(setting=running(pool))


def alert(pool: Pool) -> Alert:
    return Alert.objects.create(kind="spool_filling", subject="srv-1", severity=2, state=AlertState.OPEN)


def webhook(pool: Pool) -> NoticeTarget:
    return NoticeTarget.objects.create(pool=pool, channel="webhook", address="http://127.0.0.1:1/hook")


def waiting(pool: Pool) -> Acknowledgement:
    started = activation(pool)
    return Acknowledgement.objects.create(
        setting=started.setting,
        server=server_of(pool),
        activation_uuid=started.pk,
        epoch=1,
        acknowledgement="a-1",
        jms_message_id="ID:7",
        created_at=timezone.now(),
    )


CASES: dict[type[Operation[Any]], tuple[Callable[[Pool], Any], dict[str, Any]]] = {
    Cordon: (server_of, {"reason": "new disk"}),
    Drain: (server_of, {"reason": "new disk"}),
    Uncordon: (cordoned, {}),
    RemoveServer: (silent, {}),
    EnableSetting: (off, {}),
    DisableSetting: (on, {"reason": "mending"}),
    RunSetting: (on, {}),
    StopSetting: (running, {"reason": "wrong day"}),
    RetryMessage: (ordered, {}),
    ResumeRun: (interrupted, {}),
    RemoveSetting: (standalone, {}),
    EnableGroup: (group_off, {}),
    DisableGroup: (group_on, {"reason": "mending"}),
    RunGroup: (group_on, {}),
    StopGroup: (group_running, {"reason": "wrong day"}),
    MoveMember: (group_off, {"member": "m-2", "to": "up"}),
    DeleteGroup: (group_off, {}),
    StopActivation: (activation, {"reason": "wrong day"}),
    SnoozeAlert: (alert, {"reason": "known"}),
    CloseAlert: (alert, {"reason": "known"}),
    SendTest: (webhook, {}),
    RenewSecret: (webhook, {}),
    DeleteTarget: (webhook, {}),
    Commit: (waiting, {}),
    RollBack: (waiting, {}),
}
HOOK = {"address": "http://127.0.0.1:1/…"}
WHICH = {"server": "srv-1", "message": "ID:7"}
# With what it was done.
DETAILS: dict[type[Operation[Any]], dict[str, Any]] = {
    ResumeRun: {"server": "srv-1"},
    RemoveSetting: {"decided": True},
    MoveMember: {"member": "m-2", "to": "up"},
    SendTest: HOOK | {"begun": True},
    RenewSecret: HOOK,
    DeleteTarget: HOOK,
    Commit: WHICH,
    RollBack: WHICH,
}
# The right that each asks for.
RIGHTS: dict[type[Operation[Any]], str] = {
    Cordon: "can_change_duty", Drain: "can_change_duty", Uncordon: "can_change_duty",
    RemoveServer: "delete_server", EnableSetting: "can_enable", DisableSetting: "can_disable",
    RunSetting: "can_run", StopSetting: "can_stop", RetryMessage: "can_run", ResumeRun: "can_enable",
    RemoveSetting: "delete_launchsetting", EnableGroup: "can_enable", DisableGroup: "can_disable",
    RunGroup: "can_run", StopGroup: "can_stop", MoveMember: "change_launchsetting",
    DeleteGroup: "change_launchsetting", StopActivation: "can_stop", SnoozeAlert: "can_handle_alerts",
    CloseAlert: "can_handle_alerts", SendTest: "change_launchsetting", RenewSecret: "change_launchsetting",
    DeleteTarget: "change_launchsetting", Commit: "can_answer", RollBack: "can_answer",
}  # fmt: skip
# What they change is on the broker: tests/web/test_destination_policy.py.
ON_THE_BROKER = {ApplyPolicy, AdoptPolicy}


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("admin", password=None)


@pytest.fixture(params=CASES, ids=lambda operation: operation.code)
def case(
    request: Any, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> tuple[type[Operation[Any]], Any, dict[str, Any]]:
    monkeypatch.setattr(answering.until_ended, "__defaults__", (0.05,))
    make_alive(*pool.servers.all(), now=timezone.now())
    operation = request.param
    make, given = CASES[operation]
    if operation is ResumeRun:
        given = {"server": server_of(pool)}
    if operation is SnoozeAlert:
        given = {**given, "until": timezone.now() + timedelta(hours=1)}
    return operation, make(pool), given


def test_every_operation_has_a_case() -> None:
    def below(one: type[Operation[Any]]) -> set[type[Operation[Any]]]:
        return {one}.union(*map(below, one.__subclasses__()))

    ours = {one for one in below(Operation) if hasattr(one, "code") and one.__module__.startswith("agents.")}
    assert ours == set(CASES) | ON_THE_BROKER


def test_what_is_done_is_in_the_audit(
    case: tuple[type[Operation[Any]], Any, dict[str, Any]], admin: User
) -> None:
    operation, obj, given = case
    target = operation.on.target(obj)
    key = operation.on.setting_key(obj)
    perform(operation, obj, admin, **given)

    assert entries() == [(operation.code, target, "done", "admin")]
    entry = AuditEntry.objects.get()
    asked = {"until": given["until"].isoformat()} if "until" in given else {}
    assert (entry.reason, entry.setting_key) == (given.get("reason", ""), key)
    assert entry.detail == DETAILS.get(operation, {}) | asked
    assert bool(key) == isinstance(obj, (Acknowledgement, Activation, LaunchSetting))


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_recorded_is_not_done(
    case: tuple[type[Operation[Any]], Any, dict[str, Any]], admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process dies before the commit: the entry is in the transaction of the change."""
    operation, obj, given = case

    def dies(*_args: Any, **_about: Any) -> None:
        raise OSError("the disk is full")

    before = [list(table.objects.order_by("pk").values()) for table in TABLES]
    monkeypatch.setattr("console.operations.operation.audit.record", dies)
    with pytest.raises(OSError, match="full"):
        perform(operation, obj, admin, **given)
    assert [list(table.objects.order_by("pk").values()) for table in TABLES] == before


def test_who_may_not_is_in_the_audit_and_changes_nothing(
    case: tuple[type[Operation[Any]], Any, dict[str, Any]], viewer: User
) -> None:
    operation, obj, given = case
    before = [list(table.objects.order_by("pk").values()) for table in TABLES]
    with pytest.raises(NotAllowed, match="permission"):
        perform(operation, obj, viewer, **given)

    assert entries() == [(operation.code, operation.on.target(obj), "refused", "viewer")]
    assert [list(table.objects.order_by("pk").values()) for table in TABLES] == before


def test_each_asks_for_its_own_right_and_for_the_one_to_see_it(
    case: tuple[type[Operation[Any]], Any, dict[str, Any]],
) -> None:
    operation, obj, _given = case
    everything = Permission.objects.filter(content_type__app_label="agents")
    seeing, right = operation.on.view.partition(".")[2], RIGHTS[operation]
    exact, without, blind = (make_person(name) for name in ("exact", "without", "blind"))
    exact.user_permissions.set(everything.filter(codename__in=(seeing, right)))
    without.user_permissions.set(everything.exclude(codename=right))
    blind.user_permissions.set(everything.exclude(codename=seeing))

    check_allowed(operation, obj, exact)
    for person in (without, blind):
        with pytest.raises(NotAllowed):
            check_allowed(operation, obj, person)


def test_a_member_takes_its_group_along_and_the_audit_says_so(pool: Pool, admin: User) -> None:
    make_alive(*pool.servers.all(), now=timezone.now())
    group = group_on(pool)
    perform(DisableSetting, LaunchSetting.objects.get(key="m-1"), admin, reason="mending")
    entry = AuditEntry.objects.get()
    assert (entry.target, entry.detail) == ("setting:m-1", {"group": group.name})


@pytest.mark.parametrize(
    ("operation", "make", "given"),
    [
        (Cordon, cordoned, {}), (Uncordon, server_of, {}), (EnableSetting, on, {}),
        (DisableSetting, off, {}), (EnableGroup, group_on, {}), (DisableGroup, group_off, {}),
    ],
)  # fmt: skip
def test_what_is_so_already_is_in_the_audit_too(
    pool: Pool, admin: User, operation: type[Operation[Any]], make: Callable[[Pool], Any], given: Any
) -> None:
    make_alive(*pool.servers.all(), now=timezone.now())
    obj = make(pool)
    perform(operation, obj, admin, **given)
    assert [(each.result, each.detail) for each in AuditEntry.objects.all()] == [("done", {"changed": False})]


# -- the three faces -----------------------------------------------------------------------------------------


def test_a_refusal_is_kept_once_whoever_asked(pool: Pool, admin: User, client: Client) -> None:
    """A page says it, REST answers 409, the command ends with it."""
    setting = make_setting(pool, "orders", timing="DELAYED")
    client.force_login(admin)
    page = client.post("/settings/orders/run/", follow=True)
    rest = api_client(admin).post("/api/v1/settings/orders/run/")
    with pytest.raises(CommandError) as command:
        call_command("settings", "run", "orders", "--as", "admin")

    assert "Enable it first." in page.content.decode()
    assert (rest.status_code, rest.json()["error"]) == (409, "disabled")
    assert str(command.value).endswith(rest.json()["what_to_do"])
    assert entries() == [("setting.run", "setting:orders", "refused", "admin")] * 3
    assert not Activation.objects.filter(setting=setting).exists()


def test_a_missing_right_is_kept_once_whoever_asked(pool: Pool, viewer: User, client: Client) -> None:
    client.force_login(viewer)
    page = client.get("/servers/srv-1/cordon/")
    assert page.status_code == 403 and "“Can cordon and drain servers”" in page.content.decode()
    assert entries() == []  # a look is no attempt
    assert client.post("/servers/srv-1/cordon/", {"until": "nonsense"}).status_code == 403
    assert api_client(viewer).post("/api/v1/servers/srv-1/cordon/", {"until": "nonsense"}).status_code == 403
    with pytest.raises(CommandError, match="Can cordon and drain servers"):
        call_command("servers", "cordon", "srv-1", "--as", "viewer")

    assert entries() == [("server.cordon", "server:srv-1", "refused", "viewer")] * 3
    assert server_of(pool).duty == Duty.ACTIVE


def test_servers_are_cordoned_by_command(pool: Pool) -> None:
    out = StringIO()
    until = timezone.now().replace(microsecond=0) + timedelta(hours=2)
    call_command(
        "servers", "drain", "srv-1", "--reason", "new disk", "--until", until.isoformat(), stdout=out
    )
    server = server_of(pool)
    assert (server.duty, server.duty_reason, server.duty_until) == (Duty.DRAINING, "new disk", until)
    call_command("servers", "list", stdout=out)
    told, first, _second = out.getvalue().splitlines()
    assert (told, first.split()) == ("Draining: srv-1", ["srv-1", "new", "draining", "new", "disk"])
    assert entries() == [("server.drain", "server:srv-1", "done", "")]
    detail = AuditEntry.objects.get().detail
    assert (detail["until"], detail["account"]) == (until.isoformat(), account())


@pytest.mark.parametrize("until", [None, "tomorrow"])
def test_a_page_that_is_filled_in_wrongly_asks_again(
    pool: Pool, admin: User, client: Client, until: str | None
) -> None:
    client.force_login(admin)
    said = {"reason": "x" * 2001} if until is None else {"until": until}
    assert client.post("/servers/srv-1/cordon/", said).status_code == 200
    assert server_of(pool).duty == Duty.ACTIVE and entries() == []


def test_the_same_again_changes_nothing(pool: Pool, admin: User) -> None:
    server, now = server_of(pool), datetime(2026, 3, 1, tzinfo=UTC)
    perform(Drain, server, admin, now, reason="disk")
    perform(Drain, server, admin, now, reason="disk")
    details = list(AuditEntry.objects.order_by("pk").values_list("detail", flat=True))
    assert details == [{}, {"changed": False}]
    with pytest.raises(Refused, match="past"):
        perform(Drain, server, admin, now, until=now)
