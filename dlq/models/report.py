"""What KMAs said about messages that were given back."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class LetterResult(models.TextChoices):
    HANDLED = "handled", _("handled")
    FAILED = "failed", _("failed again")


class LetterReport(models.Model):
    """One handling of a returned message. It may come before the replay knows that the letter left, so it is
    kept.

    `letter_id` is the broker's id of the message in the dead-letter queue: larger than the one it had before
    it died, smaller than the one that it has when it dies again.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    setting_key = models.CharField(_("setting key"), max_length=200)
    message_key = models.CharField(_("message key"), max_length=255)
    letter_queue = models.CharField(_("dead-letter queue"), max_length=300, blank=True)
    letter_id = models.BigIntegerField(_("the broker's id of the letter there"), null=True)
    result = models.CharField(_("result"), max_length=10, choices=LetterResult.choices)
    server_name = models.CharField(_("server"), max_length=63)
    activation_uuid = models.UUIDField(_("activation id"))
    attempt = models.BigIntegerField(_("attempt"))
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    # False: its server has no such run here (`failures.intake.conflicts`). Then it settles no replay.
    verified = models.BooleanField(_("verified"), default=True, db_default=True)

    class Meta:
        verbose_name = _("report of a returned letter")
        verbose_name_plural = _("reports of returned letters")
        ordering = ("-occurred_at", "-id")
        default_permissions = ()
        indexes = [models.Index(fields=["message_key", "setting_key"], name="reports_of_message")]

    def __str__(self) -> str:
        return f"{self.message_key}: {self.result}"
