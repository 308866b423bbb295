"""Switching a setting on and off, as people and programs ask for it."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Activation, LaunchSetting, ScheduledGroup
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import OF_MEMBER
from agents.services.endings import end_activations
from agents.services.groups import disable_group, group_of
from agents.services.planning import plan_runs
from agents.services.switching import switch_off, switch_on
from console.audit.log import Record, no_record
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason


def enable_setting(
    setting: LaunchSetting,
    by: Any,
    now: datetime,
    *,
    why: Reason = NO_REASON,
    try_one_first: bool | None = None,
    record: Record = no_record,
) -> Activation | None:
    """Starts an activation, or answers the open one when it is enabled already. None where there is none:
    what is started by its schedule begins later, a standalone agent may have ended. Raises Refused.

    `try_one_first` holds for this enabling alone; None: as the setting says. Of two at once one starts the
    activation: exactly one row changes from off to on.
    """
    with transaction.atomic():
        locked = LaunchSetting.objects.select_for_update(of=("self",), no_key=True)
        current = locked.select_related("pool").get(pk=setting.pk)
        # With the lock: who adds it to a group at this moment holds it too.
        if (group := group_of(current)) is not None:
            raise in_group(group)
        if not current.enabled:
            switch_on(current, by, now, why=why, try_one_first=try_one_first)
            record()
    activation = Activation.objects.filter(setting=current, state__in=OPEN_ACTIVATIONS).first()
    if activation is None:
        if LaunchSetting.objects.filter(pk=setting.pk, enabled=True).exists():
            return None
        raise Refused(
            "disabled_meanwhile", _("It was disabled at the same time."), _("Look, then enable it again.")
        )
    plan_runs(activation.pk, now)
    activation.refresh_from_db()
    return activation


def disable_setting(
    setting: LaunchSetting,
    by: Any,
    reason: Reason,
    now: datetime,
    *,
    ticket: str = "",
    until: datetime | None = None,
    record: Record = no_record,
) -> bool:
    """Whether it was on. Stops it on every server; its subscription keeps gathering. A member takes its group
    along, and is then off without an end. `until`: it is enabled again by itself then. Raises Refused where
    that is past."""
    if until is not None and until <= now:
        raise Refused(
            "until_is_past", _("The end of the pause is in the past."), _("Choose a later instant.")
        )
    if (group := group_of(setting)) is not None and _disabled_with(
        group, by, OF_MEMBER(key=setting.key, why=reason), now, record
    ):
        return True
    with transaction.atomic():
        if not switch_off(setting, by, reason, now, ticket=ticket, until=until):
            return False
        record()
    end_activations(now)
    return True


def in_group(group: ScheduledGroup) -> Refused:
    """Why a member is not enabled alone."""
    text = _("It belongs to the group “%(name)s”.") % {"name": group.name}
    return Refused("in_group", text, _("Enable the group: its members are enabled together."))


def _disabled_with(group: ScheduledGroup, by: Any, reason: Reason, now: datetime, record: Record) -> bool:
    """Whether the group was on. One that is deleted at this moment was off, and its members with it."""
    try:
        return disable_group(group, by, reason, now, record=record)
    except ScheduledGroup.DoesNotExist:
        return False
