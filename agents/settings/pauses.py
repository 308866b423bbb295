"""Settings that were disabled for a time are enabled again by themselves."""

from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.translation import gettext as _

from agents.isolation import isolated
from agents.liveness import poll_after_commit
from agents.models import BreakerTrip, GroupMember, LaunchSetting
from agents.reasons import TIME_OVER
from agents.settings.enable import enable_setting
from agents.state_history import note
from console.operations.refusals import Refused

log = structlog.get_logger(__name__)


def end_pauses(now: datetime) -> int:
    """Returns how many were enabled. What cannot be enabled now is tried again; its page says what keeps it
    off.

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


# -- A person asks for another attempt of the message that blocks an ordered subscription --------------------


def retry_refusal(setting: LaunchSetting) -> Refused | None:
    if not setting.ordered:
        text = _("Its subscription is not ordered: nothing blocks it.")
        return Refused("not_ordered", text, _("Nothing is to be done."))
    if not setting.enabled:
        return Refused(
            "not_running", _("The setting does not run."), _("Enable it: then it begins with that message.")
        )
    return None


def retry_now(setting: LaunchSetting, by: Any, now: datetime) -> None:
    """Whoever holds the message sees the new number and tries it at once; where nothing blocks, nothing
    happens. Killed before the commit nothing was asked; after it, servers poll. Raises Refused."""
    if refused := retry_refusal(setting):
        raise refused
    with transaction.atomic():
        LaunchSetting.objects.filter(pk=setting.pk).update(retries_asked=F("retries_asked") + 1)
        note(setting, "run", "", "tried again", now=now, by=by)
        poll_after_commit(setting.pool.servers.values_list("name", flat=True))
