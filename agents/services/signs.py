"""Signs of life of our own processes: beat (through a worker) and feed."""

from datetime import datetime

from agents.models import ProcessBeat


def sign_of_life(name: str, now: datetime) -> None:
    if not ProcessBeat.objects.filter(name=name).update(at=now):
        ProcessBeat.objects.get_or_create(name=name, defaults={"at": now})


def seconds_since(name: str, now: datetime) -> float | None:
    """None when the process never gave a sign."""
    at = ProcessBeat.objects.filter(name=name).values_list("at", flat=True).first()
    return None if at is None else (now - at).total_seconds()
