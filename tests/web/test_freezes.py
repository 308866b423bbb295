"""While a scope is frozen nothing new starts in it, what runs goes on, and the list says what was held."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from agents.activations.operations import run_now
from agents.activations.plan import plan_open_activations
from agents.breaker.interruption import resume_on_server
from agents.freezes.held import forget_held
from agents.freezes.operations import FreezePool, FreezeSite, UnfreezePool, UnfreezeSite
from agents.freezes.queries import frozen_now
from agents.groups.group import advance_groups, enable_group, run_group_now
from agents.models import (
    Activation,
    Freeze,
    HeldKind,
    HeldStart,
    LaunchSetting,
    MaintenanceWindow,
    Missed,
    Pool,
    Run,
    Schedule,
    Server,
    SiteIdentity,
    Window,
)
from agents.reasons import FROZEN_POOL, STARTED_AFTER_FREEZE
from agents.reconciler import keep_up
from agents.schedules.tick import save_schedule, tick
from agents.settings.enable import disable_setting, enable_setting, end_pauses
from console.audit.log import account
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import NotAllowed, Refused
from console.reasons import NO_REASON, said
from dlq.models import ReplayJob
from dlq.replay.operations import ApproveReplay, ResumeReplay
from tests.dlq.jobs import begun
from tests.web import letters, reports
from tests.web.launching import delayed, enabled, end, group_of, scheduled
from tests.web.rows import NOW, activate, api_client, make_alive, make_setting

pytestmark = pytest.mark.django_db

DUE = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))


def site() -> SiteIdentity:
    return SiteIdentity.objects.get_or_create(pk=1)[0]


def freeze(pool: Pool | None = None, *, until: datetime | None = None, now: datetime = NOW) -> Freeze:
    operation, obj = (FreezePool, pool) if pool else (FreezeSite, site())
    made = perform(operation, obj, None, now, reason="release", until=until).made
    assert isinstance(made, Freeze)
    return made


def unfreeze(pool: Pool | None = None, now: datetime = NOW) -> bool:
    operation, obj = (UnfreezePool, pool) if pool else (UnfreezeSite, site())
    return perform(operation, obj, None, now).changed


def held() -> list[tuple[str, str, int]]:
    return list(HeldStart.objects.order_by("pk").values_list("kind", "target", "count"))


def results(schedule: Schedule) -> list[tuple[datetime, str]]:
    return list(Window.objects.filter(schedule=schedule).order_by("due_at").values_list("due_at", "result"))


# -- what people ask for -------------------------------------------------------------------------------------


def refused(pool: Pool, server: Server, case: str) -> Callable[[], Any]:
    setting = make_setting(pool, "asked", timing="DELAYED" if case != "enable" else "ASAP")
    if case == "enable":
        return lambda: enable_setting(setting, None, NOW)
    if case == "trial":
        return lambda: enable_setting(setting, None, NOW, try_one_first=True)
    if case == "run":
        return lambda: run_now(enabled(setting), None, NOW)
    group = group_of(setting)
    if case == "enable group":
        return lambda: enable_group(group, None, NOW)
    enabled(setting)
    type(group).objects.filter(pk=group.pk).update(enabled=True)
    return lambda: run_group_now(group, None, NOW)


ASKED = ("enable", "trial", "run", "enable group", "run group")


@pytest.mark.parametrize("case", ASKED)
@pytest.mark.parametrize("scope", ["site", "pool"])
def test_a_person_who_starts_something_new_is_told_who_froze_it_and_why(
    pool: Pool, server: Server, case: str, scope: str
) -> None:
    ask = refused(pool, server, case)
    freeze(pool if scope == "pool" else None)

    with pytest.raises(Refused) as told:
        ask()

    assert told.value.code == "frozen"
    assert account() in told.value.reason and "release" in told.value.reason
    assert not Activation.objects.exists()


@pytest.mark.parametrize("case", ASKED)
def test_another_pool_that_is_frozen_keeps_nobody(pool: Pool, server: Server, case: str) -> None:
    ask = refused(pool, server, case)
    freeze(Pool.objects.create(name="elsewhere"))

    ask()


def test_the_list_says_who_was_refused_what(pool: Pool, operator: User) -> None:
    make_setting(pool, "asked")
    row = freeze(pool, now=timezone.now())

    for _ in range(2):
        answer = api_client(operator).post("/api/v1/settings/asked/enable/")
    assert answer.status_code == 409 and answer.json()["error"] == "frozen"

    one = HeldStart.objects.get()
    assert (one.freeze, one.kind, one.target, one.action) == (
        row,
        HeldKind.PERSON,
        "setting:asked",
        "setting.enable",
    )
    assert (one.by_name, one.count) == ("operator", 2)
    shown = api_client(operator).get(f"/api/v1/freezes/{row.pk}/held/").json()
    assert [(each["target"], each["by"], each["count"]) for each in shown] == [
        ("setting:asked", "operator", 2)
    ]


def test_an_interrupted_instance_is_not_resumed(pool: Pool, server: Server) -> None:
    make_alive(server, now=NOW)
    setting = make_setting(pool, "on", spread="MANY")
    activate(setting, None, NOW)
    Run.objects.filter(activation__setting=setting).update(state="interrupted", closed_at=NOW)
    freeze()

    with pytest.raises(Refused, match="froze"):
        resume_on_server(setting, server, None, NOW)


# -- what runs goes on ---------------------------------------------------------------------------------------


def test_a_setting_fails_over_to_another_server_while_it_is_frozen(
    pool: Pool, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW)
    activation = activate(make_setting(pool, "on"), None, NOW)
    first = Run.objects.get(activation=activation)
    freeze()
    later = NOW + 10 * MINUTE
    make_alive(*Server.objects.exclude(pk=first.server_id), now=later)

    plan_open_activations(later)

    assert Run.objects.filter(activation=activation, wanted=True).exclude(server=first.server).count() == 1


def test_an_enabled_setting_can_be_disabled_and_what_is_on_already_is_no_start(pool: Pool) -> None:
    setting = make_setting(pool, "on")
    activation = activate(setting, None, NOW)
    freeze()

    assert enable_setting(setting, None, NOW) == activation
    assert disable_setting(setting, None, said("x"), NOW)


# -- what starts by itself -----------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("rule", Missed.values)
def test_a_window_that_is_due_while_it_is_frozen_is_held_and_told(pool: Pool, rule: str) -> None:
    schedule = scheduled(enabled(delayed(pool)), missed=rule)
    freeze(pool)

    assert tick(schedule.pk, DUE)
    assert not tick(schedule.pk, DUE + SECOND)

    window = Window.objects.get()
    assert (window.due_at, window.result) == (DUE, "held")
    assert window.reason == FROZEN_POOL(pool=pool.name, by=account(), why="release")
    assert held() == [("schedule", "setting:nightly", 1)]
    assert not Activation.objects.exists()


@pytest.mark.both_databases
@pytest.mark.parametrize(("rule", "result", "count"), [("skip", "held", 0), ("once", "started", 1)])
def test_after_the_freeze_the_rule_for_missed_runs_decides(
    pool: Pool, rule: str, result: str, count: int
) -> None:
    schedule = scheduled(enabled(delayed(pool)), missed=rule)
    freeze(pool)
    for day in range(3):
        tick(schedule.pk, DUE + day * DAY)
    unfreeze(pool, DUE + 2 * DAY + HOUR)

    for second in range(3):
        tick(schedule.pk, DUE + 2 * DAY + HOUR + second * SECOND)

    assert results(schedule) == [(DUE, "held"), (DUE + DAY, "held"), (DUE + 2 * DAY, result)]
    assert Activation.objects.count() == count
    if count:
        assert Window.objects.get(result="started").reason == STARTED_AFTER_FREEZE()
    assert held() == [("schedule", "setting:nightly", 3)]


def test_a_newer_window_starts_in_place_of_the_held_one(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)), missed="once")
    freeze(pool, until=DUE + DAY - SECOND)
    tick(schedule.pk, DUE)

    tick(schedule.pk, DUE + DAY)
    end(Activation.objects.get(), DUE + DAY)
    tick(schedule.pk, DUE + DAY + MINUTE)

    assert results(schedule) == [(DUE, "held"), (DUE + DAY, "started")]


@pytest.mark.parametrize("change", ["enabled again", "another rule", "another crontab"])
def test_what_was_held_before_a_change_is_not_started_after_it(pool: Pool, change: str) -> None:
    setting = enabled(delayed(pool))
    schedule = scheduled(setting, missed="once")
    freeze(pool, until=DUE + HOUR)
    tick(schedule.pk, DUE)
    schedule.refresh_from_db()
    later = DUE + 2 * HOUR

    if change == "enabled again":
        disable_setting(setting, None, said("x"), later)
        enable_setting(setting, None, later)
    else:
        if change == "another rule":
            schedule.missed = "skip"
        schedule.crontab = "0 5 * * *" if change == "another crontab" else schedule.crontab
        save_schedule(schedule, None, later)
        schedule.missed = "once"
        save_schedule(schedule, None, later)

    assert not tick(schedule.pk, later + MINUTE)
    assert not Activation.objects.exists()


def test_what_is_owed_and_cannot_start_is_skipped_once(pool: Pool) -> None:
    setting = enabled(delayed(pool))
    schedule = scheduled(setting, missed="once")
    run_now(setting, None, NOW)
    freeze(pool, until=DUE + HOUR)
    tick(schedule.pk, DUE)

    tick(schedule.pk, DUE + HOUR)
    end(Activation.objects.get(), DUE + HOUR)
    tick(schedule.pk, DUE + HOUR + MINUTE)

    assert results(schedule) == [(DUE, "skipped")]
    assert Activation.objects.count() == 1


@pytest.mark.both_databases
def test_a_group_is_held_where_one_of_its_members_is(pool: Pool) -> None:
    elsewhere = Pool.objects.create(name="elsewhere")
    elsewhere.servers.set(pool.servers.all())
    group = enable_group(group_of(delayed(pool, "one"), delayed(elsewhere, "two")), None, NOW)
    schedule = scheduled(group)
    freeze(elsewhere)

    tick(schedule.pk, DUE)

    assert results(schedule) == [(DUE, "held")]
    assert held() == [("group", "group:night", 1)]


@pytest.mark.both_databases
def test_a_group_run_waits_before_its_next_member_and_goes_on_after_the_freeze(pool: Pool) -> None:
    group = enable_group(group_of(delayed(pool, "one"), delayed(pool, "two")), None, NOW)
    run = run_group_now(group, None, NOW)
    freeze(pool)

    end(Activation.objects.get(), NOW + MINUTE)
    advance_groups(NOW + MINUTE)
    advance_groups(NOW + 2 * MINUTE)

    run.refresh_from_db()
    assert (run.state, run.step, run.reason.code) == ("running", 0, "start.frozen_pool")
    assert Activation.objects.count() == 1
    assert held() == [("member", "setting:two", 1)]

    unfreeze(pool, NOW + HOUR)
    advance_groups(NOW + HOUR)

    run.refresh_from_db()
    assert (run.state, run.step, run.reason) == ("running", 1, NO_REASON)
    assert Activation.objects.filter(setting__key="two", group_activation=run).count() == 1


def test_a_pause_that_ends_while_it_is_frozen_ends_after_it(pool: Pool) -> None:
    setting = make_setting(pool, "paused")
    activate(setting, None, NOW)
    disable_setting(setting, None, said("x"), NOW, until=NOW + MINUTE)
    Activation.objects.update(ended_at=NOW)
    freeze(until=NOW + HOUR)

    for minute in (2, 3):
        assert end_pauses(NOW + minute * MINUTE) == 0
    assert held() == [("pause", "setting:paused", 1)]
    assert end_pauses(NOW + HOUR) == 1
    assert LaunchSetting.objects.get(key="paused").enabled


# -- its end -------------------------------------------------------------------------------------------------


def test_its_end_comes_by_itself(pool: Pool) -> None:
    freeze(until=NOW + HOUR)

    assert frozen_now(NOW + HOUR - SECOND).of([pool.pk]) is not None
    assert frozen_now(NOW + HOUR).of([pool.pk]) is None
    keep_up(NOW + HOUR)
    assert not unfreeze(now=NOW + HOUR)


def test_after_an_end_that_came_by_itself_it_can_be_frozen_again(pool: Pool) -> None:
    first = freeze(pool, until=NOW + HOUR)
    second = freeze(pool, now=NOW + 2 * HOUR)

    first.refresh_from_db()
    assert (first.lifted_at, first.lifted_by) == (NOW + HOUR, None)
    assert (second.pk != first.pk, second.at) == (True, NOW + 2 * HOUR)


def test_frozen_again_it_has_another_end_and_the_same_list(pool: Pool) -> None:
    first = freeze(pool, until=NOW + HOUR)
    again = freeze(pool, until=NOW + 2 * HOUR, now=NOW + MINUTE)

    assert (again.pk, again.at, again.ends_at) == (first.pk, NOW, NOW + 2 * HOUR)
    assert not perform(FreezePool, pool, None, NOW, reason="release", until=NOW + 2 * HOUR).changed


@pytest.mark.parametrize("given", [{"reason": " "}, {"reason": "x", "until": NOW}])
def test_a_freeze_has_a_reason_and_an_end_that_is_to_come(db: None, given: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        perform(FreezeSite, site(), None, NOW, **given)
    assert not Freeze.objects.exists()


def test_a_pool_stays_frozen_with_the_site_after_its_own_freeze(pool: Pool) -> None:
    freeze()
    freeze(pool)

    assert unfreeze(pool)
    assert not unfreeze(pool)
    assert frozen_now(NOW).of([pool.pk]) is not None


def test_old_freezes_are_forgotten_with_what_they_held(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    freeze(pool, until=DUE + HOUR)
    freeze()
    tick(schedule.pk, DUE)

    assert forget_held(DUE + 90 * DAY) == 0
    forget_held(DUE + 91 * DAY)

    assert Freeze.objects.get().pool is None


# -- maintenance windows -------------------------------------------------------------------------------------


def maintenance(pool: Pool | None, **values: Any) -> MaintenanceWindow:
    given = {"crontab": "30 2 * * *", "time_zone": "Europe/Berlin", "minutes": 60, "reason": "backup"}
    return MaintenanceWindow.objects.create(pool=pool, **given | values)


def test_an_open_maintenance_window_holds_and_lets_go_by_itself(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)), crontab="45 2 * * *", missed="once")
    window = maintenance(pool)

    tick(schedule.pk, DUE + 15 * MINUTE)
    assert held() == [("schedule", "setting:nightly", 1)]
    assert HeldStart.objects.get().maintenance == window
    tick(schedule.pk, DUE + HOUR)

    assert results(schedule) == [(DUE + 15 * MINUTE, "started")]


def test_a_person_ends_the_open_window_and_the_next_one_opens(pool: Pool) -> None:
    maintenance(pool)

    assert unfreeze(pool, DUE + MINUTE)
    assert not unfreeze(pool, DUE + 2 * MINUTE)

    assert frozen_now(DUE + 3 * MINUTE).of([pool.pk]) is None
    assert frozen_now(DUE + DAY).of([pool.pk]) is not None


def test_a_window_that_cannot_be_read_holds_nothing(pool: Pool, operator: User) -> None:
    maintenance(pool, time_zone="Nowhere/Here")

    assert frozen_now(DUE).of([pool.pk]) is None
    client = Client()
    client.force_login(operator)
    assert client.get("/freezes/").status_code == 200


def test_windows_are_added_shown_changed_and_removed_over_rest(pool: Pool, admin_user: User) -> None:
    client, address = api_client(admin_user), "/api/v1/maintenance-windows/"
    given = {"pool": pool.name, "crontab": "30  2 * * 1-5", "time_zone": "Europe/Berlin", "minutes": 30}

    made = client.post(address, given | {"reason": "backup"}, format="json").json()
    assert (made["pool"], made["crontab"], made["open_until"]) == (pool.name, "30 2 * * 1-5", None)
    assert made["next_at"] > timezone.now().isoformat()
    one = f"{address}{made['id']}/"
    assert client.patch(one, {"minutes": 45}, format="json").json()["minutes"] == 45
    assert client.delete(one).status_code == 204
    actions = AuditEntry.objects.filter(action__startswith="maintenance.").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == [
        "maintenance.create",
        "maintenance.change",
        "maintenance.delete",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("crontab", "61 * * * *"), ("time_zone", "Here"), ("minutes", 0), ("minutes", 10_081), ("reason", "")],
)
def test_a_window_that_never_opens_or_never_closes_is_refused(
    admin_user: User, name: str, value: Any
) -> None:
    given = {"crontab": "30 2 * * *", "minutes": 30, "reason": "backup"} | {name: value}

    told = api_client(admin_user).post("/api/v1/maintenance-windows/", given, format="json")

    assert (told.status_code, told.json()["where"]) == (400, name)


@pytest.mark.parametrize(
    ("crontab", "minutes", "closes"),
    [
        ("* * * * *", 480, False),
        ("*/30 * * * *", 30, False),
        ("*/30 * * * *", 29, True),
        ("0 2 * * *", 1440, False),
        ("0 2 * * *", 1439, True),
        ("* 1-5 * * *", 480, True),
        ("* 0-22 * * *", 90, False),
        ("* * * * 1-5", 480, True),
        ("0 0 1 * *", 10_080, True),
        ("0 0 29 2 *", 10_080, True),
    ],
)
def test_windows_that_follow_each_other_without_a_gap_are_refused(
    admin_user: User, crontab: str, minutes: int, closes: bool
) -> None:
    given = {"crontab": crontab, "minutes": minutes, "reason": "backup"}
    told = api_client(admin_user).post("/api/v1/maintenance-windows/", given, format="json")
    expected = (201, None) if closes else (400, "minutes")
    assert (told.status_code, told.json().get("where")) == expected
    assert MaintenanceWindow.objects.exists() == closes


# -- who may, and where it is shown --------------------------------------------------------------------------


@pytest.mark.parametrize("operation", [FreezeSite, UnfreezeSite])
def test_who_lacks_the_permission_freezes_nothing(viewer: User, operation: Any) -> None:
    with pytest.raises(NotAllowed, match="Can freeze"):
        perform(operation, site(), viewer, NOW, reason="x")


def test_every_page_says_who_froze_what_and_leads_to_the_list(pool: Pool, operator: User) -> None:
    perform(FreezePool, pool, operator, reason="release 7 <b>", until=timezone.now() + HOUR)
    client = Client()
    client.force_login(operator)

    for address in ("/", "/settings/", "/audit/", f"/pools/{pool.name}/"):
        html = client.get(address).content.decode()
        assert "operator froze the pool" in html and "release 7 &lt;b&gt;" in html, address
        assert f'href="/pools/{pool.name}/"' in html, address
    unfreeze(pool, timezone.now())
    assert "froze" not in client.get("/settings/").content.decode()


def test_its_page_lists_what_it_held(pool: Pool, operator: User) -> None:
    now = timezone.now()
    schedule = scheduled(enabled(delayed(pool)), crontab="* * * * *", saved_at=now)
    row = freeze(pool, now=now)
    tick(schedule.pk, now + 2 * MINUTE)
    client = Client()
    client.force_login(operator)

    assert "/settings/nightly/" in client.get(f"/pools/{pool.name}/").content.decode()
    unfreeze(pool, now + 3 * MINUTE)
    assert "/settings/nightly/" in client.get(f"/pools/{pool.name}/?freeze={row.pk}").content.decode()
    assert "held by a freeze" in client.get("/settings/nightly/").content.decode()


def test_commands_freeze_and_unfreeze(pool: Pool) -> None:
    def said_by(*words: str) -> str:
        out = StringIO()
        call_command(*words, stdout=out)
        return out.getvalue()

    said_by("site", "freeze", "--reason", "release")
    assert f"frozen by {account()}" in said_by("site", "list")
    said_by("site", "unfreeze")
    assert "not frozen" in said_by("site", "list")
    said_by("pools", "freeze", pool.name, "--reason", "release", "--until", "2100-01-01T00:00:00+00:00")
    assert "until 2100-01-01 00:00 UTC  release" in said_by("pools", "list")


# -- replays -------------------------------------------------------------------------------------------------


def test_no_replay_begins_while_its_pool_is_frozen_and_one_that_runs_goes_on(sent: list[str]) -> None:
    setting = reports.setting()
    first, second = (letters.dead(setting.key, number, f"ID:{number}") for number in (10, 11))
    job = begun(setting, by=None, action="give_back", scope="one", letters=[first.pk])
    freeze(setting.pool)

    with pytest.raises(Refused) as told:
        begun(setting, by=None, action="give_back", scope="one", letters=[second.pk])

    assert told.value.code == "frozen"
    job.refresh_from_db()
    assert (job.state, ReplayJob.objects.count()) == ("planned", 1)


def test_discarding_starts_nothing_and_is_not_held(sent: list[str]) -> None:
    setting = reports.setting()
    letter = letters.dead(setting.key, 10, "ID:10")
    freeze()

    begun(setting, by=None, action="discard", scope="one", letters=[letter.pk])


@pytest.mark.parametrize(("operation", "state"), [(ResumeReplay, "paused"), (ApproveReplay, "awaiting")])
def test_a_job_that_waits_for_somebody_is_not_let_go(
    sent: list[str], admin_user: User, operation: Any, state: str
) -> None:
    setting = reports.setting()
    letter = letters.dead(setting.key, 10, "ID:10")
    job = begun(setting, by=None, action="give_back", scope="one", letters=[letter.pk])
    ReplayJob.objects.filter(pk=job.pk).update(state=state, needs_second=True)
    job.refresh_from_db()
    freeze(setting.pool)

    with pytest.raises(Refused, match="froze"):
        perform(operation, job, admin_user, NOW)
    unfreeze(setting.pool)
    perform(operation, job, admin_user, NOW)
    job.refresh_from_db()
    assert job.state == "planned"
