"""The REST of what runs when: schedules inside settings, run and stop, groups, grants; and how each mistake
is told."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import (
    Activation,
    LaunchSetting,
    Pool,
    PoolGrant,
    Schedule,
    ScheduledGroup,
    Server,
    StateChange,
)
from console.reasons import said
from tests.web.rows import api_client, make_alive, make_person, make_setting

NIGHTLY = {"crontab": "30 2 * * *", "time_zone": "Europe/Berlin", "missed": "once"}


@pytest.fixture
def operating(operator: User) -> APIClient:
    return api_client(operator)


@pytest.fixture
def delayed(pool: Pool, server: Server) -> LaunchSetting:
    """Enabled, started by schedule; its servers live."""
    make_alive(*pool.servers.all(), now=timezone.now())
    return make_setting(pool, timing="DELAYED")


@pytest.fixture
def team(viewer: User, pool: Pool) -> User:
    """A viewer whose group has every right in the pool `demo`."""
    group = Group.objects.create(name="team")
    viewer.groups.add(group)
    rights = ("edit", "enable", "disable", "run", "stop")
    PoolGrant.objects.create(pool=pool, group=group, **{f"may_{right}": True for right in rights})
    return viewer


@pytest.fixture
def foreign(db: None) -> LaunchSetting:
    """Of another pool."""
    return make_setting(Pool.objects.create(name="other"), "others", timing="DELAYED")


# -- schedules -----------------------------------------------------------------------------------------------


def test_a_setting_is_made_with_its_schedule(
    operating: APIClient, pool: Pool, setting: LaunchSetting
) -> None:
    wish = {"key": "nightly", "agent": "demo.orders", "pool": "demo", "destination": "demo.orders"}
    answer = operating.post("/api/v1/settings/", wish | {"timing": "DELAYED", "schedule": NIGHTLY})

    assert answer.status_code == 201, answer.content
    told = answer.json()["schedule"]
    assert {name: told[name] for name in NIGHTLY} == NIGHTLY and len(told["next_due"]) == 3
    assert Schedule.objects.get().setting.key == "nightly"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("schedule", "where"),
    [
        ({"crontab": "61 * * * *"}, "schedule.crontab"),
        ({"crontab": "0 0 31 2 *"}, "schedule.crontab"),
        ({"crontab": "0 0"}, "schedule.crontab"),
        ({"crontab": "0 0 * * *", "time_zone": "Europe/Atlantis"}, "schedule.time_zone"),
        ({"crontab": "0 0 * * *", "every_seconds": 60}, "schedule.crontab"),
        ({"every_seconds": 1}, "schedule.every_seconds"),
        ({"every_seconds": 60, "missed": "all"}, "schedule.missed"),
        ({"every_seconds": 60, "speed": 1}, "schedule.speed"),
        ({}, "schedule.crontab"),
    ],
)
def test_a_wrong_schedule_is_named_and_nothing_is_half_saved(
    operating: APIClient, delayed: LaunchSetting, schedule: dict[str, Any], where: str
) -> None:
    answer = operating.patch("/api/v1/settings/orders/", {"description": "new", "schedule": schedule})

    assert (answer.status_code, answer.json()["where"]) == (400, where), answer.content
    delayed.refresh_from_db()
    assert delayed.description == "" and not Schedule.objects.exists()


def test_a_schedule_changes_between_crontab_and_interval_and_goes(
    operating: APIClient, delayed: LaunchSetting
) -> None:
    def patch(schedule: Any) -> Any:
        answer = operating.patch("/api/v1/settings/orders/", {"schedule": schedule})
        assert answer.status_code == 200, answer.content
        return answer.json()["schedule"]

    assert patch(NIGHTLY)["missed"] == "once"
    assert patch({"every_seconds": 300}) | {"next_due": None} == {
        "crontab": "", "every_seconds": 300, "time_zone": "Europe/Berlin", "missed": "once", "next_due": None,
    }  # fmt: skip
    assert patch({"crontab": "0 4 * * *"})["every_seconds"] is None
    assert patch(None) is None and not Schedule.objects.exists()


def test_what_runs_as_soon_as_possible_has_no_schedule(operating: APIClient, setting: LaunchSetting) -> None:
    answer = operating.patch("/api/v1/settings/orders/", {"schedule": NIGHTLY})

    assert (answer.status_code, answer.json()["where"]) == (400, "schedule")
    changed = operating.patch("/api/v1/settings/orders/", {"schedule": NIGHTLY, "timing": "DELAYED"})
    assert changed.status_code == 200
    assert operating.patch("/api/v1/settings/orders/", {"timing": "ASAP"}).json()["where"] == "timing"


# -- fields --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"breaker_m": 0}, "breaker_m"),
        ({"breaker_m": -3}, "breaker_m"),
        ({"N": 3}, "N"),
        ({"n": 3}, "n"),
        ({"destination": None}, "destination"),
        ({"kind": "standalone"}, "destination"),
        ({"kind": "both"}, "kind"),
        ({"timing": "SOON"}, "timing"),
        ({"drain_idle_seconds": 0}, "drain_idle_seconds"),
        ({"restart_seconds": 0}, "restart_seconds"),
        ({"key": "other"}, "key"),
    ],
)
def test_a_field_that_cannot_be_is_named(
    operating: APIClient, setting: LaunchSetting, change: dict[str, Any], where: str
) -> None:
    answer = operating.patch("/api/v1/settings/orders/", change)

    assert (answer.status_code, answer.json()["where"]) == (400, where), answer.content


def test_n_is_told_to_be_derived(operating: APIClient, setting: LaunchSetting) -> None:
    assert "N = M / 3" in operating.patch("/api/v1/settings/orders/", {"N": 3}).json()["detail"]


def test_a_standalone_setting_has_no_destination(operating: APIClient, pool: Pool) -> None:
    wish = {
        "key": "report",
        "agent": "demo.report",
        "kind": "standalone",
        "pool": "demo",
        "timing": "DELAYED",
    }
    answer = operating.post("/api/v1/settings/", wish)

    assert (answer.status_code, answer.json()["destination"]) == (201, None), answer.content


# -- doing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "tries"),
    [
        ({"try_one_first": True}, 200, True),
        ({}, 200, False),
        ({"try_one_first": "maybe"}, 400, None),
        ({"try_one": 1}, 400, None),
    ],
)
def test_enabling_may_try_one_message_first(
    operating: APIClient, setting: LaunchSetting, body: dict[str, Any], status: int, tries: bool | None
) -> None:
    assert operating.post("/api/v1/settings/orders/enable/", body, format="json").status_code == status
    assert list(Activation.objects.values_list("trial", flat=True)) == ([] if tries is None else [tries])


def test_a_delayed_setting_is_enabled_run_and_stopped(operating: APIClient, delayed: LaunchSetting) -> None:
    assert operating.post("/api/v1/settings/orders/run/").json()["error"] == "disabled"
    assert operating.post("/api/v1/settings/orders/enable/").status_code == 204
    assert operating.post("/api/v1/settings/orders/stop/").json()["error"] == "nothing_runs"

    started = operating.post("/api/v1/settings/orders/run/")
    assert (started.status_code, started.json()["trigger"]) == (201, "person")
    again = operating.post("/api/v1/settings/orders/run/")
    assert (again.status_code, again.json()["error"]) == (409, "still_running")

    stopped = operating.post("/api/v1/settings/orders/stop/", {"reason": "enough"})
    assert (stopped.status_code, stopped.json()["ending"], stopped.json()["reason"]) == (
        200,
        "stopped",
        "enough",
    )
    assert operating.get("/api/v1/settings/orders/").json()["enabled"]
    assert operating.post(f"/api/v1/activations/{started.json()['id']}/stop/").json()["error"] == "over"


def test_an_activation_is_stopped_by_its_id(operating: APIClient, delayed: LaunchSetting) -> None:
    operating.post("/api/v1/settings/orders/enable/")
    started = operating.post("/api/v1/settings/orders/run/").json()["id"]

    stopped = operating.post(f"/api/v1/activations/{started}/stop/", {"reason": "enough"})
    assert (stopped.status_code, stopped.json()["ending"]) == (200, "stopped")


def test_a_setting_is_disabled_with_a_ticket_and_until_when(
    operating: APIClient, delayed: LaunchSetting
) -> None:
    operating.post("/api/v1/settings/orders/enable/")
    past = {"until": (timezone.now() - timedelta(hours=1)).isoformat()}
    assert operating.post("/api/v1/settings/orders/disable/", past).json()["error"] == "until_is_past"
    assert operating.post("/api/v1/settings/orders/disable/", {"until": "soon"}).json()["where"] == "until"

    until = timezone.now() + timedelta(hours=1)
    told = operating.post(
        "/api/v1/settings/orders/disable/", {"ticket": "OPS-7", "until": until.isoformat()}
    ).json()
    assert (told["enabled"], told["disabled_ticket"]) == (False, "OPS-7") and told["disabled_until"]


def test_resuming_what_was_not_given_up_is_a_conflict(operating: APIClient, delayed: LaunchSetting) -> None:
    answer = operating.post("/api/v1/settings/orders/resume/", {"server": "srv-1"})
    assert answer.status_code == 409
    assert (
        operating.post("/api/v1/settings/orders/resume/", {"server": "nowhere"}).json()["where"] == "server"
    )


# -- rights --------------------------------------------------------------------------------------------------

ACTIONS = [("enable", {}), ("disable", {}), ("run", {}), ("stop", {}), ("resume", {"server": "srv-1"})]


@pytest.mark.parametrize(("action", "body"), ACTIONS)
def test_a_grant_opens_its_pool_and_no_other(
    team: User,
    viewer: User,
    delayed: LaunchSetting,
    foreign: LaunchSetting,
    action: str,
    body: dict[str, str],
) -> None:
    client = api_client(team)

    assert client.post(f"/api/v1/settings/orders/{action}/", body).status_code != 403
    refused = client.post(f"/api/v1/settings/others/{action}/", body)
    assert (refused.status_code, refused.json()["error"]) == (403, "permission_denied")
    assert "other" in refused.json()["detail"]


@pytest.mark.parametrize(("action", "body"), ACTIONS)
def test_without_any_right_nothing_is_done(
    viewer: User, outsider: User, delayed: LaunchSetting, action: str, body: dict[str, str]
) -> None:
    for who in (viewer, outsider):
        assert api_client(who).post(f"/api/v1/settings/orders/{action}/", body).status_code == 403
    assert not Activation.objects.exists() and not StateChange.objects.exists()


def test_nobody_edits_a_setting_into_or_out_of_a_pool_without_the_right_on_both(
    team: User, delayed: LaunchSetting, foreign: LaunchSetting
) -> None:
    client = api_client(team)
    assert client.patch("/api/v1/settings/orders/", {"concurrency": 3}).status_code == 200

    assert client.patch("/api/v1/settings/orders/", {"pool": "other"}).status_code == 403
    assert client.patch("/api/v1/settings/others/", {"pool": "demo"}).status_code == 403
    wish = {"key": "new", "agent": "a", "destination": "demo.orders", "pool": "other"}
    assert client.post("/api/v1/settings/", wish).status_code == 403
    assert client.post("/api/v1/settings/", wish | {"pool": "demo"}).status_code == 201
    delayed.refresh_from_db()
    foreign.refresh_from_db()
    assert (delayed.pool.name, foreign.pool.name) == ("demo", "other")


def test_disabling_a_member_needs_the_right_for_its_whole_group(
    team: User, operating: APIClient, delayed: LaunchSetting, foreign: LaunchSetting
) -> None:
    made = operating.post("/api/v1/groups/", {"name": "night", "members": ["orders", "others"]})
    assert made.status_code == 201, made.content

    assert api_client(team).post("/api/v1/settings/orders/disable/").status_code == 403
    assert operating.post("/api/v1/settings/orders/disable/").status_code == 200


def test_grants_are_for_administrators(operator: User, viewer: User, pool: Pool) -> None:
    Group.objects.create(name="crew")
    grant = {"pool": "demo", "group": "crew", "may_run": True}
    assert [api_client(who).post("/api/v1/grants/", grant).status_code for who in (operator, viewer)] == [
        403,
        403,
    ]

    root = api_client(User.objects.create_superuser("root", password="not-a-secret-in-tests"))
    made = root.post("/api/v1/grants/", grant)
    assert (made.status_code, made.json()["may_run"], made.json()["may_edit"]) == (201, True, False)
    assert root.post("/api/v1/grants/", grant).status_code == 400
    assert root.delete(f"/api/v1/grants/{made.json()['id']}/").status_code == 204


# -- groups --------------------------------------------------------------------------------------------------


@pytest.fixture
def members(pool: Pool, delayed: LaunchSetting) -> list[str]:
    return [make_setting(pool, f"m-{number}", timing="DELAYED").key for number in range(3)]


def test_a_group_is_made_reordered_scheduled_and_deleted(operating: APIClient, members: list[str]) -> None:
    made = operating.post("/api/v1/groups/", {"name": "night", "members": members, "schedule": NIGHTLY})
    assert (made.status_code, made.json()["members"]) == (201, members), made.content
    assert made.json()["schedule"]["crontab"] == NIGHTLY["crontab"]

    turned = operating.patch("/api/v1/groups/night/", {"members": members[::-1], "schedule": None}).json()
    assert (turned["members"], turned["schedule"]) == (members[::-1], None)
    assert operating.get("/api/v1/settings/m-1/").json()["group"] == "night"
    assert operating.delete("/api/v1/groups/night/").status_code == 204
    assert LaunchSetting.objects.filter(key__in=members).count() == 3


@pytest.mark.parametrize(
    "wrong",
    [["m-0", "m-0"], ["m-0", "night"], ["m-0", "nothing"], ["m-0", "asap"], ["m-0", "taken"]],
    ids=["twice", "itself", "unknown", "not delayed", "in another group"],
)
def test_members_that_cannot_be_are_told_at_the_field_and_nothing_is_saved(
    operating: APIClient, pool: Pool, members: list[str], wrong: list[str]
) -> None:
    make_setting(pool, "asap")
    make_setting(pool, "taken", timing="DELAYED")
    operating.post("/api/v1/groups/", {"name": "day", "members": ["taken"]})
    operating.post("/api/v1/groups/", {"name": "night", "members": ["m-1"]})
    for answer in (
        operating.post("/api/v1/groups/", {"name": "third", "members": wrong}),
        operating.patch("/api/v1/groups/night/", {"description": "new", "members": wrong}),
    ):
        assert (answer.status_code, answer.json()["where"]) == (400, "members"), answer.content
    assert sorted(ScheduledGroup.objects.values_list("name", "description")) == [("day", ""), ("night", "")]
    assert operating.get("/api/v1/groups/night/").json()["members"] == ["m-1"]


def test_a_group_is_switched_and_run_as_a_whole(operating: APIClient, members: list[str]) -> None:
    operating.post("/api/v1/groups/", {"name": "night", "members": members})
    assert operating.post("/api/v1/groups/night/run/").status_code == 409
    assert operating.post("/api/v1/groups/night/enable/").json()["enabled"]
    assert operating.post("/api/v1/settings/m-0/enable/").json()["error"] == "in_group"

    started = operating.post("/api/v1/groups/night/run/")
    assert (started.status_code, started.json()["plan"]) == (201, members), started.content
    assert operating.get("/api/v1/groups/night/").json()["activation"] == started.json()["id"]
    assert operating.delete("/api/v1/groups/night/").status_code == 409
    assert operating.post("/api/v1/groups/night/stop/", {"reason": "enough"}).status_code == 200
    assert not operating.post("/api/v1/settings/m-1/disable/").json()["enabled"]
    assert not ScheduledGroup.objects.get().enabled


def test_a_group_is_for_those_with_the_right_for_each_member(
    team: User, operating: APIClient, delayed: LaunchSetting, foreign: LaunchSetting
) -> None:
    client = api_client(team)
    assert client.post("/api/v1/groups/", {"name": "own", "members": ["orders"]}).status_code == 201
    assert client.patch("/api/v1/groups/own/", {"members": ["orders", "others"]}).status_code == 403
    assert client.post("/api/v1/groups/", {"name": "empty"}).status_code == 403
    operating.patch("/api/v1/groups/own/", {"members": ["orders", "others"]})

    for action in ("enable", "disable", "run", "stop"):
        assert client.post(f"/api/v1/groups/own/{action}/").status_code == 403, action
    assert client.delete("/api/v1/groups/own/").status_code == 403
    assert api_client(make_person("nobody")).get("/api/v1/groups/").status_code == 403


def test_windows_are_listed_by_key(operating: APIClient, delayed: LaunchSetting) -> None:
    operating.patch("/api/v1/settings/orders/", {"schedule": NIGHTLY})
    schedule = Schedule.objects.get()
    for hour in range(3):
        at = timezone.now() + timedelta(hours=hour)
        schedule.windows.create(due_at=at, result="skipped", reason=said("off"))

    told = operating.get("/api/v1/settings/orders/windows/").json()
    assert [row["reason"] for row in told["results"]] == ["off"] * 3 and "count" not in told


def test_a_member_moves_one_place(operating: APIClient, members: list[str]) -> None:
    url = "/api/v1/groups/night/"
    operating.post("/api/v1/groups/", {"name": "night", "members": members})
    first, second, *others = members
    moved = operating.post(f"{url}move/", {"member": second, "to": "up"}).json()
    assert moved["members"] == [second, first, *others]
    assert operating.post(f"{url}move/", {"member": second, "to": "down"}).json()["members"] == members
    for wrong in ({}, {"member": ""}, {"member": first, "to": "left"}):
        assert operating.post(f"{url}move/", wrong).status_code == 400
    assert operating.get(url).json()["members"] == members
