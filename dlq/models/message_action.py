"""Describes what people do with messages before they are handled: an action, and one item per message."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.jobs.engine import Job


class WaitingKind(models.TextChoices):
    TRY_NOW = "try_now", _("redeliver now")
    TO_DLQ = "to_dlq", _("move to DLQ")
    HOLD = "hold", _("hold")
    RELEASE = "release", _("release")


class WaitingPart(models.TextChoices):
    """Says where the messages are while it is done."""

    WAITING = "waiting", _("waiting")
    DELAYED = "delayed", _("delayed")
    HELD = "held", _("on hold")


class WaitingState(models.TextChoices):
    PLANNED = "planned", _("planned")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    STOPPED = "stopped", _("stopped")


OPEN_ACTIONS = (WaitingState.PLANNED, WaitingState.RUNNING)


class WaitingAction(Job):
    """`every`: all messages of the part, `total` of which there were when it was asked; else those of its
    items. `whole`: one operation of the broker for all of them, without items. `planned_all`: no more items
    come; of a whole one, the operation was carried out. `stopping`: somebody wants it to end after what is at
    hand. `counts`: messages by fate, told when it is over."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.SET_NULL,
        null=True,
        related_name="waiting_actions",
        verbose_name=_("launch setting"),
    )
    setting_key = models.CharField(_("setting key"), max_length=61)
    kind = models.CharField(_("action"), max_length=10, choices=WaitingKind.choices)
    part = models.CharField(_("part"), max_length=10, choices=WaitingPart.choices)
    every = models.BooleanField(_("all"), default=False)
    whole = models.BooleanField(default=False, editable=False)
    reason = models.TextField(_("reason"), blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    state = models.CharField(
        _("state"), max_length=10, choices=WaitingState.choices, default=WaitingState.PLANNED
    )
    total = models.PositiveIntegerField(_("messages"), default=0)
    counts = models.JSONField(_("counts"), default=dict)
    planned_all = models.BooleanField(default=False, editable=False)
    stopping = models.BooleanField(_("stopping"), default=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    acted_at = models.DateTimeField(_("last broker request"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)

    class Meta:
        verbose_name = _("action on waiting messages")
        verbose_name_plural = _("actions on waiting messages")
        ordering = ("-created_at", "-id")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key"],
                condition=models.Q(state__in=["planned", "running"]),
                name="one_waiting_action_at_a_time",
            )
        ]
        indexes = [
            models.Index(fields=["setting_key", "-created_at"], name="waiting_of_setting"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(state__in=["planned", "running"]),
                name="open_waiting_actions",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.setting_key}"


class MessageResult(models.TextChoices):
    """Holds what is known of a message. ACTED: the broker was asked, nothing is looked up yet. LEFT: it is
    neither where it was nor where it was to go; mostly somebody handled it first."""

    PLANNED = "planned", _("planned")
    ACTED = "acted", _("requested from the broker")
    DONE = "done", _("done")
    LEFT = "left", _("already processed or expired")
    STAYED = "stayed", _("stayed in place")


class WaitingItem(models.Model):
    """`number` is the broker's id of the message in the queue where it lay: of this message there alone. A
    message without a producer's id has no `message_key`: the broker does not tell enough of it."""

    action = models.ForeignKey(WaitingAction, models.CASCADE, related_name="items", verbose_name=_("action"))
    number = models.BigIntegerField(_("broker id"))
    setting_key = models.CharField(_("setting key"), max_length=61)
    message_key = models.CharField(_("message key"), max_length=255, blank=True)
    fate = models.CharField(
        _("outcome"), max_length=10, choices=MessageResult.choices, default=MessageResult.PLANNED
    )
    at = models.DateTimeField(_("since"), default=timezone.now)

    class Meta:
        verbose_name = _("message affected by an action")
        verbose_name_plural = _("messages affected by an action")
        ordering = ("id",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["action", "number"], name="message_once_per_waiting_action")
        ]
        indexes = [
            models.Index(fields=["action", "fate"], name="waiting_items_by_fate"),
            models.Index(fields=["setting_key", "message_key"], name="waiting_items_of_message"),
            models.Index(fields=["setting_key", "number"], name="waiting_items_by_number"),
        ]

    def __str__(self) -> str:
        return f"{self.action_id}: {self.number}"
