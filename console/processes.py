"""Describes what processes of this site know of each other through rows: heartbeats, and locks with names."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone
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
    """Returns None where it never gave one."""
    return ProcessHeartbeat.objects.filter(process=process).values_list("at", flat=True).first()


def seconds_since(process: str, now: datetime) -> float | None:
    """Since its last heartbeat, which may be later than `now`: that is 0. None where it never gave one."""
    at = last_heartbeat(process)
    return None if at is None else max(0.0, (now - at).total_seconds())


# -- named locks: one of several processes does a thing at a time, or once in a while ------------------------


class NamedLock(models.Model):
    """Free from `held_until` on: also the lock of a process that died runs out."""

    name = models.CharField(_("name"), max_length=60, unique=True)
    held_until = models.DateTimeField(_("held until"))

    class Meta:
        verbose_name = _("named lock")
        verbose_name_plural = _("named locks")
        ordering = ("name",)
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


@contextmanager
def lock(name: str, length: timedelta) -> Iterator[bool]:
    """Yields whether it was free. It is held until the end of the block, and for that length at most."""
    now = timezone.now()
    until = now + length
    taken = _take(name, now, until)
    try:
        yield taken
    finally:
        if taken:
            NamedLock.objects.filter(name=name, held_until=until).update(held_until=timezone.now())


def once_per(name: str, length: timedelta, now: datetime) -> bool:
    """True for one caller of all processes in each span of that length: a lock that nobody gives back. It is
    none of those of `lock`, whatever its name."""
    return _take(f"once:{name}", now, now + length)


def _take(name: str, now: datetime, until: datetime) -> bool:
    NamedLock.objects.get_or_create(name=name, defaults={"held_until": now})
    return NamedLock.objects.filter(name=name, held_until__lte=now).update(held_until=until) == 1
