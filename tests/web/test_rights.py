"""Who may act on which settings: a permission everywhere, or a right in the setting's pool."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from agents.models import LaunchSetting, Pool, PoolGrant, ScheduledGroup
from agents.pools import rights
from console.ui.page import Tab, navigation_for
from ma_site import urls  # noqa: F401  # they bring the tabs
from tests.web.rows import make_person, make_setting


@pytest.fixture
def other(db: None) -> LaunchSetting:
    """A setting of another pool."""
    return make_setting(Pool.objects.create(name="other"), "others")


def grant(person: User, pool: Pool, *may: str) -> User:
    group = Group.objects.get_or_create(name=f"of {pool}")[0]
    person.groups.add(group)
    PoolGrant.objects.update_or_create(pool=pool, group=group, defaults={f"may_{name}": True for name in may})
    return User.objects.get(pk=person.pk)


def test_a_permission_holds_everywhere(operator: User, viewer: User, setting: LaunchSetting) -> None:
    for action in ("edit", "enable", "disable", "run", "stop"):
        assert rights.may(operator, action, setting), action
        assert not rights.may(viewer, action, setting), action
    assert not rights.may(operator, "delete", setting)
    assert not rights.may(AnonymousUser(), "enable", setting)


def test_a_grant_holds_in_its_pool_and_for_its_action_only(
    viewer: User, setting: LaunchSetting, other: LaunchSetting
) -> None:
    person = grant(viewer, setting.pool, "enable", "run")

    assert [rights.may(person, action, setting) for action in ("enable", "run", "disable", "stop",
        "edit")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert not rights.may(person, "enable", other)
    assert list(rights.settings_for(person, "enable")) == [setting]
    assert not rights.settings_for(person, "stop")
    assert rights.may_anywhere(person, "run") and not rights.may_anywhere(person, "edit")


def test_nobody_gets_the_right_to_delete_from_a_grant(viewer: User, setting: LaunchSetting) -> None:
    person = grant(viewer, setting.pool, "edit", "enable", "disable", "run", "stop")

    assert not rights.may(person, "delete", setting) and not rights.settings_for(person, "delete")


def test_who_may_edit_in_a_pool_may_create_there_only(
    viewer: User, setting: LaunchSetting, other: LaunchSetting
) -> None:
    person = grant(viewer, setting.pool, "edit")

    assert rights.may_create_in(person, setting.pool) and not rights.may_create_in(person, other.pool)
    assert list(rights.pools_for(person, "add")) == [setting.pool]


def test_a_retired_person_has_no_right_left(viewer: User, setting: LaunchSetting) -> None:
    person = grant(viewer, setting.pool, "enable")
    person.is_active = False

    assert not rights.may(person, "enable", setting)


def test_a_group_needs_the_right_for_each_of_its_members(
    viewer: User, operator: User, setting: LaunchSetting, other: LaunchSetting
) -> None:
    group = ScheduledGroup.objects.create(name="nightly")
    assert rights.may_group(operator, "enable", group)
    group.members.create(setting=setting, position=1)
    person = grant(viewer, setting.pool, "enable")
    assert rights.may_group(person, "enable", group)
    group.members.create(setting=other, position=2)

    assert not rights.may_group(person, "enable", group) and rights.may_group(operator, "enable", group)


def test_why_not_names_the_permission_and_the_pool(
    viewer: User, operator: User, setting: LaunchSetting
) -> None:
    told = rights.why_not(viewer, "run", setting)

    assert "Can run launch settings now" in told and "demo" in told
    assert rights.why_not(operator, "run", setting) == ""
    assert make_person("third").has_perm("agents.can_run") is False


def test_grants_are_read_once_per_request(
    viewer: User, setting: LaunchSetting, other: LaunchSetting, django_assert_max_num_queries: object
) -> None:
    person = grant(viewer, setting.pool, "run")
    rights.may(person, "run", setting)

    with django_assert_max_num_queries(0):  # type: ignore[operator]
        for _ in range(20):
            assert not rights.may(person, "run", other) and rights.may(person, "run", setting)


def test_a_grant_in_a_pool_is_enough_for_the_tab_of_its_console(pool: Pool, other: LaunchSetting) -> None:
    def sections(person: User) -> list[str]:
        entries = navigation_for(person)
        return [tab.section for each in entries for tab in ([each] if isinstance(each, Tab) else each.tabs)]

    person = User.objects.create_user("mate", is_staff=True)

    assert "dead_letters" in sections(grant(person, pool, "see_letters"))
    assert "dead_letters" not in sections(
        grant(User.objects.create_user("other", is_staff=True), other.pool, "run")
    )
