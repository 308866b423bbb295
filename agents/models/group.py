"""A scheduled group: DELAYED settings in strict order under one schedule."""

import uuid

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonField

group_name = RegexValidator(
    r"^[a-z0-9][a-z0-9-]{0,59}$", _("Lower-case a–z, 0–9 and hyphens, at most 60 characters.")
)


class ScheduledGroup(models.Model):
    """Enabled and disabled as a whole: each member follows."""

    name = models.CharField(_("name"), max_length=60, unique=True, validators=[group_name])
    description = models.TextField(_("description"), blank=True, default="")
    enabled = models.BooleanField(_("enabled"), default=False, editable=False)
    state_since = models.DateTimeField(_("since"), default=timezone.now, editable=False)
    disabled_reason = ReasonField(_("reason"), editable=False)
    disabled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("scheduled group")
        verbose_name_plural = _("scheduled groups")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class GroupMember(models.Model):
    """A setting is in one group at most. Positions are unique, from 1, without meaning beyond their order."""

    group = models.ForeignKey(ScheduledGroup, models.CASCADE, related_name="members")
    setting = models.OneToOneField("agents.LaunchSetting", models.PROTECT, related_name="membership")
    position = models.PositiveIntegerField(_("position"))

    class Meta:
        verbose_name = _("group member")
        verbose_name_plural = _("group members")
        ordering = ("group", "position")
        constraints = [models.UniqueConstraint(fields=["group", "position"], name="one_member_per_position")]

    def __str__(self) -> str:
        return f"{self.group} {self.position}: {self.setting}"


class GroupActivationState(models.TextChoices):
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    STOPPED = "stopped", _("stopped")


class GroupActivation(models.Model):
    """One pass through the members, frozen at its start: `plan` is the list of setting keys, `step` the index
    of the member that runs, or is the next to be started. A conditional update of `step` lets one starter
    win."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    group = models.ForeignKey(ScheduledGroup, models.CASCADE, related_name="activations")
    state = models.CharField(
        _("state"), max_length=10, choices=GroupActivationState.choices, default=GroupActivationState.RUNNING
    )
    plan = models.JSONField(default=list, editable=False)
    step = models.PositiveIntegerField(default=0, editable=False)
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended"), null=True)
    reason = ReasonField(_("reason"))

    class Meta:
        verbose_name = _("group run")
        verbose_name_plural = _("group runs")
        ordering = ("-started_at",)
        indexes = [models.Index(fields=["group", "-started_at"], name="activation_of_group")]
        constraints = [
            models.UniqueConstraint(
                fields=["group"], condition=models.Q(state="running"), name="one_open_activation_per_group"
            )
        ]

    def __str__(self) -> str:
        return str(self.id)
