"""Describes who is told: of a trip the targets of its setting and of its pool, of an alert those of its
setting and of its pools; of what concerns everybody, those of every pool."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from agents.models import BreakerTrip, LaunchSetting
from agents.pools.rights import may, may_in_pool
from alerts.models import Alert, AlertTransition, Notice, NoticeState, NoticeTarget
from alerts.rules import SAME, AlertStep
from console.task_queue import send
from console.ui.text import masked

# Addresses of one alert; each is told in turn.
MOST_TOLD = 200


def notify(transition: AlertTransition, now: datetime) -> list[Notice]:
    """Part of the transaction of the transition: a row per address, which a worker sends. That it closed by
    itself is told only after `SAME`: until then it may come back, and nobody is given a false all-clear."""
    waits = transition.step == AlertStep.CLOSED and transition.by is None
    at = now + SAME if waits else now
    notices = [
        Notice(
            transition=transition, target=target, channel=target.channel, address=target.address, next_at=at,
            created_at=now,
        )
        for target in targets_of(transition.alert)
    ]  # fmt: skip
    Notice.objects.bulk_create(notices)
    if notices and not waits:
        transaction.on_commit(ask_for_sending, robust=True)
    return notices


def create_notices(trip: BreakerTrip, now: datetime) -> list[Notice]:
    """Part of the transaction of the trip, also of one that is opened again: a row per address that was not
    told of it yet. A worker sends them."""
    notices = [
        Notice(
            trip=trip,
            target=target,
            channel=target.channel,
            address=target.address,
            next_at=now,
            created_at=now,
        )
        for target in pending_targets(trip)
    ]
    Notice.objects.bulk_create(notices)
    if notices:
        transaction.on_commit(ask_for_sending, robust=True)
    return notices


def pending_targets(trip: BreakerTrip) -> list[NoticeTarget]:
    """Targets of the setting and of its pool without a notice of this trip: all of them when it opens, later
    those that were added since. An address that both the setting and its pool name is told once."""
    setting = trip.setting
    targets = NoticeTarget.objects.filter(Q(setting=setting) | Q(pool=setting.pool_id)).exclude(
        notices__trip=trip
    )
    different = {(target.channel, target.address): target for target in targets.order_by("-pk")}
    for notified in trip.notices.values_list("channel", "address"):
        different.pop(notified, None)
    return sorted(different.values(), key=lambda target: target.pk)


def ask_for_sending() -> None:
    """Best effort: beat asks for it every few seconds."""
    send("alerts.send_notices", expires=60)


def withdraw(alert: Alert) -> None:
    """It came back before anybody was told that it was over."""
    closings = Notice.objects.filter(transition__alert=alert, transition__step=AlertStep.CLOSED.value)
    closings.filter(state=NoticeState.PENDING, attempts=0).delete()


def targets_of(alert: Alert) -> list[NoticeTarget]:
    """Each address once, the older target of two."""
    pools = list(alert.pools.values_list("pk", flat=True))
    if pools or alert.setting_id is not None:
        whose = Q(pool__in=pools) | Q(setting=alert.setting_id, setting__isnull=False)
    else:
        whose = Q(pool__isnull=False)
    rows = NoticeTarget.objects.filter(whose).order_by("pk")[:MOST_TOLD]
    different: dict[tuple[str, str], NoticeTarget] = {}
    for target in rows:
        different.setdefault((target.channel, target.address), target)
    return list(different.values())


# -- addresses, whole for those who may edit the setting or the pool's settings, else the host ---------------


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


def _may_edit(user: Any, target: NoticeTarget) -> bool:
    if target.setting is not None:
        return may(user, "edit", target.setting)
    return target.pool_id is not None and may_in_pool(user, "edit", target.pool_id)
