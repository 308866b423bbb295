"""Switching a setting on and off, as people and programs ask for it. One that was disabled for a time is
enabled again by itself."""

from datetime import datetime
from typing import Any

import structlog
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.translation import gettext as _

from agents.activations.end import end_activations
from agents.activations.plan import plan_runs
from agents.activations.switch import switch_off, switch_on
from agents.freezes.held import FrozenStart, Held, note_held
from agents.groups.group import disable_group, group_of
from agents.isolation import isolated
from agents.liveness import poll_after_commit
from agents.models import (
    Activation,
    BreakerTrip,
    GroupMember,
    HeldKind,
    LaunchSetting,
    PoisonPolicy,
    ScheduledGroup,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import OF_MEMBER, TIME_OVER
from agents.state_history import note
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
            "disabled_meanwhile",
            _("The setting was not enabled: someone disabled it at the same time."),
            _("Check the state of the setting, then enable it again."),
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
            "until_is_past",
            _("The end time of the pause is invalid: it is in the past."),
            _("Choose a later time."),
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
    text = _("The setting cannot be enabled alone: it belongs to the group “%(name)s”.") % {
        "name": group.name
    }
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
            "You cannot choose to discard messages without the permission “Can choose to discard "
            "messages after the last attempt”. Ask someone who has it."
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
            "You cannot unmask %(names)s without the permission “Can see masked properties of "
            "dead letters”. Ask someone who has it."
        )
        raise ValidationError(text, code="not_yours", params={"names": ", ".join(removed)})


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
    setting = None
    try:
        with transaction.atomic():
            LaunchSetting.objects.select_for_update(no_key=True).get(pk=pk)
            setting = _over(now).filter(pk=pk).first()
            if setting is None:
                return False
            enable_setting(setting, None, now, why=TIME_OVER())
    except FrozenStart as held:
        note_held(held.frozen, Held(HeldKind.PAUSE, f"setting:{setting}", 0), now)
        return False
    except Refused as refused:
        log.info("pause ended, setting not enabled", setting=pk, reason=refused.reason)
        return False
    log.info("pause ended, setting enabled", setting=setting.key)
    return True


# -- A person asks for another attempt of the message that blocks an ordered subscription --------------------


def retry_refusal(setting: LaunchSetting) -> Refused | None:
    if not setting.ordered:
        text = _("There is nothing to retry: the subscription is not ordered, so no message blocks it.")
        return Refused("not_ordered", text, _("No action is needed."))
    if not setting.enabled:
        return Refused(
            "not_running",
            _("The setting is not running."),
            _("Enable the setting: it starts with that message."),
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
