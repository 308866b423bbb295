"""Protocols that retention would delete and dead letters still need."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from console.processes import last_heartbeat
from dlq.models import DeadLetter, LetterState
from failures.retention.keepers import Picked

# The feed gives its heartbeat when it has stored what there was; a letter may be on its way for so long.
ON_ITS_WAY = timedelta(minutes=5)


def of_dead_letters(picked: Sequence[Picked], now: datetime) -> Collection[UUID]:
    """Where the site has chosen so: those of messages that are still dead letters, until they are given back,
    handled or discarded."""
    if not settings.MA_RETENTION_KEEP_DEAD:
        return ()
    keys = {each.message_key for each in picked if each.message_key}
    dead = DeadLetter.objects.filter(state=LetterState.DEAD, message_key__among=keys)
    cases = set(dead.order_by().values_list("setting_key", "message_key"))
    return {each.id for each in picked if each.message_key and (each.setting_key, each.message_key) in cases}


def dead_letters_keep_nothing_before(now: datetime) -> datetime | None:
    return None if settings.MA_RETENTION_KEEP_DEAD else now


def indexed_before(now: datetime) -> datetime | None:
    """Letters of before are stored; None while the feed has given no heartbeat."""
    at = last_heartbeat("feed")
    return None if at is None else at - ON_ITS_WAY


def before_the_index(picked: Sequence[Picked], now: datetime) -> Collection[UUID]:
    """The last attempts of messages whose letters the feed cannot have stored yet: its rows take their copy
    of the last failure from them."""
    last = [each for each in picked if each.last_attempt]
    if not last:
        return ()
    indexed = indexed_before(now)
    return {each.id for each in last if indexed is None or each.at > indexed}
