"""Alerts as pages and REST list them: the open ones, gravest first, and the closed ones by their end."""

from django.db.models import Exists, OuterRef, QuerySet

from alerts.models import LIVE_ALERTS, Alert, AlertState
from console.lists.keyset import count_up_to

# A badge that says more tells nothing more.
MOST_COUNTED = 99


def open_alerts() -> QuerySet[Alert]:
    return Alert.objects.filter(state__in=LIVE_ALERTS).order_by("-severity", "-opened_at", "-id")


def closed_alerts() -> QuerySet[Alert]:
    return Alert.objects.filter(state=AlertState.CLOSED).order_by("-closed_at", "-id")


def open_count() -> int:
    """Counts those that nobody has snoozed; never reads more than `MOST_COUNTED` + 1 of them."""
    return count_up_to(Alert.objects.filter(state=AlertState.OPEN), MOST_COUNTED)


def narrowed(rows: QuerySet[Alert], *, kind: str = "", pool: str = "", setting: str = "") -> QuerySet[Alert]:
    """What concerns everybody concerns each pool, and no setting."""
    if kind:
        rows = rows.filter(kind=kind)
    if setting:
        rows = rows.filter(setting__key=setting)
    if pool:
        # Asked of each row, so that an alert of several pools is one row.
        pools = Alert.pools.through.objects.filter(alert=OuterRef("pk"))
        rows = rows.filter(Exists(pools.filter(pool__name=pool)) | ~Exists(pools))
    return rows
