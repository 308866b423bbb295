"""A person asks for another attempt of the message that blocks an ordered subscription."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.history import note
from agents.services.polling import poll_after_commit
from console.operations.refusals import Refused


def refusal(setting: LaunchSetting) -> Refused | None:
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
    if refused := refusal(setting):
        raise refused
    with transaction.atomic():
        LaunchSetting.objects.filter(pk=setting.pk).update(retries_asked=F("retries_asked") + 1)
        note(setting, "run", "", "tried again", now=now, by=by)
        poll_after_commit(setting.pool.servers.values_list("name", flat=True))
