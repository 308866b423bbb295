"""Who may do what with which settings: a permission everywhere, or a right in the pool of the setting."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import GroupMember, LaunchSetting, Pool, PoolGrant, ScheduledGroup


@dataclass(frozen=True, slots=True)
class _Action:
    """`permission` allows it everywhere, the field `grant` of a PoolGrant in one pool (empty: no grant does). `named`
    is for people."""

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
}
ACTIONS = tuple(_ACTIONS)


def may(user: Any, action: str, setting: LaunchSetting) -> bool:
    """`action`: edit, delete, enable, disable, run or stop. Raises KeyError for another one.

    Disabling a member disables its whole group: with grants alone the right is needed for each member."""
    if user.has_perm(_ACTIONS[action].permission):
        return True
    if not may_in_pool(user, action, setting.pool_id):
        return False
    member = getattr(setting, "membership", None) if action == "disable" else None
    return member is None or may_group(user, action, member.group)


def may_create_in(user: Any, pool: Pool) -> bool:
    """Also whether a setting may be moved into this pool by somebody who may edit it where it is."""
    return may_in_pool(user, "add", pool.pk)


def may_in_pool(user: Any, action: str, pool: int) -> bool:
    wanted = _ACTIONS[action]
    return bool(user.has_perm(wanted.permission)) or pool in _granted(user, wanted.grant)


def may_anywhere(user: Any, action: str) -> bool:
    """Whether there is a pool, or everything, where this person may do it."""
    wanted = _ACTIONS[action]
    return bool(user.has_perm(wanted.permission)) or bool(_granted(user, wanted.grant))


def may_group(user: Any, action: str, group: ScheduledGroup, members: Iterable[LaunchSetting] | None = None) -> bool:
    """A group is moved with all its members: the right is needed for each (`members`, else the present ones).

    One without members belongs to those who may do it everywhere."""
    if members is None:
        members = [each.setting for each in GroupMember.objects.filter(group=group.pk).select_related("setting")]
    pools = {setting.pool_id for setting in members}
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
    """For the reader, beside a button that cannot be pressed; empty when this person may."""
    return "" if may(user, action, setting) else missing(action, setting.pool.name)


def why_not_group(
    user: Any, action: str, group: ScheduledGroup, members: Iterable[LaunchSetting] | None = None
) -> str:
    if may_group(user, action, group, members):
        return ""
    text = _("You may not do that with every member. Ask for the permission “%(permission)s”.")
    return text % {"permission": _ACTIONS[action].named}


def missing(action: str, pool: str) -> str:
    text = _("You may not do that. Ask for the permission “%(permission)s”, or for this right in the pool “%(pool)s”.")
    return text % {"permission": _ACTIONS[action].named, "pool": pool}


def _granted(user: Any, grant: str) -> frozenset[int]:
    """Pools in which one of this person's groups has that right."""
    return _grants_of(user).get(grant, frozenset())


def _grants_of(user: Any) -> dict[str, frozenset[int]]:
    """Pools by grant, read once per person and request: a request has its own user object, as with permissions."""
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
