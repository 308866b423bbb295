"""One start of a setting: by enabling, a window, a group or a person."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Activation, GroupActivation, LaunchSetting, Trigger, Window
from agents.services.history import note
from agents.services.planning import plan_runs
from agents.services.switching import Refused


def start_activation(
    setting: LaunchSetting,
    trigger: Trigger,
    by: Any,
    now: datetime,
    *,
    group_activation: GroupActivation | None = None,
    window: Window | None = None,
) -> Activation:
    """Raises Refused."""
    with transaction.atomic():
        current = LaunchSetting.objects.select_for_update().get(pk=setting.pk)
        if not current.enabled:
            raise Refused("disabled", _("The setting is disabled."), _("Enable it first."))
        if Activation.objects.filter(setting=current, ended_at=None).exists():
            raise Refused("still_running", _("The activation before still runs."), _("Wait until it has ended."))
        activation = Activation.objects.create(
            setting=current, trigger=trigger, started_by=by, started_at=now, group_activation=group_activation
        )
        note(current, "activation", "", "pending", now=now, by=by, reason=trigger.value, activation=activation)
    plan_runs(activation.pk, now)
    return activation
