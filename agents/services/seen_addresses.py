"""Whole addresses of notices for those who may edit the setting, or the settings of the pool; others see the
host."""

from typing import Any

from agents.models import BreakerTrip, LaunchSetting, Notice, NoticeTarget
from agents.services.rights import may, may_in_pool
from console.ui.text import masked


def address_of_target(user: Any, target: NoticeTarget) -> str:
    return target.address if _may_edit(user, target) else masked(target.address)


def address_of_notice(user: Any, notice: Notice, setting: LaunchSetting | None) -> str:
    """`setting`: whose trip it tells of. The target decides as long as it is there: the setting may have
    moved."""
    if notice.target is not None:
        seen = _may_edit(user, notice.target)
    else:
        seen = setting is not None and may(user, "edit", setting)
    return notice.address if seen else masked(notice.address)


def effects_for(user: Any, trip: BreakerTrip) -> list[dict[str, Any]]:
    """What was done, told notices among it. What is no list of objects is left out."""
    kept = [each for each in trip.effects if isinstance(each, dict)] if isinstance(trip.effects, list) else []
    if may(user, "edit", trip.setting):
        return kept
    return [each | {"name": masked(str(each.get("name", "")))} if "name" in each else each for each in kept]


def _may_edit(user: Any, target: NoticeTarget) -> bool:
    if target.setting is not None:
        return may(user, "edit", target.setting)
    return target.pool_id is not None and may_in_pool(user, "edit", target.pool_id)
