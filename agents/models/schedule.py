"""Describes when something DELAYED is started: a crontab in a time zone, or an interval. Each due instant
becomes one window. And how soon messages are to be handled."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.crontab import check_crontab, check_time_zone
from console.reasons import ReasonField


class Missed(models.TextChoices):
    """Holds what becomes of windows that passed while nobody could start them."""

    SKIP = "skip", _("skip")
    ONCE = "once", _("run once")


class Schedule(models.Model):
    """Belongs to one setting or to one group. Exactly one of `crontab` and `every_seconds` is set."""

    setting = models.OneToOneField("agents.LaunchSetting", models.CASCADE, null=True, related_name="schedule")
    group = models.OneToOneField("agents.ScheduledGroup", models.CASCADE, null=True, related_name="schedule")
    crontab = models.CharField(_("crontab"), max_length=200, blank=True, default="")
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    every_seconds = models.PositiveIntegerField(
        _("interval, s"),
        null=True,
        blank=True,
        validators=[MinValueValidator(5), MaxValueValidator(31_622_400)],
    )
    missed = models.CharField(_("missed runs"), max_length=4, choices=Missed.choices, default=Missed.SKIP)
    # Windows up to here are decided; set anew when the owner is enabled or the schedule is changed.
    decided_up_to = models.DateTimeField(default=timezone.now, editable=False)
    # The newest window that a freeze held and that runs once when it is over (`missed`); None: none is owed.
    held_due_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(setting__isnull=False, group__isnull=True)
                | models.Q(setting__isnull=True, group__isnull=False),
                name="schedule_of_one_owner",
            ),
            models.CheckConstraint(
                condition=models.Q(every_seconds__isnull=True) ^ models.Q(crontab=""),
                name="crontab_or_interval",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.crontab} {self.time_zone}" if self.crontab else f"{self.every_seconds} s"

    def clean(self) -> None:
        problems: dict[str, Any] = {}
        self.crontab = " ".join(self.crontab.split())
        checks = {"crontab": check_crontab, "time_zone": check_time_zone}
        for name, check in checks.items():
            try:
                if getattr(self, name):
                    check(getattr(self, name))
            except ValidationError as error:
                problems[name] = error
        if bool(self.crontab) == (self.every_seconds is not None):
            problems["crontab"] = _("Enter either a crontab or an interval.")
        if refused := self._owner_problem():
            problems["__all__"] = refused
        if problems:
            raise ValidationError(problems)

    def _owner_problem(self) -> Any:
        if self.setting is None:
            return None
        if self.setting.timing != Timing.DELAYED:
            return _("A continuous setting cannot have a schedule. Set its timing to “scheduled” first.")
        if self.setting.pk and hasattr(self.setting, "membership"):
            return _("A group member cannot have its own schedule: it runs on the group's schedule.")
        return None


class WindowResult(models.TextChoices):
    STARTED = "started", _("started")
    SKIPPED = "skipped", _("skipped")
    HELD = "held", _("held by a freeze")


class Window(models.Model):
    """One due instant of a schedule, decided once: the unique key makes a doubled tick harmless."""

    schedule = models.ForeignKey(Schedule, models.CASCADE, related_name="windows")
    due_at = models.DateTimeField(_("scheduled time"))
    result = models.CharField(_("result"), max_length=8, choices=WindowResult.choices)
    reason = ReasonField(_("reason"))
    activation = models.OneToOneField("agents.Activation", models.SET_NULL, null=True, related_name="window")
    group_activation = models.OneToOneField(
        "agents.GroupActivation", models.SET_NULL, null=True, related_name="window"
    )
    decided_at = models.DateTimeField(_("decided"), default=timezone.now)

    class Meta:
        verbose_name = _("scheduled time")
        verbose_name_plural = _("scheduled times")
        ordering = ("-due_at",)
        constraints = [models.UniqueConstraint(fields=["schedule", "due_at"], name="window_decided_once")]

    def __str__(self) -> str:
        return f"{self.due_at:%Y-%m-%d %H:%M:%S}"


class Timing(models.TextChoices):
    """ASAP: from enabling to disabling. DELAYED: started by a schedule, drains what has gathered, ends."""

    ASAP = "ASAP", _("continuous")
    DELAYED = "DELAYED", _("scheduled")


class Goal(models.Model):
    """What is promised of the time from the sending of a message to the end of its handling; see
    `metrics.goals`."""

    goal_seconds = models.FloatField(
        _("goal: time limit, s (0 = no goal)"),
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(2_592_000.0)],
    )
    goal_percent = models.FloatField(
        _("goal: share of messages, %"),
        default=99.0,
        validators=[MinValueValidator(1.0), MaxValueValidator(99.999)],
    )

    class Meta:
        abstract = True
