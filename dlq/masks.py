"""Whose masks: everybody's but those who have the permission to see what settings mask."""

from typing import Any

from agents.models import LaunchSetting
from dlq.masking import Masks

SEE_MASKED = "dlq.can_see_masked"


def masks_for(user: Any) -> Masks:
    """One query, none for who may see everything. Lists in the database are older than what checks them now."""
    if user.has_perm(SEE_MASKED):
        return Masks()
    stored = LaunchSetting.objects.order_by().values_list("key", "masked_properties")
    return Masks({key: frozenset(map(str, names)) if isinstance(names, list) else frozenset() for key, names in stored})
