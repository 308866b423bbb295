"""Switching a setting on and off, as people and programs ask for it."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from agents.activations.enable import switch_off, switch_on
from agents.activations.end import end_activations
from agents.activations.plan import plan_runs
from agents.groups.enable import disable_group, group_of
from agents.models import Activation, LaunchSetting, PoisonPolicy, ScheduledGroup
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import OF_MEMBER
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
    """Returns whether it was on. Stops it on every server; its subscription keeps gathering. A member takes
    its group along, and is then off without an end. `until`: it is enabled again by itself then. Raises
    Refused where that is past."""
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
    """Returns why a member is not enabled alone."""
    text = _("It belongs to the group “%(name)s”.") % {"name": group.name}
    return Refused("in_group", text, _("Enable the group: its members are enabled together."))


def _disabled_with(group: ScheduledGroup, by: Any, reason: Reason, now: datetime, record: Record) -> bool:
    """Returns whether the group was on. One that is deleted at this moment was off, and its members with
    it."""
    try:
        return disable_group(group, by, reason, now, record=record)
    except ScheduledGroup.DoesNotExist:
        return False


# -- whose messages are thrown away at their end: only who has the permission may choose that ----------------


DISCARD = "agents.can_discard"


def check_discarding(user: Any, setting: LaunchSetting | None, wanted: Any) -> None:
    """Raises ValidationError. Who may not choose it may leave it as it is."""
    if wanted != PoisonPolicy.DISCARD or user.has_perm(DISCARD):
        return
    stored = LaunchSetting.objects.filter(pk=setting.pk) if setting is not None and setting.pk else None
    if stored is None or not stored.filter(after_last=PoisonPolicy.DISCARD).exists():
        text = _(
            "You may not choose that messages are discarded. Ask somebody with the permission “Can choose "
            "that "
            "messages without an attempt left are discarded”."
        )
        raise ValidationError(text, code="not_yours")


# -- unmasking -----------------------------------------------------------------------------------------------
# Taking a name off a setting's masking list shows what it hid: only who may see that anyway may do it.


# Of the dlq app, which is above this one.
SEE_MASKED = "dlq.can_see_masked"


def check_unmasking(user: Any, setting: LaunchSetting, wanted: Any) -> None:
    """`wanted`: the list as it is to be, not looked at yet. Raises ValidationError; adding names is always
    allowed."""
    stored = LaunchSetting.objects.filter(pk=setting.pk).values_list("masked_properties", flat=True).first()
    kept = wanted if isinstance(wanted, list) else []
    removed = sorted(name for name in stored or [] if name not in kept)
    if removed and not user.has_perm(SEE_MASKED):
        text = _(
            "You may not stop masking: %(names)s. Ask somebody with the permission “Can see masked "
            "properties of dead "
            "letters”."
        )
        raise ValidationError(text, code="not_yours", params={"names": ", ".join(removed)})
