"""Every operation: who asked is in the audit, with what was done or instead of it; page, REST and command say
the same."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import chain
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from agents.acknowledgements import answers
from agents.destinations.operations import AdoptPolicy, ApplyPolicy
from agents.groups.operations import DisableGroup, EnableGroup
from agents.models import (
    Activation,
    Duty,
    LaunchSetting,
    Pool,
)
from agents.servers.operations import Cordon, Drain, Uncordon
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
)
from console import broker
from console.audit.log import account
from console.audit.models import AuditEntry
from console.operations.operation import Operation, check_allowed, perform
from console.operations.refusals import NotAllowed, Refused
from console.saved_filters.operations import ChangeFilter, DeleteFilter, SaveFilter
from dlq.imports.operations import ImportMessages
from insights.archive.readiness import Readiness
from insights.runs import start
from tests.web import (
    cases_of_agents,
    cases_of_failures,
    cases_of_messages,
    cases_of_remarks,
    cases_of_replays,
    cases_of_tokens,
)
from tests.web.cases_of_agents import cordoned, group_off, group_on, off, on, server_of
from tests.web.operation_case import Case
from tests.web.rows import api_client, make_alive, make_person, make_setting

TABLES = (
    cases_of_agents,
    cases_of_failures,
    cases_of_messages,
    cases_of_remarks,
    cases_of_replays,
    cases_of_tokens,
)
CASES = {case.operation: case for table in TABLES for case in table.CASES}
# What they change is on the broker: tests/web/test_destination_policy.py and test_dlq_import.py. Or it is its
# owner's, whatever others may: tests/web/test_saved_filters.py.
TRIED_ELSEWHERE = {ApplyPolicy, AdoptPolicy, ImportMessages, SaveFilter, ChangeFilter, DeleteFilter}


def rows() -> list[list[Any]]:
    """All that the site knows, beside the audit."""
    names = ("agents", "alerts", "console", "dlq", "failures", "insights", "retention")
    tables = chain.from_iterable(apps.get_app_config(name).get_models() for name in names)
    return [
        list(table._default_manager.order_by("pk").values()) for table in tables if table is not AuditEntry
    ]


def entries() -> list[tuple[str, str, str, str]]:
    rows = AuditEntry.objects.order_by("pk")
    return list(rows.values_list("action", "target", "result", "by_name"))


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("admin", password=None)


@pytest.fixture(params=CASES, ids=lambda operation: operation.code)
def case(
    request: Any, pool: Pool, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[Case, Any, dict[str, Any]]:
    monkeypatch.setattr(answers.until_ended, "__defaults__", (0.05,))
    for kept in ("_connection", "_process"):  # a case may bring its own broker
        monkeypatch.setattr(broker, kept, getattr(broker, kept))
    monkeypatch.setattr(start, "readiness", lambda: Readiness(False, ()))
    make_alive(*pool.servers.all(), now=timezone.now())
    case = CASES[request.param]
    obj = case.make(pool)
    return case, obj, case.inputs(pool)


def test_every_operation_has_a_case() -> None:
    def below(one: type[Operation[Any]]) -> set[type[Operation[Any]]]:
        return {one}.union(*map(below, one.__subclasses__()))

    declared = {one for one in below(Operation) if hasattr(one, "code")}
    ours = {one for one in declared if not one.__module__.startswith("tests.")}
    assert ours == set(CASES) | TRIED_ELSEWHERE


def test_what_is_done_is_in_the_audit(case: tuple[Case, Any, dict[str, Any]], admin: User) -> None:
    operation, obj, given = case[0].operation, *case[1:]
    key = operation.on.setting_key(obj)
    done = perform(operation, obj, admin, **given)

    target = case[0].target(done.made) if case[0].target else operation.on.target(obj)
    assert entries() == [(operation.code, target, "done", "admin")]
    entry = AuditEntry.objects.get()
    asked = {"until": given["until"].isoformat()} if "until" in given else {}
    assert (entry.reason, entry.setting_key) == (given.get("reason", ""), key)
    assert entry.detail == case[0].expected() | asked
    of_setting = isinstance(obj, LaunchSetting) or getattr(obj, "setting", None)
    its_own = getattr(obj, "setting_key", "") or getattr(obj, "part_setting", "")
    assert bool(key) == bool(of_setting or its_own)


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_recorded_is_not_done(
    case: tuple[Case, Any, dict[str, Any]], admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process dies before the commit: the entry is in the transaction of the change."""
    operation, obj, given = case[0].operation, *case[1:]

    def dies(*_args: Any, **_about: Any) -> None:
        raise OSError("the disk is full")

    before = rows()
    monkeypatch.setattr("console.operations.operation.audit.record", dies)
    with pytest.raises(OSError, match="full"):
        perform(operation, obj, admin, **given)
    assert rows() == before


def test_who_may_not_is_in_the_audit_and_changes_nothing(
    case: tuple[Case, Any, dict[str, Any]], viewer: User, outsider: User
) -> None:
    """Who may look; an outsider where that is all that it takes."""
    operation, obj, given = case[0].operation, *case[1:]
    person = outsider if viewer.has_perm(case[0].right) else viewer
    before = rows()
    with pytest.raises(NotAllowed, match="permission"):
        perform(operation, obj, person, **given)

    assert entries() == [(operation.code, operation().about(obj)["target"], "refused", person.username)]
    assert rows() == before


def permission(name: str) -> Permission:
    app, _, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


def test_each_asks_for_its_own_right_and_for_the_one_to_see_it(
    case: tuple[Case, Any, dict[str, Any]],
) -> None:
    operation, obj = case[0].operation, case[1]
    seeing, right = permission(case[0].seeing or operation.on.view), permission(case[0].right)
    everything = Permission.objects.exclude(content_type__app_label="auth")
    exact, without, blind = (make_person(name) for name in ("exact", "without", "blind"))
    exact.user_permissions.set([seeing, right])
    without.user_permissions.set(everything.exclude(pk=right.pk))
    enough = [seeing.pk, *([permission(case[0].or_seeing).pk] if case[0].or_seeing else [])]
    blind.user_permissions.set(everything.exclude(pk__in=enough))

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


def test_what_is_refused_at_the_command_line_names_the_account(pool: Pool) -> None:
    make_setting(pool, "orders", timing="DELAYED")
    with pytest.raises(CommandError, match="Enable it first"):
        call_command("settings", "run", "orders")
    assert entries() == [("setting.run", "setting:orders", "refused", "")]
    assert AuditEntry.objects.get().detail["account"] == account()


@pytest.mark.parametrize(
    ("why", "what_to_do", "sentence"),
    [
        ("It is disabled.", "Enable it first.", "It is disabled. Enable it first."),
        ("No queue: AMQ229204", "Try again.", "No queue: AMQ229204. Try again."),
        ("The name is “x”", "", "The name is “x”"),
        ("Nothing blocks it", "", "Nothing blocks it."),
    ],
)
def test_the_words_of_a_broker_end_with_a_full_stop_before_the_advice(
    why: str, what_to_do: str, sentence: str
) -> None:
    assert Refused("code", why, what_to_do).sentence == sentence
