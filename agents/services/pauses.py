"""Settings that were disabled for a time are enabled again by themselves."""

from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from agents.models import BreakerTrip, GroupMember, LaunchSetting
from agents.reasons import TIME_OVER
from agents.services.isolating import isolated
from agents.services.settings import enable_setting
from console.operations.refusals import Refused

log = structlog.get_logger(__name__)


def end_pauses(now: datetime) -> int:
    """How many were enabled. What cannot be enabled now is tried again; its page says what keeps it off.

    Never after a trip, and never a member of a group alone: it is enabled with its group."""
    ended = 0
    for pk, key in list(_over(now).values_list("pk", "key")):
        with isolated("pauses", setting=key):
            ended += _end(pk, now)
    return ended


def _over(now: datetime) -> QuerySet[LaunchSetting]:
    tripped = BreakerTrip.objects.filter(setting=OuterRef("pk"), ended_at=None)
    member = GroupMember.objects.filter(setting=OuterRef("pk"))
    return LaunchSetting.objects.filter(
        ~Exists(tripped), ~Exists(member), enabled=False, disabled_until__lte=now
    )


def _end(pk: int, now: datetime) -> bool:
    """Looked again with the lock: a person may have disabled it for longer meanwhile."""
    try:
        with transaction.atomic():
            LaunchSetting.objects.select_for_update(no_key=True).get(pk=pk)
            setting = _over(now).filter(pk=pk).first()
            if setting is None:
                return False
            enable_setting(setting, None, now, why=TIME_OVER())
    except Refused as refused:
        log.info("pause over, not enabled", setting=pk, reason=refused.reason)
        return False
    log.info("pause over", setting=setting.key)
    return True
