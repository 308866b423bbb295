"""Describes what people know of dead letters: notes, faults that are known, and who is at work on them.

All of it belongs to a case (`message_key`), to a fingerprint, or to a setting whole; so it outlives replays.
"""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Annotation(models.Model):
    """Holds what it is about: `setting_key` and, of it, the case `message_key` or the group `fingerprint`;
    both empty: all of the setting."""

    setting_key = models.CharField(_("setting key"), max_length=300)
    fingerprint = models.CharField(_("fingerprint"), max_length=64, blank=True)
    message_key = models.CharField(_("message key"), max_length=255, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    at = models.DateTimeField(_("since"), default=timezone.now)

    class Meta:
        abstract = True

    @property
    def named(self) -> dict[str, str]:
        """The columns that say what it is about."""
        return {
            "setting_key": self.setting_key,
            "fingerprint": self.fingerprint,
            "message_key": self.message_key,
        }

    @property
    def target(self) -> str:
        """Returns what it is about, as the audit names it."""
        part = f" case:{self.message_key}" if self.message_key else ""
        if self.fingerprint and not part:
            part = f" fingerprint:{self.fingerprint}"
        return f"setting:{self.setting_key}{part}"


class Note(Annotation):
    text = models.TextField(_("note"))

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["setting_key", "message_key"], name="notes_of_case"),
            models.Index(fields=["setting_key", "fingerprint"], name="notes_of_fingerprint"),
        ]

    def __str__(self) -> str:
        return f"{self.setting_key}: {self.text[:40]}"


class KnownFault(Annotation):
    """ "Known, being worked on": muted in lists and left out of what is replayed until `until` (None: until
    somebody ends it)."""

    ticket = models.CharField(_("ticket"), max_length=200, blank=True)
    text = models.TextField(_("notes"), blank=True)
    until = models.DateTimeField(_("until"), null=True)
    ended_at = models.DateTimeField(_("ended"), null=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("ended by")
    )

    class Meta:
        verbose_name = _("known error")
        verbose_name_plural = _("known errors")
        ordering = ("-id",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key", "fingerprint", "message_key"],
                condition=models.Q(ended_at=None),
                name="one_known_fault_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.setting_key}: {self.ticket or self.text[:40]}"


class Taking(Annotation):
    """Somebody works on it. Handing over ends one and begins another with the same words."""

    trip = models.BigIntegerField(_("breaker trip"), null=True)
    text = models.TextField(_("note"), blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True)
    handed_to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("reassigned to"),
    )

    class Meta:
        verbose_name = _("assignment")
        verbose_name_plural = _("assignments")
        ordering = ("-id",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key", "fingerprint", "message_key"],
                condition=models.Q(ended_at=None, trip=None),
                name="one_person_at_a_time",
            ),
            models.UniqueConstraint(
                fields=["trip"],
                condition=models.Q(ended_at=None, trip__isnull=False),
                name="one_person_per_trip",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.by_name}: {self.setting_key}"


def active_faults(now: datetime) -> QuerySet[KnownFault]:
    """A fault ends by a person or by its own date, whatever comes first. The date needs nobody: every
    question compares it with the time, so a fault is over at that instant though its row still says that
    nobody ended it."""
    return KnownFault.objects.filter(Q(until=None) | Q(until__gt=now), ended_at=None)


def fault_of_row(now: datetime) -> QuerySet[KnownFault]:
    """Returns a subquery for dead letters. One without a key or a fingerprint is muted with its whole setting
    only."""
    case = Q(message_key=OuterRef("message_key")) & ~Q(message_key="")
    group = Q(fingerprint=OuterRef("fingerprint")) & ~Q(fingerprint="")
    everything = Q(message_key="", fingerprint="")
    return active_faults(now).filter(case | group | everything, setting_key=OuterRef("setting_key"))


def open_takings() -> QuerySet[Taking]:
    return Taking.objects.filter(ended_at=None)
