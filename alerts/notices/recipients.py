"""Describes who is told: of a trip or another event the targets of its setting, of its pool and of the
installation, of an alert those of its setting, of its pools and of the installation; of what concerns
everybody, those of every pool."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from agents.models import BreakerTrip, LaunchSetting
from agents.pools.rights import may, may_in_pool, missing, why_not
from alerts.models import (
    Alert,
    AlertTransition,
    Channel,
    Event,
    EventKind,
    Notice,
    NoticeState,
    NoticeTarget,
    is_secret,
)
from alerts.notices.channels import TRIP_ENDS
from alerts.notices.channels.request import BAD, house, severity_of_event
from alerts.rules import SAME, AlertStep
from console.operations.operation import ModelPermission
from console.task_queue import send
from console.ui.text import masked

# Addresses of one alert; each is told in turn.
MOST_TOLD = 200
# Who may edit every setting chooses the targets of the installation.
EVERYWHERE = ModelPermission("agents.change_launchsetting", _("Can change launch setting"))


def notify(transition: AlertTransition, now: datetime) -> list[Notice]:
    """Part of the transaction of the transition: a row per address, which a worker sends. That it closed by
    itself is told only after `SAME`: until then it may come back, and nobody is given a false all-clear."""
    over = transition.step == AlertStep.CLOSED
    waits = over and transition.by is None
    at = now + SAME if waits else now
    labels, before = labels_of_alert(transition), _labels_before(transition)
    notices = [
        _notice(target, at, now, transition=transition, over=over, labels=before.get(target.pk, labels))
        for target in targets_of(transition.alert)
    ]
    return _written(notices, waits=waits)


def _labels_before(transition: AlertTransition) -> dict[int, dict[str, str]]:
    """Labels of the first notice of this alert to each target: setting, server and pools may have changed
    since."""
    rows = Notice.objects.filter(transition__alert=transition.alert, channel=Channel.ALERTMANAGER)
    found = rows.order_by("-pk").values_list("target", "labels")
    return {target: labels for target, labels in found if target is not None}


def create_notices(trip: BreakerTrip, now: datetime) -> list[Notice]:
    """Part of the transaction of the trip, also of one that is opened again: a row per address that was not
    told of it yet. A worker sends them."""
    labels = labels_of_trip(trip)
    return _written(
        [
            _notice(target, now, now, trip=trip, turn=trip.reopened, labels=labels)
            for target in pending_targets(trip)
        ]
    )


def create_end_notices(trip: BreakerTrip, now: datetime) -> list[Notice]:
    """Part of the transaction that ends the trip: for channels that are told of it, where they were told of
    the trip."""
    told = Notice.objects.filter(trip=trip, turn=trip.reopened, over=False, target__isnull=False)
    rows = told.filter(channel__in=TRIP_ENDS).select_related("target")
    return _written(
        [
            _notice(row.target, now, now, trip=trip, turn=trip.reopened, over=True, labels=row.labels)
            for row in rows
            if row.target is not None
        ]
    )


def create_event(
    kind: EventKind, setting_key: str, setting: LaunchSetting | None, facts: Mapping[str, Any], now: datetime
) -> Event:
    """Part of the transaction of what happened. One of dead letters stays open until their queue is empty."""
    over_at = None if kind == EventKind.DEAD_LETTERS else now
    event = Event.objects.create(
        kind=kind, setting=setting, setting_key=setting_key, facts=dict(facts), at=now, over_at=over_at
    )
    targets = _different(
        targets_of_setting(setting).filter(channel=Channel.STANDARD), severity_of_event(event)
    )
    _written([_notice(target, now, now, event=event) for target in targets])
    return event


def _notice(target: NoticeTarget, at: datetime, now: datetime, **about: Any) -> Notice:
    return Notice(
        target=target, channel=target.channel, address=target.address, next_at=at, created_at=now, **about
    )


def _written(notices: list[Notice], *, waits: bool = False) -> list[Notice]:
    Notice.objects.bulk_create(notices)
    if notices and not waits:
        transaction.on_commit(ask_for_sending, robust=True)
    return notices


def pending_targets(trip: BreakerTrip) -> list[NoticeTarget]:
    """Targets of the setting, of its pool and of the installation without a notice of this trip: all of them
    when it opens, later those that were added since, and those that were told that it had ended. An address
    that is named several times is told once."""
    told = Q(channel__in=TRIP_ENDS, turn=trip.reopened) | ~Q(channel__in=TRIP_ENDS)
    before = trip.notices.filter(told, over=False)
    targets = targets_of_setting(trip.setting).exclude(
        pk__in=before.filter(target__isnull=False).values("target")
    )
    known = set(before.values_list("channel", "address"))
    found = _different(targets, BAD)
    return [target for target in found if (target.channel, target.address) not in known]


def targets_of_setting(setting: LaunchSetting | None) -> QuerySet[NoticeTarget]:
    """Those of a setting, of its pool, and of the installation."""
    whose = Q(setting__isnull=True, pool__isnull=True)
    if setting is not None:
        whose |= Q(setting=setting) | Q(pool=setting.pool_id)
    return NoticeTarget.objects.filter(whose)


def _different(targets: QuerySet[NoticeTarget], severity: int) -> list[NoticeTarget]:
    """Each address once, the oldest target of several that get this severity."""
    different: dict[tuple[str, str, str], NoticeTarget] = {}
    for target in targets.filter(least_severity__lte=severity).order_by("pk")[:MOST_TOLD]:
        # One address of PagerDuty is many services, told apart by the key.
        service = target.secret if target.channel == Channel.PAGERDUTY else ""
        different.setdefault((target.channel, target.address, service), target)
    return list(different.values())


def ask_for_sending() -> None:
    """Best effort: beat asks for it every few seconds."""
    send("alerts.send_notices", expires=60)


def withdraw(alert: Alert) -> None:
    """It came back before anybody was told that it was over."""
    closings = Notice.objects.filter(transition__alert=alert, over=True)
    closings.filter(state=NoticeState.PENDING, attempts=0).delete()


def targets_of(alert: Alert) -> list[NoticeTarget]:
    """Each address once, the older target of two."""
    pools = list(alert.pools.values_list("pk", flat=True))
    whose = Q(setting__isnull=True, pool__isnull=True)
    if pools or alert.setting_id is not None:
        whose |= Q(pool__in=pools) | Q(setting=alert.setting_id, setting__isnull=False)
    else:
        whose |= Q(pool__isnull=False)
    return _different(NoticeTarget.objects.filter(whose), alert.severity)


# -- labels, frozen when the notification is made ------------------------------------------------------------


def labels_of_alert(row: AlertTransition) -> dict[str, str]:
    alert = row.alert
    named = {
        "alertname": f"ma_{alert.kind}",
        "severity": "critical" if alert.severity >= BAD else "warning",
        "subject": alert.subject,
        "setting": alert.setting.key if alert.setting else "",
        "server": alert.server.name if alert.server else "",
        "pool": ",".join(sorted(pool.name for pool in alert.pools.all())),
        "ma": house(),
    }
    return {name: value for name, value in named.items() if value}


def labels_of_trip(trip: BreakerTrip) -> dict[str, str]:
    return {
        "alertname": "ma_breaker_trip",
        "severity": "critical",
        "setting": trip.setting.key,
        "pool": trip.setting.pool.name,
        "ma": house(),
    }


# -- addresses, whole for those who may edit the setting or the pool's settings, else the host ---------------


def address_of_target(user: Any, target: NoticeTarget) -> str:
    seen = not is_secret(target.channel, target.address) and may_edit(user, target)
    return target.address if seen else masked(target.address)


def address_of_notice(user: Any, notice: Notice, setting: LaunchSetting | None) -> str:
    """`setting`: whose trip it tells of. The target decides as long as it is there: the setting may have
    moved."""
    if is_secret(notice.channel, notice.address):
        seen = False
    elif notice.target is not None:
        seen = may_edit(user, notice.target)
    else:
        seen = setting is not None and may(user, "edit", setting)
    return notice.address if seen else masked(notice.address)


def may_edit(user: Any, target: NoticeTarget) -> bool:
    """Returns whether this person may edit what it belongs to: of the installation, every setting."""
    return not why_not_edit(user, target)


def why_not_edit(user: Any, target: NoticeTarget) -> str:
    if target.setting is not None:
        return why_not(user, "edit", target.setting)
    if target.pool is not None:
        return "" if may_in_pool(user, "edit", target.pool.pk) else missing("edit", target.pool.name)
    return EVERYWHERE.why_not(user, target)
