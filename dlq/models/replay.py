"""Giving dead letters back: a job, its slices (one broker move each), and one item per letter."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting
from dlq.models.letter import DeadLetter


class Scope(models.TextChoices):
    ONE = "one", _("one letter")
    SELECTION = "selection", _("selected letters")
    ALL = "all", _("all letters of the setting")


class JobState(models.TextChoices):
    PLANNED = "planned", _("planned")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


OPEN_JOBS = (JobState.PLANNED, JobState.RUNNING)


class ReplayJob(models.Model):
    """`letters_up_to` freezes the scope `all`: letters that die later do not belong to it. `planned_at` is set when
    every slice is written down: nothing moves before. Whoever holds the lease works on it; one that dies lets the
    lease run out. The lease saves work, it is not what keeps letters safe: every step may run twice."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    setting = models.ForeignKey(
        LaunchSetting, models.SET_NULL, null=True, related_name="replays", verbose_name=_("launch setting")
    )
    setting_key = models.CharField(_("setting key"), max_length=61)
    scope = models.CharField(_("scope"), max_length=10, choices=Scope.choices)
    reason = models.TextField(_("reason"), blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by"))
    state = models.CharField(_("state"), max_length=10, choices=JobState.choices, default=JobState.PLANNED)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    total = models.PositiveIntegerField(_("letters"), default=0)
    problem = models.TextField(_("problem"), blank=True)
    letters_up_to = models.BigIntegerField(null=True, editable=False)
    planned_at = models.DateTimeField(_("planned"), null=True)
    lease_until = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("replay")
        verbose_name_plural = _("replays")
        ordering = ("-created_at", "-id")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key"],
                condition=models.Q(scope="all", state__in=["planned", "running"]),
                name="one_replay_of_all_per_setting",
            )
        ]
        indexes = [
            models.Index(fields=["setting_key", "-created_at"], name="replays_of_setting"),
            models.Index(
                fields=["created_at"], condition=models.Q(state__in=["planned", "running"]), name="open_replays"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class SliceState(models.TextChoices):
    PLANNED = "planned", _("planned")
    MOVED = "moved", _("moved")
    CHECKED = "checked", _("checked")


class ReplaySlice(models.Model):
    """`moved` is what the broker said, for people only: what happened is what the walk finds gone."""

    job = models.ForeignKey(ReplayJob, models.CASCADE, related_name="slices", verbose_name=_("replay"))
    number = models.PositiveIntegerField(_("number"))
    first_letter_id = models.BigIntegerField(_("first letter"))
    last_letter_id = models.BigIntegerField(_("last letter"))
    state = models.CharField(_("state"), max_length=10, choices=SliceState.choices, default=SliceState.PLANNED)
    size = models.PositiveIntegerField(_("letters"))
    tries = models.PositiveSmallIntegerField(_("tries"), default=0)
    moved = models.IntegerField(_("moved, says the broker"), null=True)
    planned_at = models.DateTimeField(_("planned"), default=timezone.now)
    moved_at = models.DateTimeField(_("moved"), null=True)
    checked_at = models.DateTimeField(_("checked"), null=True)

    class Meta:
        verbose_name = _("replay slice")
        verbose_name_plural = _("replay slices")
        ordering = ("job", "number")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="slice_once_per_job")]

    def __str__(self) -> str:
        return f"{self.job_id} / {self.number}"


class ItemState(models.TextChoices):
    PLANNED = "planned", _("planned")
    GIVEN_BACK = "given_back", _("given back")
    NOT_FOUND = "not_found", _("was not there any more")
    FAILED_TO_MOVE = "failed_to_move", _("could not be moved")


class Outcome(models.TextChoices):
    """What became of a letter after it was given back."""

    WAITING = "", _("waiting")
    HANDLED = "handled", _("handled")
    FAILED_AGAIN = "failed_again", _("failed again")
    DEAD_AGAIN = "dead_again", _("dead again")


class ReplayItem(models.Model):
    """`died_as` is the letter that the message became when it died again."""

    job = models.ForeignKey(ReplayJob, models.CASCADE, related_name="items", verbose_name=_("replay"))
    letter = models.ForeignKey(DeadLetter, models.CASCADE, related_name="replays", verbose_name=_("dead letter"))
    slice = models.ForeignKey(ReplaySlice, models.CASCADE, null=True, related_name="items", verbose_name=_("slice"))
    state = models.CharField(_("state"), max_length=15, choices=ItemState.choices, default=ItemState.PLANNED)
    state_at = models.DateTimeField(_("since"), default=timezone.now)
    outcome = models.CharField(
        _("outcome"), max_length=15, choices=Outcome.choices, default=Outcome.WAITING, blank=True
    )
    outcome_at = models.DateTimeField(_("outcome known"), null=True)
    died_as = models.OneToOneField(
        DeadLetter, models.SET_NULL, null=True, related_name="returned_from", verbose_name=_("died again as")
    )

    class Meta:
        verbose_name = _("replay item")
        verbose_name_plural = _("replay items")
        ordering = ("id",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["job", "letter"], name="item_once_per_job"),
            # A death ends once: what was given back and dies again is another letter.
            models.UniqueConstraint(
                fields=["letter"],
                condition=models.Q(state__in=["planned", "given_back"]),
                name="one_outstanding_replay_per_letter",
            ),
        ]
        indexes = [models.Index(fields=["job", "state", "outcome"], name="items_by_outcome")]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.letter_id}"
