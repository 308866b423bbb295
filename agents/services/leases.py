"""One of several processes does a thing at a time; when it dies, the lease runs out."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone

from agents.models import ProcessBeat


@contextmanager
def lease(name: str, length: timedelta) -> Iterator[bool]:
    """Yields whether it was free. `at` of its row is the instant at which it runs out."""
    row = ProcessBeat.objects.get_or_create(name=f"lease:{name}")[0]
    now = timezone.now()
    mine = now + length
    taken = ProcessBeat.objects.filter(pk=row.pk, at__lte=now).update(at=mine) == 1
    try:
        yield taken
    finally:
        if taken:
            ProcessBeat.objects.filter(pk=row.pk, at=mine).update(at=timezone.now())


def once_per(name: str, length: timedelta, now: datetime) -> bool:
    """True for one caller of all processes in each span of that length."""
    row = ProcessBeat.objects.get_or_create(name=f"once:{name}", defaults={"at": now - length})[0]
    return ProcessBeat.objects.filter(pk=row.pk, at__lte=now - length).update(at=now) == 1
