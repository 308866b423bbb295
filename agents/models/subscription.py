"""What was seen of a setting's subscription on the broker, for alerts: is it fed, is it moving."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class SubscriptionState(models.Model):
    """As of `seen_at`. `acknowledged` is the broker's counter, which begins anew when it is restarted.
    `still_since`: since when messages wait, consumers are open and the counter stands; `unfed_since`: since
    when nobody consumes though somebody should. Both None while all is well."""

    setting = models.OneToOneField(
        "agents.LaunchSetting",
        models.CASCADE,
        related_name="subscription_state",
        verbose_name=_("launch setting"),
    )
    waiting = models.BigIntegerField(default=0)
    in_delivery = models.BigIntegerField(default=0)
    consumers = models.IntegerField(default=0)
    acknowledged = models.BigIntegerField(default=0)
    seen_at = models.DateTimeField(default=timezone.now)
    still_since = models.DateTimeField(null=True)
    unfed_since = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("state of a subscription")
        verbose_name_plural = _("states of subscriptions")

    def __str__(self) -> str:
        return str(self.setting_id)
