"""Describes who is told of trips and alerts, and how each telling went."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator, URLValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.ui.text import masked

# Of one setting, and of one pool: each is told in turn, and one that hangs costs the others seconds.
MOST_TARGETS = 10


class Channel(models.TextChoices):
    EMAIL = "email", _("e-mail")
    WEBHOOK = "webhook", _("webhook")


class NoticeTarget(models.Model):
    """Belongs to one setting or to a whole pool. `secret` signs the webhook's body; it is never shown
    again."""

    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="notice_targets",
        verbose_name=_("launch setting"),
    )
    pool = models.ForeignKey(
        "agents.Pool",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="notice_targets",
        verbose_name=_("pool"),
    )
    channel = models.CharField(_("channel"), max_length=7, choices=Channel.choices)
    address = models.CharField(_("address"), max_length=500)
    secret = models.CharField(_("secret"), max_length=100, blank=True, default="", editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("notification recipient")
        verbose_name_plural = _("notification recipients")
        ordering = ("pk",)
        constraints = [
            models.CheckConstraint(
                condition=models.Q(setting__isnull=False, pool__isnull=True)
                | models.Q(setting__isnull=True, pool__isnull=False),
                name="notice_target_of_one_owner",
            )
        ]

    def __str__(self) -> str:
        """Returns what histories and titles show to everybody, too."""
        return f"{self.get_channel_display()} {masked(self.address)}"

    def clean(self) -> None:
        if self.channel == Channel.EMAIL and not settings.MA_EMAIL_READY:
            raise ValidationError(
                {
                    "channel": _(
                        "This site cannot send e-mail: MA_EMAIL_URL is not set (docs/how-to/notices.md)."
                    )
                }
            )
        check = EmailValidator() if self.channel == Channel.EMAIL else URLValidator(schemes=["http", "https"])
        try:
            check(self.address)
        except ValidationError as error:
            raise ValidationError({"address": error.messages}) from error
        if (self.setting_id is None) == (self.pool_id is None):
            raise ValidationError(_("Choose either a setting or a pool."))
        others = NoticeTarget.objects.filter(setting=self.setting_id, pool=self.pool_id).exclude(pk=self.pk)
        if others.count() >= MOST_TARGETS:
            text = _(
                "Recipient not saved: the limit is %(most)s recipients. Remove one first, or use an "
                "address that forwards to several people."
            )
            raise ValidationError(text % {"most": MOST_TARGETS})


class NoticeState(models.TextChoices):
    PENDING = "pending", _("pending")
    SENT = "sent", _("sent")
    FAILED = "failed", pgettext_lazy("a notification", "failed")


class Notice(models.Model):
    """One telling, of a trip or of a transition of an alert. Neither: a test that a person asked for."""

    trip = models.ForeignKey("agents.BreakerTrip", models.CASCADE, null=True, related_name="notices")
    transition = models.ForeignKey(
        "alerts.AlertTransition", models.CASCADE, null=True, related_name="notices"
    )
    target = models.ForeignKey(NoticeTarget, models.SET_NULL, null=True, related_name="notices")
    channel = models.CharField(_("channel"), max_length=7, choices=Channel.choices)
    address = models.CharField(_("address"), max_length=500)
    state = models.CharField(
        _("state"), max_length=7, choices=NoticeState.choices, default=NoticeState.PENDING
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    next_at = models.DateTimeField(_("next attempt"), default=timezone.now)
    problem = models.TextField(_("problem"), blank=True, default="")
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    sent_at = models.DateTimeField(_("sent"), null=True)

    class Meta:
        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ("-created_at", "-id")
        constraints = [
            models.UniqueConstraint(fields=["trip", "target"], name="one_notice_per_trip_and_target"),
            models.UniqueConstraint(
                fields=["transition", "target"], name="one_notice_per_transition_and_target"
            ),
        ]
        indexes = [
            models.Index(fields=["next_at"], condition=models.Q(state="pending"), name="notices_to_send")
        ]

    def __str__(self) -> str:
        return f"{self.channel} {masked(self.address)}"
