"""Describes what the index knows as a whole: of each dead-letter queue, of messages that the broker could not
deliver, and how far building the words again is."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonField


class LetterQueue(models.Model):
    """One row per queue that is looked after. `broker_count` and `indexed` are of the same moment,
    `counted_at`. `differs_since` is when they were first seen to differ with an empty feed; a walk is due
    when they still do at the next look. A walk in progress: `walk_started_at` is set and `walk_seen` grows;
    `walked_at` is the last whole one."""

    queue = models.CharField(_("queue"), max_length=300, unique=True)
    address = models.CharField(_("address"), max_length=300, blank=True)
    foreign = models.BooleanField(_("other queue"), default=False)
    note = models.CharField(_("note"), max_length=300, blank=True)
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("added by")
    )
    added_at = models.DateTimeField(_("added"), default=timezone.now)
    broker_count = models.BigIntegerField(_("messages on the broker"), null=True)
    indexed = models.BigIntegerField(_("messages in the index"), null=True)
    counted_at = models.DateTimeField(_("counted at"), null=True)
    differs_since = models.DateTimeField(_("differs since"), null=True)
    walk_started_at = models.DateTimeField(_("scan started"), null=True)
    walk_seen = models.BigIntegerField(_("messages scanned"), default=0)
    walked_at = models.DateTimeField(_("last full scan"), null=True)
    problem = ReasonField(_("problem"))

    class Meta:
        verbose_name = _("dead-letter queue")
        verbose_name_plural = _("dead-letter queues")
        ordering = ("queue",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.queue


# -- messages that the broker took from a subscription because it could not turn them into AMQP --------------


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
    letter_id = models.BigIntegerField(_("broker id in the DLQ"))
    reason = models.CharField(_("reason"), max_length=40)
    deaths = models.PositiveIntegerField(_("times dead-lettered"), default=1)
    first_at = models.DateTimeField(_("first"), default=timezone.now)
    last_at = models.DateTimeField(_("last"), default=timezone.now)
    taken_out_at = models.DateTimeField(_("taken from the queue"), null=True)

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


# -- building the index of words again: how far it is --------------------------------------------------------


class WordRebuild(models.Model):
    """The dead letters up to `last` are put into the index once more; those up to `position` are. Later ones
    are put into it when they are stored. At most one is `open`."""

    open = models.BooleanField(_("open"), default=True)
    began_at = models.DateTimeField(_("began"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended"), null=True)
    last = models.BigIntegerField(_("last message"), default=0)
    position = models.BigIntegerField(_("last indexed message"), default=0)
    letters = models.BigIntegerField(_("messages"), default=0)

    class Meta:
        verbose_name = _("text index rebuild")
        verbose_name_plural = _("text index rebuilds")
        ordering = ("-id",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["open"], condition=models.Q(open=True), name="one_open_word_rebuild"
            )
        ]

    def __str__(self) -> str:
        return f"#{self.pk}: {self.position} of {self.last}"
