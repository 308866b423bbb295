"""A message that had failed and was handled well later."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class RecoveredMessage(models.Model):
    id = models.UUIDField(primary_key=True, editable=False)
    setting_key = models.CharField(_("setting key"), max_length=200)
    activation_uuid = models.UUIDField(_("activation id"))
    server_name = models.CharField(_("server"), max_length=63)
    message_key = models.CharField(_("message key"), max_length=255)
    attempt = models.BigIntegerField(_("attempt"))
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    # False: this server has no such run here, as after a database was put back from a copy
    # (`failures.intake.attribution`).
    verified = models.BooleanField(_("verified"), default=True, db_default=True)

    class Meta:
        verbose_name = _("recovered message")
        verbose_name_plural = _("recovered messages")
        ordering = ("-occurred_at", "-id")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["message_key", "setting_key"], name="recoveries_of_message"),
            models.Index(fields=["activation_uuid", "occurred_at"], name="recoveries_of_activation"),
            models.Index(fields=["occurred_at"], name="recoveries_by_time"),
            models.Index(fields=["received_at"], name="recoveries_by_receipt"),
        ]

    def __str__(self) -> str:
        return self.message_key
