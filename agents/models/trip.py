"""Interruptions as the KMAs reported them, and the trips that the MA decided on them."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from contract.breaker import TripReason


class BreakReason(models.TextChoices):
    SAME_TYPE = TripReason.SAME_TYPE.value, _("consecutive failures of one type")
    ANY_TYPE = TripReason.ANY_TYPE.value, _("consecutive failures")
    TRIAL = TripReason.TRIAL.value, _("the trial message failed")


class BreakerTrip(models.Model):
    """`quorum`: {"needed": n, "interrupted": [server names], "live": [server names], "rule": stable word}.
    `effects`: what was done at once, in order: [{"what": …, "name": …}]. It ends when a person enables the
    setting; a trial that fails opens the same trip again (`reopened` counts)."""

    setting = models.ForeignKey("agents.LaunchSetting", models.CASCADE, related_name="trips")
    activation = models.ForeignKey("agents.Activation", models.SET_NULL, null=True, related_name="trips")
    group = models.ForeignKey("agents.ScheduledGroup", models.SET_NULL, null=True, related_name="trips")
    reason = models.CharField(_("reason"), max_length=10, choices=BreakReason.choices)
    exception_type = models.CharField(_("exception type"), max_length=255, blank=True, default="")
    quorum = models.JSONField(default=dict)
    effects = models.JSONField(default=list)
    at = models.DateTimeField(_("time"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended"), null=True)
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    reopened = models.PositiveIntegerField(_("reopened"), default=0)

    class Meta:
        verbose_name = _("breaker trip")
        verbose_name_plural = _("breaker trips")
        ordering = ("-at", "-id")
        indexes = [
            models.Index(fields=["setting", "-at"], name="trips_of_setting"),
            models.Index(fields=["-at", "-id"], name="trips_by_time"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["setting"], condition=models.Q(ended_at=None), name="one_open_trip_per_setting"
            )
        ]

    def __str__(self) -> str:
        return f"{self.setting} {self.at:%Y-%m-%d %H:%M:%S}"


class Interruption(models.Model):
    """Holds what a KMA said when it gave a run up. `effective`: it was of the newest epoch on its server when
    it came."""

    id = models.UUIDField(primary_key=True, editable=False)
    setting = models.ForeignKey("agents.LaunchSetting", models.CASCADE, related_name="interruptions")
    run = models.ForeignKey("agents.Run", models.CASCADE, null=True, related_name="interruptions")
    server = models.ForeignKey("agents.Server", models.PROTECT, related_name="interruptions")
    trip = models.ForeignKey(BreakerTrip, models.SET_NULL, null=True, related_name="interruptions")
    activation_uuid = models.UUIDField()
    epoch = models.PositiveIntegerField(_("epoch"))
    effective = models.BooleanField(_("took effect"), default=True)
    reason = models.CharField(_("reason"), max_length=10, choices=BreakReason.choices)
    limit_m = models.PositiveIntegerField(_("threshold M"))
    same_type = models.CharField(max_length=255, blank=True, default="")
    same_count = models.PositiveIntegerField(default=0)
    any_count = models.PositiveIntegerField(default=0)
    evidence = models.JSONField(default=list)
    occurred_at = models.DateTimeField(_("time"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)

    class Meta:
        verbose_name = _("interruption")
        verbose_name_plural = _("interruptions")
        ordering = ("-received_at",)
        indexes = [models.Index(fields=["setting", "-received_at"], name="interruptions_of_setting")]

    def __str__(self) -> str:
        return f"{self.setting} @ {self.server} #{self.epoch}"
