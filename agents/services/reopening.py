"""A trip ends when a person enables the setting; when the message tried first fails, the same trip goes
on."""

from datetime import datetime
from typing import Any

from django.db.models import F

from agents.models import Activation, BreakerTrip, LaunchSetting


def end_trip(setting: LaunchSetting, by: Any, now: datetime) -> bool:
    """Whether one was open. `now` is the instant at which the setting is enabled: by it `reopen` knows the
    trip."""
    user = by if getattr(by, "pk", None) else None
    return bool(
        BreakerTrip.objects.filter(setting=setting, ended_at=None).update(ended_at=now, ended_by=user)
    )


def reopen_trip(setting: LaunchSetting, activation: Activation) -> BreakerTrip | None:
    """The trip that enabling the setting ended, open again; None where enabling ended none. `setting` is the
    row as it was before it was switched off."""
    trip = (
        BreakerTrip.objects.filter(setting=setting, ended_at=setting.state_since)
        .order_by("-at", "-id")
        .first()
    )
    if trip is None:
        return None
    again = {"ended_at": None, "ended_by": None, "reopened": F("reopened") + 1, "activation": activation}
    BreakerTrip.objects.filter(pk=trip.pk).update(**again)
    return trip
