"""Fetching the whole of a letter of which the index keeps only the head."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.jobs.job import Job


class FetchState(models.TextChoices):
    ASKED = "asked", _("asked for")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")
    DROPPED = "dropped", _("dropped")


OPEN_FETCHES = (FetchState.ASKED, FetchState.RUNNING)


class WholeFetch(Job):
    """One look through a queue for one letter. `letters` were in the queue when it was asked for, `seen` are
    read so far. A done one holds the whole AMQP message in `encoded` until it is dropped, a day later."""

    letter = models.ForeignKey(
        "dlq.DeadLetter", models.CASCADE, related_name="fetches", verbose_name=_("dead letter")
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    at = models.DateTimeField(_("at"), default=timezone.now)
    state = models.CharField(_("state"), max_length=10, choices=FetchState.choices, default=FetchState.ASKED)
    ended_at = models.DateTimeField(_("ended"), null=True)
    tries = models.PositiveSmallIntegerField(_("tries"), default=0)
    letters = models.BigIntegerField(_("letters in the queue"), default=0)
    seen = models.BigIntegerField(_("letters read"), default=0)
    encoded = models.BinaryField(null=True)

    class Meta:
        verbose_name = _("fetch of a whole letter")
        verbose_name_plural = _("fetches of whole letters")
        ordering = ("-id",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["letter"],
                condition=models.Q(state__in=["asked", "running"]),
                name="one_open_fetch_per_letter",
            )
        ]
        indexes = [models.Index(fields=["state", "at"], name="fetches_by_state")]

    def __str__(self) -> str:
        return f"#{self.letter_id}: {self.state}"
