"""Messages that the broker took from a subscription because it could not turn them into AMQP."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class UndeliveredMessage(models.Model):
    """One row per message, by the broker's id in its subscription (`queue`). It has a dead letter;
    `letter_id` is the broker's id of that one. The link that should have had it holds it all the same: when
    that link ends the message comes back, is dead again (`deaths`) and counted down twice. So the broker's
    figures of that queue are too low until it is restarted, which also ends the message: then the row goes.

    `taken_out_at`: it was found in the queue without a consumer and removed for good.
    """

    node_id = models.CharField(_("broker node"), max_length=60)
    queue = models.CharField(_("queue"), max_length=300)
    message_id = models.BigIntegerField(_("message id"))
    letter_id = models.BigIntegerField(_("id of the dead letter"))
    reason = models.CharField(_("reason"), max_length=40)
    deaths = models.PositiveIntegerField(_("deaths"), default=1)
    first_at = models.DateTimeField(_("first"), default=timezone.now)
    last_at = models.DateTimeField(_("last"), default=timezone.now)
    taken_out_at = models.DateTimeField(_("taken out"), null=True)

    class Meta:
        verbose_name = _("undelivered message")
        verbose_name_plural = _("undelivered messages")
        ordering = ("id",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["node_id", "queue", "message_id"], name="undelivered_message_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.message_id}"
