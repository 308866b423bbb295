"""Describes what retention did: one row per run over all settings, and what it did to each; and what is still
to be taken out of the archive."""

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.jobs.engine import Job
from console.reasons import ReasonKind


class RetentionState(models.TextChoices):
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class RetentionRun(Job):
    """At most one is running. It is worked on step by step. `part` and `position` say what is behind it: a
    step that was killed is gone on with from there."""

    lease: ClassVar[timedelta] = timedelta(seconds=60)

    state = models.CharField(
        _("state"), max_length=10, choices=RetentionState.choices, default=RetentionState.RUNNING
    )
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended"), null=True)
    part = models.PositiveSmallIntegerField(default=0, editable=False)
    position = models.BigIntegerField(default=0, editable=False)
    deleted = models.BigIntegerField(_("deleted"), default=0)

    class Meta:
        verbose_name = _("retention run")
        verbose_name_plural = _("retention runs")
        ordering = ("-id",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=models.Q(state="running"), name="one_retention_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M} {self.state}"


class RetentionFigure(models.Model):
    """Holds what a run deleted of one thing, and what it kept though the rule lets it go (`kept_for`:
    {reason: how many}). `what` is a stable word; `setting_key` is empty where it is of no setting. Nothing
    deleted or kept: no row."""

    run = models.ForeignKey(
        RetentionRun, models.CASCADE, related_name="figures", verbose_name=_("retention run")
    )
    what = models.CharField(_("what"), max_length=20)
    setting_key = models.CharField(_("setting key"), max_length=200, blank=True, default="")
    rule = models.CharField(_("rule"), max_length=10, blank=True, default="")
    before = models.DateTimeField(_("older than"), null=True)
    deleted = models.BigIntegerField(_("deleted"), default=0)
    kept_for = models.JSONField(_("kept, by reason"), default=dict)
    since = models.DateTimeField(_("since"), default=timezone.now)
    until = models.DateTimeField(_("until"), default=timezone.now)

    class Meta:
        verbose_name = _("retention result")
        verbose_name_plural = _("retention results")
        ordering = ("id",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["run", "what", "setting_key", "rule"], name="retention_figure_once"
            )
        ]
        indexes = [models.Index(fields=["setting_key", "-id"], name="retention_of_setting")]

    def __str__(self) -> str:
        return f"{self.what} {self.setting_key}: {self.deleted}"


PART_FAILED = ReasonKind("retention_run.part_failed", "%(part)s: %(type)s: %(text)s")


class ArchiveErasure(models.Model):
    """Holds what is still to be taken out of the archive; it holds what is to be nowhere, so it goes when
    that is done. `cases`: [[setting key, message key]], of messages that the database knows."""

    digest = models.CharField(max_length=24)
    name = models.CharField(max_length=300, blank=True)
    setting_key = models.CharField(max_length=200, blank=True)
    cases = models.JSONField(default=list)
    asked_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("archive erasure")
        verbose_name_plural = _("archive erasures")
        default_permissions = ()
        permissions = [("erase_personal", _("Can erase personal data"))]
        constraints = [
            models.UniqueConstraint(fields=["digest", "name", "setting_key"], name="archive_erasure_once")
        ]

    def __str__(self) -> str:
        return f"{self.digest} {self.asked_at:%Y-%m-%d %H:%M}"
