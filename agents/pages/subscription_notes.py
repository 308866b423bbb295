"""What is wrong with the subscription of a setting, on the page where an alert of it leads."""

from django.utils.translation import ngettext

from agents.alerts.subscription_sources import STALLED, UNFED
from agents.models import LIVE_ALERTS, Alert, LaunchSetting
from agents.pages.alerts import AlertRow, row_of
from console.ui.amounts import number


def subscription_alerts(setting: LaunchSetting) -> list[AlertRow]:
    """Those that are open, in the words that people were notified with."""
    kinds = (STALLED.name, UNFED.name)
    alerts = Alert.objects.filter(setting=setting, kind__in=kinds, state__in=LIVE_ALERTS).order_by("-pk")
    return [row_of(alert) for alert in alerts]


def stopping_note(setting: LaunchSetting, consumers: int | None) -> str:
    """What a disabled setting waits for; empty where nothing consumes."""
    if setting.enabled or not consumers:
        return ""
    text = ngettext(
        "Disabled, but %(n)s consumer of its subscription is still open and may process messages. A run that "
        "is still "
        "ending is listed below with its server; where none is, the consumer belongs to another client.",
        "Disabled, but %(n)s consumers of its subscription are still open and may process messages. Runs "
        "that are "
        "still ending are listed below with their servers; where none is, the consumers belong to another "
        "client.",
        consumers,
    )
    return text % {"n": number(consumers)}
