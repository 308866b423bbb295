"""Finished replay jobs and the audit, kept for a time of their own; and which activations letters still tell
of.

The audit is only ever added to: nothing here or elsewhere changes an entry, and by its age alone, where the
site has chosen an age, `forget_old_audit` deletes it. There is no other way.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from console.audit.models import AuditEntry
from console.processes import last_heartbeat
from contract.names import UNKNOWN, dead_letter_queue
from dlq.models import (
    DeadLetter,
    ItemState,
    KnownFault,
    LetterEdit,
    LetterState,
    Note,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    Taking,
)
from dlq.models.letter import BIN_QUEUE
from dlq.models.replay import DELIVERING, UNFINISHED_JOBS
from failures.retention.aging import before, delete_all
from failures.retention.chunks import Chunks
from failures.retention.keepers import Picked, safe_before

REPLAYS, AUDIT = "replays", "audit"
JOBS_AT_ONCE = 100


def referred_activations(setting_key: str, activations: Collection[UUID]) -> Collection[UUID]:
    """Of which letters that are dead now tell."""
    queues = [dead_letter_queue(setting_key), dead_letter_queue(UNKNOWN), BIN_QUEUE]
    dead = DeadLetter.objects.filter(
        queue__in=queues, state=LetterState.DEAD, activation_uuid__in=activations
    )
    found = dead.order_by().values_list("activation_uuid", flat=True).distinct()
    return {pk for pk in found if pk is not None}


def referred_fingerprints(fingerprints: Collection[str]) -> Collection[str]:
    """Of which letters that are dead now, or what people wrote beside letters, tell."""
    dead = DeadLetter.objects.filter(state=LetterState.DEAD, fingerprint__in=fingerprints)
    found = set(dead.order_by().values_list("fingerprint", flat=True).distinct())
    for model in (Note, KnownFault, Taking):
        remarks = model._default_manager.filter(fingerprint__in=fingerprints).order_by()
        found.update(remarks.values_list("fingerprint", flat=True).distinct())
    return found


def forget_old_replays(now: datetime, chunks: Chunks) -> None:
    """Job by job: its items with their edits, a chunk at a time, its slices, then the job. Killed in between,
    the job is still there and old. Raises TurnOver."""
    if (older := before(now, settings.MA_KEEP_REPLAYS_DAYS)) is None:
        return
    older = min(older, safe_before("replays", now) or older)
    while jobs := list(_over(older).values_list("pk", flat=True)[:JOBS_AT_ONCE]):
        for pk in jobs:
            _forget(pk, chunks)


def _forget(pk: UUID, chunks: Chunks) -> None:
    delete_all("replay_items", partial(_keys, ReplayItem.objects.filter(job=pk)), _delete_items, chunks)
    delete_all("replay_slices", partial(_keys, ReplaySlice.objects.filter(job=pk)), _delete_slices, chunks)
    delete_all(REPLAYS, partial(_keys, ReplayJob.objects.filter(pk=pk)), _delete_jobs, chunks)


def forget_old_audit(now: datetime, chunks: Chunks) -> None:
    """In the order of the numbers, which grow with time; they are never given again. Raises TurnOver."""
    if (older := before(now, settings.MA_KEEP_AUDIT_DAYS)) is None:
        return
    delete_all(AUDIT, lambda n: _oldest_entries(older, n), _delete_entries, chunks)


def _over(older: datetime) -> QuerySet[ReplayJob]:
    """Finished before, and of which nothing is awaited: a letter that left still waits for what becomes of
    it, or for the end of the hour after which that is unknown."""
    waiting = ReplayItem.objects.filter(
        Q(released_as="", state=ItemState.GIVEN_BACK) | Q(released_as=ItemState.UNCONFIRMED),
        job=OuterRef("pk"),
        outcome=Outcome.WAITING,
    )
    finished = ReplayJob.objects.filter(finished_at__lt=older).exclude(state__in=UNFINISHED_JOBS)
    return finished.filter(~Exists(waiting) | ~Q(action__in=DELIVERING)).order_by("finished_at", "pk")


def _oldest_entries(older: datetime, n: int) -> list[int]:
    """The first ones, as long as they are old: one of a clock that ran ahead holds those behind it for a
    while."""
    first = AuditEntry.objects.order_by("pk").values_list("pk", "at")[:n]
    keys = []
    for pk, at in first:
        if at >= older:
            break
        keys.append(pk)
    return keys


def _keys(
    rows: QuerySet[ReplayItem] | QuerySet[ReplaySlice] | QuerySet[ReplayJob], n: int
) -> list[int | UUID]:
    return list(rows.order_by().values_list("pk", flat=True)[:n])


def _delete_items(keys: Sequence[int]) -> int:
    LetterEdit.objects.filter(item__in=keys).delete()
    items = ReplayItem.objects.filter(pk__in=keys)
    return items._raw_delete(items.db)


def _delete_slices(keys: Sequence[int]) -> int:
    slices = ReplaySlice.objects.filter(pk__in=keys)
    return slices._raw_delete(slices.db)


def _delete_jobs(keys: Sequence[UUID]) -> int:
    jobs = ReplayJob.objects.filter(pk__in=keys)
    return jobs._raw_delete(jobs.db)


def _delete_entries(keys: Sequence[int]) -> int:
    """Past the guard of the model, which refuses every delete."""
    entries = AuditEntry.objects.filter(pk__in=keys)
    return entries._raw_delete(entries.db)


# -- protocols that retention would delete and dead letters still need ---------------------------------------


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
