"""The row with which an activation begins."""

from datetime import datetime
from typing import Any

from agents.models import Activation, GroupActivation, LaunchSetting, Trigger
from agents.services.launched import launched_with
from agents.services.trial import begins_with_trial


def open_activation(
    setting: LaunchSetting,
    trigger: Trigger,
    by: Any,
    now: datetime,
    *,
    group_activation: GroupActivation | None = None,
) -> Activation:
    """The caller has locked the setting and knows that none is open; its runs are planned by the caller or by
    tend."""
    before = (
        Activation.objects.filter(setting=setting)
        .order_by("-number")
        .values_list("number", flat=True)
        .first()
    )
    return Activation.objects.create(
        setting=setting,
        trigger=trigger,
        started_by=by if getattr(by, "pk", None) else None,
        started_at=now,
        group_activation=group_activation,
        trial=begins_with_trial(setting),
        enabling=setting.enablings,
        number=(before or 0) + 1,
        launched_with=launched_with(setting),
    )
