"""Rows that keep new starts from the whole installation or from one pool: a freeze by a person, a maintenance
window that recurs; and what either of them held."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.crontab import check_crontab, check_time_zone
from agents.timetable import Timetable, leaves_a_gap

LONGEST_MINUTES = 7 * 24 * 60
INSTALLATION = "*"


def scope_of(pool: int | None) -> str:
    """Returns the text key of the installation, or of the pool with this id."""
    return INSTALLATION if pool is None else f"p{pool}"


class Freeze(models.Model):
    """Nothing new starts while it is neither lifted nor past its end. Without a pool it holds the whole
    installation. One that has ended by itself is lifted when the next one of its scope begins; nobody has to
    do it before."""

    scope = models.CharField(max_length=24, editable=False)
    pool = models.ForeignKey(
        "agents.Pool", models.CASCADE, null=True, related_name="freezes", verbose_name=_("pool")
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    # The person's name, or the account of the system at the command line.
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    reason = models.TextField(_("reason"), blank=True, default="")
    at = models.DateTimeField(_("since"), default=timezone.now)
    ends_at = models.DateTimeField(_("until"), null=True)
    lifted_at = models.DateTimeField(_("ended"), null=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("ended by")
    )

    class Meta:
        verbose_name = _("freeze")
        verbose_name_plural = _("freezes")
        ordering = ("-at", "-id")
        default_permissions = ("view",)
        permissions = [("can_freeze", _("Can freeze and unfreeze starts"))]
        indexes = [models.Index(fields=["lifted_at", "ends_at"], name="freeze_by_end")]
        constraints = [
            models.UniqueConstraint(
                fields=["scope"], condition=models.Q(lifted_at=None), name="one_open_freeze_per_scope"
            )
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.at:%Y-%m-%d %H:%M}"


class MaintenanceWindow(models.Model):
    """Acts as a freeze from each instant of its crontab on, for so many minutes of elapsed time.
    `lifted_at`: a person ended the windows that had begun by then; the next one comes as usual."""

    pool = models.ForeignKey(
        "agents.Pool",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="maintenance_windows",
        verbose_name=_("pool"),
        help_text=_("If empty, the window applies to the whole installation."),
    )
    crontab = models.CharField(
        _("crontab"),
        max_length=200,
        help_text=_(
            "Start of each window: minute, hour, day of month, month, day of week. “30 2 * * 1-5” means "
            "02:30 on weekdays."
        ),
    )
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    minutes = models.PositiveIntegerField(
        _("duration, minutes"),
        validators=[MinValueValidator(1), MaxValueValidator(LONGEST_MINUTES)],
        help_text=_("Counted in actual minutes, even on days when the clocks change."),
    )
    reason = models.CharField(
        _("reason"), max_length=200, help_text=_("Shown to everyone while the window is open.")
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    lifted_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("maintenance window")
        verbose_name_plural = _("maintenance windows")
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.crontab} {self.time_zone}, {self.minutes} min"

    def clean(self) -> None:
        problems: dict[str, Any] = {}
        self.crontab = " ".join(self.crontab.split())
        for name, check in {"crontab": check_crontab, "time_zone": check_time_zone}.items():
            try:
                if getattr(self, name):
                    check(getattr(self, name))
            except ValidationError as error:
                problems[name] = error
        if not problems and self.minutes and not self._closes():
            problems["minutes"] = ValidationError(
                _(
                    "The next window begins before this one is over, so nothing would ever start. "
                    "Shorten the window, or let it begin less often."
                ),
                code="never_closes",
            )
        if problems:
            raise ValidationError(problems)

    def _closes(self) -> bool:
        timetable = Timetable(crontab=self.crontab, time_zone=self.time_zone)
        return leaves_a_gap(timetable, timedelta(minutes=self.minutes), timezone.now())


class HeldKind(models.TextChoices):
    """Says what was held. PERSON: somebody asked for it and was refused."""

    SCHEDULE = "schedule", _("scheduled run of a setting")
    GROUP = "group", _("scheduled run of a group")
    MEMBER = "member", _("next member of a group run")
    PAUSE = "pause", _("end of a pause")
    PERSON = "person", _("requested by a user")


class HeldStart(models.Model):
    """Starts of one thing that one freeze, or one window of a maintenance, held: the first and the last, and
    how many. `since`: when that freeze or window began. `target`: `kind:id`, as the audit names it."""

    freeze = models.ForeignKey(Freeze, models.CASCADE, null=True, related_name="held")
    maintenance = models.ForeignKey(MaintenanceWindow, models.CASCADE, null=True, related_name="held")
    since = models.DateTimeField(_("since"))
    kind = models.CharField(_("what"), max_length=10, choices=HeldKind.choices)
    target = models.CharField(_("target"), max_length=300)
    action = models.CharField(_("action"), max_length=40, blank=True, default="")
    by_name = models.CharField(_("by"), max_length=150, blank=True, default="")
    count = models.PositiveIntegerField(_("count"), default=1)
    first_at = models.DateTimeField(_("first"))
    last_at = models.DateTimeField(_("last"))

    class Meta:
        verbose_name = _("held start")
        verbose_name_plural = _("held starts")
        ordering = ("-last_at", "-id")
        default_permissions = ()
        indexes = [models.Index(fields=["last_at"], name="held_by_age")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(freeze__isnull=True) ^ models.Q(maintenance__isnull=True),
                name="held_by_one",
            ),
            models.UniqueConstraint(
                fields=["freeze", "kind", "target", "action", "by_name"],
                condition=models.Q(freeze__isnull=False),
                name="held_once_per_freeze",
            ),
            models.UniqueConstraint(
                fields=["maintenance", "since", "kind", "target", "action", "by_name"],
                condition=models.Q(maintenance__isnull=False),
                name="held_once_per_window",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"
