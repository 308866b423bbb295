"""Who is told of an alert: the targets of its setting and of its pools; of what concerns everybody, those of
every pool."""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from agents.alerts.deciding import SAME, Step
from agents.models import Alert, AlertTransition, Notice, NoticeState, NoticeTarget
from agents.services.notices import ask_for_sending

# Addresses of one alert; each is told in turn.
MOST_TOLD = 200


def tell(transition: AlertTransition, now: datetime) -> list[Notice]:
    """Part of the transaction of the transition: a row per address, which a worker sends. That it closed by
    itself is told only after `SAME`: until then it may come back, and nobody is given a false all-clear."""
    waits = transition.step == Step.CLOSED and transition.by is None
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


def withdraw(alert: Alert) -> None:
    """It came back before anybody was told that it was over."""
    closings = Notice.objects.filter(transition__alert=alert, transition__step=Step.CLOSED.value)
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
