"""Describes who may do what with which settings: a permission everywhere, or a right in the pool of the
setting."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import Destination, GroupMember, LaunchSetting, Pool, PoolGrant, ScheduledGroup
from console.ui.errors import Missing, MissingPermission


@dataclass(frozen=True, slots=True)
class _Action:
    """`permission` allows it everywhere, the field `grant` of a PoolGrant in one pool (empty: no grant does).
    `named` is for people."""

    permission: str
    grant: str
    named: Promise


_ACTIONS = {
    "edit": _Action("agents.change_launchsetting", "may_edit", gettext_lazy("Can change launch setting")),
    "add": _Action("agents.add_launchsetting", "may_edit", gettext_lazy("Can add launch setting")),
    "delete": _Action("agents.delete_launchsetting", "", gettext_lazy("Can delete launch setting")),
    "enable": _Action("agents.can_enable", "may_enable", gettext_lazy("Can enable launch settings")),
    "disable": _Action("agents.can_disable", "may_disable", gettext_lazy("Can disable launch settings")),
    "run": _Action("agents.can_run", "may_run", gettext_lazy("Can run launch settings now")),
    "stop": _Action("agents.can_stop", "may_stop", gettext_lazy("Can stop activations")),
    "answer": _Action("agents.can_answer", "may_answer", gettext_lazy("Can acknowledge deliveries")),
}
ACTIONS = tuple(_ACTIONS)


def add_action(name: str, permission: str, grant: str, named: Promise) -> None:
    """One of a higher layer, at start-up; `grant` is a field of PoolGrant."""
    _ACTIONS[name] = _Action(permission, grant, named)


# What ends for a whole group where it is done to one member.
_WITH_GROUP = ("disable", "stop")


def may(user: Any, action: str, setting: LaunchSetting) -> bool:
    """`action`: edit, delete, enable, disable, run, stop, or one that was added. Raises KeyError for another
    one.

    Disabling a member disables its whole group, stopping it ends the pass, and with it what nobody has begun
    yet: with grants alone the right is needed for each member."""
    if user.has_perm(_ACTIONS[action].permission):
        return True
    if not may_in_pool(user, action, setting.pool_id):
        return False
    return action not in _WITH_GROUP or _granted(user, _ACTIONS[action].grant).issuperset(
        _pools_moved(setting)
    )


def may_create_in(user: Any, pool: Pool) -> bool:
    """Decides too whether a setting may be moved into this pool by somebody who may edit it where it is."""
    return may_in_pool(user, "add", pool.pk)


def may_subscribe(user: Any, action: str, destination: Destination) -> bool:
    """`action`: add or edit. What a setting subscribes to comes to its agent: with grants alone only where a
    setting of one of these pools listens already, so that nobody reads the messages of others by making a
    setting."""
    return destinations_for(user, action).filter(pk=destination.pk).exists()


def destinations_for(user: Any, action: str) -> QuerySet[Destination]:
    """Those of `may_subscribe`."""
    if user.has_perm(_ACTIONS[action].permission) or user.has_perm("agents.add_destination"):
        return Destination.objects.all()
    mine = LaunchSetting.objects.filter(pool__in=_granted(user, _ACTIONS[action].grant))
    return Destination.objects.filter(pk__in=mine.values("destination"))


def may_in_pool(user: Any, action: str, pool: int) -> bool:
    wanted = _ACTIONS[action]
    return bool(user.has_perm(wanted.permission)) or pool in _granted(user, wanted.grant)


def may_anywhere(user: Any, action: str) -> bool:
    """Returns whether there is a pool, or everything, where this person may do it."""
    wanted = _ACTIONS[action]
    return bool(user.has_perm(wanted.permission)) or bool(_granted(user, wanted.grant))


def check_anywhere(user: Any, *actions: str) -> None:
    """Raises MissingPermission where this person may do none of these anywhere."""
    if not any(may_anywhere(user, action) for action in actions):
        raise MissingPermission(*(_ACTIONS[action].permission for action in actions))


def may_group(
    user: Any, action: str, group: ScheduledGroup, members: Iterable[LaunchSetting] | None = None
) -> bool:
    """A group is moved with all its members: the right is needed for each (`members`, else the present ones).

    One without members belongs to those who may do it everywhere."""
    pools = _pools_of(group, members)
    if not pools:
        return bool(user.has_perm(_ACTIONS[action].permission))
    return all(may_in_pool(user, action, pool) for pool in pools)


def settings_for(user: Any, action: str) -> QuerySet[LaunchSetting]:
    """The settings with which this person may do it."""
    wanted = _ACTIONS[action]
    if user.has_perm(wanted.permission):
        return LaunchSetting.objects.all()
    return LaunchSetting.objects.filter(pool__in=_granted(user, wanted.grant))


def pools_for(user: Any, action: str) -> QuerySet[Pool]:
    wanted = _ACTIONS[action]
    if user.has_perm(wanted.permission):
        return Pool.objects.all()
    return Pool.objects.filter(pk__in=_granted(user, wanted.grant))


def why_not(user: Any, action: str, setting: LaunchSetting) -> str:
    """Returns text for the reader beside a disabled button; empty when this person may."""
    if may(user, action, setting):
        return ""
    if may_in_pool(user, action, setting.pool_id):
        return _missing_with_group(user, action, _pools_moved(setting))
    return missing(action, setting.pool.name)


def why_not_group(
    user: Any, action: str, group: ScheduledGroup, members: Iterable[LaunchSetting] | None = None
) -> str:
    pools = _pools_of(group, members)
    if not pools and not may_group(user, action, group, ()):
        text = _(
            "You don't have permission. The group has no members, so it belongs to no pool. Ask "
            "for the permission “%(permission)s”."
        )
        return Missing(text % {"permission": _ACTIONS[action].named}, _ACTIONS[action].permission)
    return _missing_with_group(user, action, pools)


@dataclass(frozen=True, slots=True)
class SettingRight:
    """The permission of an operation on a setting."""

    action: str

    def why_not(self, user: Any, setting: LaunchSetting) -> str:
        return why_not(user, self.action, setting)


@dataclass(frozen=True, slots=True)
class GroupRight:
    """The same with every member of a group."""

    action: str

    def why_not(self, user: Any, group: ScheduledGroup) -> str:
        return why_not_group(user, self.action, group)


def missing(action: str, pool: str) -> str:
    text = _(
        "You don't have permission. Ask for the permission “%(permission)s” for the whole "
        "site or for the pool “%(pool)s”."
    )
    return Missing(text % {"permission": _ACTIONS[action].named, "pool": pool}, _ACTIONS[action].permission)


def _missing_with_group(user: Any, action: str, pools: Iterable[int]) -> str:
    """Names the pools of members that are in the way; empty where none is."""
    without = [pool for pool in pools if not may_in_pool(user, action, pool)]
    if not without:
        return ""
    names = Pool.objects.filter(pk__in=without).order_by("name").values_list("name", flat=True)
    text = _(
        "You don't have permission for some members of the group. Ask for the permission "
        "“%(permission)s” for the whole site or for these pools: %(pools)s."
    )
    wanted = _ACTIONS[action]
    return Missing(text % {"permission": wanted.named, "pools": ", ".join(names)}, wanted.permission)


def _pools_of(group: ScheduledGroup, members: Iterable[LaunchSetting] | None) -> set[int]:
    if members is not None:
        return {setting.pool_id for setting in members}
    return set(GroupMember.objects.filter(group=group.pk).values_list("setting__pool_id", flat=True))


def _pools_moved(setting: LaunchSetting) -> set[int]:
    """Returns the pools of every member of its group; empty where it is in none. By ids: the group may be
    deleted at this moment."""
    groups = GroupMember.objects.filter(setting=setting.pk).values("group")
    return set(GroupMember.objects.filter(group__in=groups).values_list("setting__pool_id", flat=True))


def _granted(user: Any, grant: str) -> frozenset[int]:
    """Pools in which one of this person's groups has that right."""
    return _grants_of(user).get(grant, frozenset())


def _grants_of(user: Any) -> dict[str, frozenset[int]]:
    """Pools by grant, read once per person and request: a request has its own user object, as with
    permissions."""
    kept: dict[str, frozenset[int]] | None = getattr(user, "_granted_pools", None)
    if kept is not None:
        return kept
    grants: list[PoolGrant] = []
    if getattr(user, "is_active", False) and getattr(user, "is_authenticated", False):
        grants = list(PoolGrant.objects.filter(group__user=user.pk))
    names = sorted({each.grant for each in _ACTIONS.values() if each.grant})
    found = {name: frozenset(each.pool_id for each in grants if getattr(each, name)) for name in names}
    user._granted_pools = found
    return found
