"""The forms of settings, groups, grants and notice targets: in words, with rights, each mistake at its
field."""

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from agents.models import Activation, LaunchSetting, Pool, PoolGrant, Schedule, ScheduledGroup
from console.admin import MOST, BoundedPaginator
from tests.web.rows import NOW, make_setting
from tests.web.test_agents_admin import form, signed_in

WEEKLY = {"schedule_choice": "weekly", "schedule_days": ["1", "5"], "schedule_time": "02:30",
          "schedule_zone": "Europe/Berlin", "schedule_missed": "once"}  # fmt: skip


@pytest.fixture
def delayed(pool: Pool) -> LaunchSetting:
    return make_setting(pool, timing="DELAYED")


def change_url(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def problems(answer: Any) -> dict[str, str]:
    """Field → its problem."""
    assert answer.status_code == 200, answer.status_code
    found = {}
    for name, rest in re.findall(r'form-row errors field-([\w]+)">(.*?)</ul>', answer.content.decode(), re.S):
        found[name] = html.unescape(re.sub(r"<[^>]+>", " ", rest))
    return found


def save(who: User, setting: LaunchSetting, **changes: Any) -> Any:
    return signed_in(who).post(change_url(setting), form(setting, **changes))


# -- schedule in words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "crontab", "seconds"),
    [
        ({"schedule_choice": "every", "schedule_number": 15, "schedule_unit": 60}, "", 900),
        ({"schedule_choice": "every", "schedule_number": 2, "schedule_unit": 3600}, "", 7200),
        ({"schedule_choice": "daily", "schedule_time": "02:30"}, "30 2 * * *", None),
        (WEEKLY, "30 2 * * 1,5", None),
        ({"schedule_choice": "crontab", "schedule_crontab": "0  4 * *  1-5"}, "0 4 * * 1-5", None),
    ],
)
def test_a_schedule_is_chosen_in_words_and_shown_again_so(
    operator: User, delayed: LaunchSetting, chosen: dict[str, Any], crontab: str, seconds: int | None
) -> None:
    answer = save(operator, delayed, **({"schedule_zone": "Europe/Berlin"} | chosen))
    assert answer.status_code == 302, problems(answer)
    stored = Schedule.objects.get(setting=delayed)
    assert (stored.crontab, stored.every_seconds, stored.time_zone) == (crontab, seconds, "Europe/Berlin")

    page = signed_in(operator).get(change_url(delayed)).content.decode()
    assert f'<option value="{chosen["schedule_choice"]}" selected>' in page
    assert '<option value="Europe/Berlin" selected>' in page


def test_no_schedule_takes_it_away_and_a_form_without_the_field_leaves_it(
    operator: User, delayed: LaunchSetting
) -> None:
    Schedule.objects.create(setting=delayed, every_seconds=60)
    assert save(operator, delayed).status_code == 302
    assert Schedule.objects.exists()
    assert save(operator, delayed, schedule_choice="").status_code == 302
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("chosen", "where"),
    [
        ({"schedule_choice": "every"}, "schedule_number"),
        ({"schedule_choice": "every", "schedule_number": 1, "schedule_unit": 1}, "schedule_number"),
        ({"schedule_choice": "daily"}, "schedule_time"),
        ({"schedule_choice": "daily", "schedule_time": "25:00"}, "schedule_time"),
        ({"schedule_choice": "weekly", "schedule_time": "02:00"}, "schedule_days"),
        ({"schedule_choice": "crontab", "schedule_crontab": "0 0 31 2 *"}, "schedule_crontab"),
        ({"schedule_choice": "crontab", "schedule_crontab": "hourly"}, "schedule_crontab"),
        (
            {"schedule_choice": "daily", "schedule_time": "02:00", "schedule_zone": "Mars/Base"},
            "schedule_zone",
        ),
        ({"schedule_choice": "daily", "schedule_time": "02:00", "timing": "ASAP"}, "schedule_choice"),
        ({"breaker_m": 0}, "breaker_m"),
    ],
)
def test_each_mistake_is_told_at_its_field_and_nothing_is_saved(
    operator: User, delayed: LaunchSetting, chosen: dict[str, Any], where: str
) -> None:
    assert where in problems(save(operator, delayed, description="new", **chosen))

    delayed.refresh_from_db()
    assert delayed.description == "" and delayed.timing == "DELAYED" and not Schedule.objects.exists()


def test_a_standalone_setting_is_made_without_a_destination(operator: User, setting: LaunchSetting) -> None:
    url = reverse("admin:agents_launchsetting_add")
    wish = form(setting) | {
        "key": "report",
        "agent": "demo.report",
        "kind": "standalone",
        "timing": "DELAYED",
    }
    assert "destination" in problems(signed_in(operator).post(url, wish))

    made = signed_in(operator).post(url, wish | {"destination": ""} | WEEKLY)
    assert made.status_code == 302, problems(made)
    assert LaunchSetting.objects.get(key="report").schedule.crontab == "30 2 * * 1,5"


def test_a_missing_destination_is_told_beside_other_problems(operator: User, setting: LaunchSetting) -> None:
    wish = form(setting) | {"key": "orders-2", "destination": "", "breaker_m": "0"}
    answer = signed_in(operator).post(reverse("admin:agents_launchsetting_add"), wish)

    assert set(problems(answer)) == {"destination", "breaker_m"}


def test_the_form_has_no_inline_script_and_names_consequences(operator: User, delayed: LaunchSetting) -> None:
    page = signed_in(operator).get(change_url(delayed)).content.decode()

    assert (
        "ma/setting-form.js" in page
        and "The breaker trips after M consecutive failures of any type, or after M / 3 of the same type."
        in page
    )
    assert not re.search(r"<script(?![^>]*src=)(?![^>]*json)[^>]*>\s*\S", page)


# -- rights --------------------------------------------------------------------------------------------------


@pytest.fixture
def team(viewer: User, pool: Pool) -> User:
    group = Group.objects.create(name="team")
    viewer.groups.add(group)
    PoolGrant.objects.create(pool=pool, group=group, may_edit=True)
    return viewer


def test_a_grant_opens_the_forms_of_its_pool_only(team: User, delayed: LaunchSetting) -> None:
    other = make_setting(Pool.objects.create(name="other"), "others")
    client = signed_in(team)

    assert save(team, delayed, concurrency=3).status_code == 302
    assert save(team, other, concurrency=3).status_code == 403
    assert "pool" in problems(save(team, delayed, pool=other.pool_id))
    url = reverse("admin:agents_launchsetting_add")
    assert "pool" in problems(client.post(url, form(delayed) | {"key": "new", "pool": other.pool_id}))
    assert client.post(url, form(delayed) | {"key": "new"}).status_code == 302
    assert client.get(change_url(other)).status_code == 200  # to look at
    assert not LaunchSetting.objects.filter(pool=other.pool, concurrency=3).exists()


def test_a_viewer_looks_at_the_form_and_changes_nothing(viewer: User, delayed: LaunchSetting) -> None:
    Schedule.objects.create(setting=delayed, every_seconds=60)

    assert signed_in(viewer).get(change_url(delayed)).status_code == 200
    assert save(viewer, delayed, schedule_choice="").status_code == 403
    assert signed_in(viewer).get(reverse("admin:agents_launchsetting_add")).status_code == 403
    assert Schedule.objects.exists()


# -- groups --------------------------------------------------------------------------------------------------

ADD_GROUP = "admin:agents_scheduledgroup_add"


def test_a_group_is_made_and_its_members_moved(operator: User, pool: Pool, delayed: LaunchSetting) -> None:
    make_setting(pool, "second", timing="DELAYED")
    client = signed_in(operator)
    wish = {"name": "night", "description": "", "members": "orders\nsecond"} | WEEKLY
    made = client.post(reverse(ADD_GROUP), wish)
    assert made.status_code == 302, problems(made)
    group = ScheduledGroup.objects.get()
    assert group.schedule.crontab == "30 2 * * 1,5"

    assert "orders\nsecond" in client.get(change_url(group)).content.decode()
    assert client.post(change_url(group), wish | {"members": "second\norders"}).status_code == 302
    assert [each.setting.key for each in group.members.order_by("position")] == ["second", "orders"]


@pytest.mark.parametrize("members", ["orders\norders", "orders night", "nothing", "asap"])
def test_members_that_cannot_be_are_told_at_the_field(
    operator: User, pool: Pool, delayed: LaunchSetting, members: str
) -> None:
    make_setting(pool, "asap")
    ScheduledGroup.objects.create(name="night")
    told = problems(signed_in(operator).post(reverse(ADD_GROUP), {"name": "day", "members": members}))

    assert "members" in told and ScheduledGroup.objects.count() == 1


def test_a_group_is_not_changed_by_who_may_not_edit_each_member(
    team: User, pool: Pool, delayed: LaunchSetting
) -> None:
    other = make_setting(Pool.objects.create(name="other"), "others", timing="DELAYED")
    client = signed_in(team)
    assert "members" in problems(
        client.post(reverse(ADD_GROUP), {"name": "night", "members": "orders others"})
    )
    group = ScheduledGroup.objects.create(name="night")
    group.members.create(setting=other, position=1)

    assert client.post(change_url(group), {"members": "orders"}).status_code == 403
    for method in (client.get, client.post):
        assert method("/groups/night/delete/").status_code == 403


def test_an_enabled_group_is_not_deleted(operator: User, delayed: LaunchSetting) -> None:
    group, client = ScheduledGroup.objects.create(name="night", enabled=True), signed_in(operator)
    asked = client.get(reverse("admin:agents_scheduledgroup_delete", args=[group.pk]), follow=True)
    assert asked.redirect_chain == [("/groups/night/delete/", 302)]
    assert "Disable it first." in client.post("/groups/night/delete/", follow=True).content.decode()
    assert ScheduledGroup.objects.exists()

    ScheduledGroup.objects.update(enabled=False)
    assert client.post("/groups/night/delete/").headers["Location"] == "/groups/"
    assert not ScheduledGroup.objects.exists()


# -- grants and targets --------------------------------------------------------------------------------------


def test_grants_are_for_administrators_only(operator: User, pool: Pool) -> None:
    url = reverse("admin:agents_poolgrant_add")
    wish = {"pool": pool.pk, "group": Group.objects.create(name="crew").pk, "may_run": "on"}
    assert signed_in(operator).post(url, wish).status_code == 403

    root = User.objects.create_superuser("root", password="not-a-secret-in-tests")
    assert signed_in(root).post(url, wish).status_code == 302
    assert PoolGrant.objects.get().may_run and not PoolGrant.objects.get().may_edit


def test_the_secret_of_a_webhook_is_shown_once(operator: User, pool: Pool) -> None:
    client = signed_in(operator)
    url = reverse("admin:alerts_noticetarget_add")
    wish = {"pool": pool.pk, "setting": "", "channel": "webhook", "address": "https://example.org/hook"}
    assert "address" in problems(client.post(url, wish | {"address": "no address"}))

    page = client.post(url, wish, follow=True).content.decode()
    secret = pool.notice_targets.get().secret
    assert secret and secret in page
    assert secret not in client.get(change_url(pool.notice_targets.get())).content.decode()


# -- deleting and long lists ---------------------------------------------------------------------------------


def test_a_setting_is_removed_by_administrators_after_the_reasons_are_gone(
    operator: User, delayed: LaunchSetting
) -> None:
    assert signed_in(operator).post("/settings/orders/remove/").status_code == 403

    root = signed_in(User.objects.create_superuser("root", password="not-a-secret-in-tests"))
    asked = root.get(reverse("admin:agents_launchsetting_delete", args=[delayed.pk]), follow=True)
    assert asked.redirect_chain == [("/settings/orders/remove/", 302)]
    LaunchSetting.objects.update(enabled=True)
    told = root.post("/settings/orders/remove/", follow=True).content.decode()
    assert "Disable it first." in told and LaunchSetting.objects.exists()


def test_long_changelists_never_count_the_table(
    operator: User,
    setting: LaunchSetting,
    django_assert_max_num_queries: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Activation.objects.bulk_create(
        [Activation(setting=setting, state="succeeded", started_at=NOW, ended_at=NOW) for _ in range(120)]
    )
    client: Client = signed_in(operator)
    for name in ("activation", "statechange"):
        with django_assert_max_num_queries(20) as asked:
            page = client.get(reverse(f"admin:agents_{name}_changelist"))
        assert page.status_code == 200
        counts = [query["sql"] for query in asked.captured_queries if "COUNT(" in query["sql"]]
        assert not [sql for sql in counts if f"agents_{name}" in sql], counts
    assert BoundedPaginator(Activation.objects.order_by("-started_at"), 50).num_pages == 3
    monkeypatch.setattr("console.admin.MOST", 100)
    assert MOST == 2000 and BoundedPaginator(Activation.objects.order_by("-started_at"), 50).count == 100
