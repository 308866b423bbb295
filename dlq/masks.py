"""Whose masks: everybody's but those who have the right to see what settings mask, everywhere or in a
pool."""

from collections.abc import Collection
from typing import Any

from agents.models import LaunchSetting
from agents.services.rights import settings_for
from dlq.masking import Masks
from dlq.rights import SEE_MASKED as ACTION

SEE_MASKED = "dlq.can_see_masked"


def masks_for(user: Any) -> Masks:
    """None for who may see everything; else one query more than `everybodys_masks`."""
    if user.has_perm(SEE_MASKED):
        return Masks()
    return _masks(set(settings_for(user, ACTION).order_by().values_list("key", flat=True)))


def everybodys_masks() -> Masks:
    """Of somebody without any right."""
    return _masks(frozenset())


def _masks(seen: Collection[str]) -> Masks:
    """`seen`: keys of settings whose masks do not hold. Lists in the database are older than what checks them
    now."""
    stored = LaunchSetting.objects.order_by().values_list("key", "masked_properties")
    return Masks({key: _names(names) if key not in seen else frozenset() for key, names in stored})


def _names(names: Any) -> frozenset[str]:
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()
