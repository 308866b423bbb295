"""Heartbeats of our own processes: beat (through a worker) and feed."""

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _


class ProcessHeartbeat(models.Model):
    """A row says one thing: that this process was alive `at` an instant."""

    process = models.CharField(_("process"), max_length=60, unique=True)
    at = models.DateTimeField(_("last heartbeat"))

    class Meta:
        verbose_name = _("process heartbeat")
        verbose_name_plural = _("process heartbeats")
        ordering = ("process",)
        default_permissions = ()

    def __str__(self) -> str:
        return self.process


def record_heartbeat(process: str, now: datetime) -> None:
    rows = ProcessHeartbeat.objects.filter(process=process)
    if not rows.update(at=now):
        rows.get_or_create(process=process, defaults={"at": now})


def last_heartbeat(process: str) -> datetime | None:
    """None where it never gave one."""
    return ProcessHeartbeat.objects.filter(process=process).values_list("at", flat=True).first()


def seconds_since(process: str, now: datetime) -> float | None:
    """Since its last heartbeat; None where it never gave one."""
    at = last_heartbeat(process)
    return None if at is None else (now - at).total_seconds()
