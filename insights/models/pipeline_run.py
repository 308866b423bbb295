"""One run of the data pipeline: what was asked, who works on it, how far it is, and how it ended."""

from datetime import timedelta
from typing import ClassVar
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.jobs.engine import Job


class PipelineState(models.TextChoices):
    """`partial`: some of its stages failed, what the others found is there. `dead`: whoever worked on it is
    gone."""

    WAITING = "waiting", pgettext_lazy("a run of the pipeline", "waiting")
    RUNNING = "running", pgettext_lazy("a run of the pipeline", "running")
    DONE = "done", pgettext_lazy("a run of the pipeline", "finished")
    PARTIAL = "partial", pgettext_lazy("a run of the pipeline", "partly failed")
    FAILED = "failed", pgettext_lazy("a run of the pipeline", "failed")
    CANCELLED = "cancelled", pgettext_lazy("a run of the pipeline", "cancelled")
    DEAD = "dead", pgettext_lazy("a run of the pipeline", "aborted")


OPEN_RUNS = (PipelineState.WAITING, PipelineState.RUNNING)
# What these found is on the pages.
LOADED_RUNS = (PipelineState.DONE, PipelineState.PARTIAL)


class PipelineTrigger(models.TextChoices):
    NIGHTLY = "nightly", pgettext_lazy("why the pipeline runs", "nightly")
    PAGE = "page", pgettext_lazy("why the pipeline runs", "manually")
    TERMINAL = "terminal", pgettext_lazy("why the pipeline runs", "from the command line")


class PipelineRun(Job):
    """A run of the pipeline; at most one is `open`. A runner process takes it (`holder`) by a conditional
    UPDATE, shows itself by `heartbeat_at`, and ends it in the transaction that loads what it found. A process
    is known by host, pid and the time of its start since the boot of its host (`console.jobs.detached`).
    `stages` are rows of the last report: {stage, state, done, total, rows, seconds, error}."""

    # A runner that is there and silent for so long hangs. It shows itself every second, save while SQLite is
    # busy.
    lease: ClassVar[timedelta] = timedelta(minutes=5)

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    state = models.CharField(
        _("state"), max_length=10, choices=PipelineState.choices, default=PipelineState.WAITING
    )
    open = models.BooleanField(null=True, default=True, editable=False)
    trigger = models.CharField(_("started"), max_length=10, choices=PipelineTrigger.choices)
    asked_at = models.DateTimeField(_("requested"), default=timezone.now)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    jobs = models.JSONField(_("jobs"), default=list)
    since = models.DateTimeField(_("data from"), null=True)
    until = models.DateTimeField(_("data until"), null=True)
    master = models.CharField(_("Spark master"), max_length=300)
    spawned_at = models.DateTimeField(null=True, editable=False)
    started_at = models.DateTimeField(_("started"), null=True)
    ended_at = models.DateTimeField(_("ended"), null=True)
    host = models.CharField(_("host"), max_length=255, blank=True)
    pid = models.IntegerField(_("process id"), null=True)
    process_started = models.CharField(max_length=80, blank=True, editable=False)
    heartbeat_at = models.DateTimeField(_("last heartbeat"), null=True)
    cancel_asked_at = models.DateTimeField(_("cancellation requested"), null=True)
    cancel_asked_by = models.CharField(_("cancelled by"), max_length=150, blank=True)
    stages = models.JSONField(_("stages"), default=list)
    window_from = models.DateTimeField(_("failures from"), null=True)
    window_until = models.DateTimeField(_("data until"), null=True)
    rows_loaded = models.BigIntegerField(_("result rows"), default=0)
    memory_peak_bytes = models.BigIntegerField(_("peak memory, bytes"), default=0)
    versions = models.JSONField(_("versions"), default=dict)
    folder = models.CharField(_("folder"), max_length=500, blank=True)

    class Meta:
        verbose_name = _("pipeline run")
        verbose_name_plural = _("pipeline runs")
        ordering = ("-asked_at", "-id")
        default_permissions = ("view",)
        permissions = [
            ("can_run_pipeline", _("Can run the pipeline")),
            ("can_cancel_pipeline", _("Can cancel a pipeline run")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["open"], condition=models.Q(open=True), name="one_pipeline_at_a_time"
            )
        ]
        indexes = [models.Index(fields=["-asked_at", "-id"], name="pipeline_runs_by_time")]

    def __str__(self) -> str:
        return f"{self.asked_at:%Y-%m-%d %H:%M} {self.state}"

    @property
    def is_open(self) -> bool:
        return bool(self.open)

    @property
    def percent(self) -> int:
        """Returns it by its stages; one that reports how far it is (`share`, never less than before) counts
        in part. An open one is never at 100."""
        if not self.stages:
            return 0
        parts = 0.0
        for stage in self.stages:
            if stage.get("state") in ("done", "failed", "skipped"):
                parts += 1
            else:
                parts += stage.get("share", 0.0)
        percent = int(100 * parts / len(self.stages))
        return min(percent, 99) if self.open else percent
