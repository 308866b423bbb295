"""Silence of a server counts only while we could have heard it: the MA's own absence must not move any run."""

from datetime import datetime, timedelta

from django.conf import settings

from agents.models import ProcessBeat, Server
from agents.models.server import lost_before
from agents.services.signs import sign_of_life

SIGN = "hearing"


def note_hearing_again(server: Server, now: datetime) -> None:
    """To be called for a server that was silent, before its heartbeat is stored. When nobody else was heard either,
    it was us who were away (or just begin): the patience with all others starts anew."""
    if not Server.objects.filter(last_seen_at__gt=lost_before(now)).exclude(pk=server.pk).exists():
        sign_of_life(SIGN, now)


def silence_counts(now: datetime) -> bool:
    """Whether a server that is silent now was given the time to be heard."""
    since = ProcessBeat.objects.filter(name=SIGN).values_list("at", flat=True).first()
    return since is None or now - since >= timedelta(seconds=settings.MA_LOST_AFTER_SECONDS)
