"""Describes what is kept for a time of its own: rows by primary keys that are picked by an index, a chunk
at a time. Closed alerts, deliveries that waited for an answer, records that were refused or came with
other content, finished replay jobs, the audit.

The audit is only ever added to: nothing here or elsewhere changes an entry, and by its age alone, where
the site has chosen an age, `forget_old_audit` deletes it. There is no other way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Acknowledgement
from alerts.models import Alert, AlertState, Event, Notice, NoticeState
from console.audit.models import AuditEntry
from console.database.storage import raw_delete
from dlq.models import (
    ItemState,
    LetterEdit,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
)
from dlq.models.replay import DELIVERING, UNFINISHED_JOBS
from failures.models import RecordConflict, RefusedRecord
from insights.archive.planning import archived_before
from retention.batches import Chunks, TimeIsUp

Key = TypeVar("Key")


def before(now: datetime, days: int) -> datetime | None:
    """None: kept for ever."""
    return now - timedelta(days=days) if days else None


def delete_all(
    what: str, pick: Callable[[int], Sequence[Any]], delete: Callable[[Sequence[Any]], int], chunks: Chunks
) -> None:
    """`pick(n)` answers up to n keys of what is over; `delete(keys)` deletes them, in the transaction that
    counts them. Ends when there are none. Raises TimeIsUp."""
    while True:
        if chunks.over:
            raise TimeIsUp
        keys = pick(chunks.size)
        if not keys:
            return
        chunks.delete(what, partial(delete, keys))


def some_at_a_time(keys: Sequence[Key], chunks: Chunks) -> Iterator[Sequence[Key]]:
    """Parts of one chunk each. Raises TimeIsUp."""
    rest = list(keys)
    while rest:
        if chunks.over:
            raise TimeIsUp
        some, rest = rest[: chunks.size], rest[chunks.size :]
        yield some


# Closed alerts, deliveries that waited for an answer, and records that were refused or came with other
# content: each kept for a time of its own.


ALERTS, REFUSED, CONFLICTS, ANSWERS = "alerts", "refused", "conflicts", "answers"
EVENTS, TEST_NOTICES = "events", "test_notices"
# So many are counted of each where somebody asks what would go.
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class AgeLimit:
    """`pick(older, n)` answers up to n keys of what is over, `delete(keys, older)` deletes what still is of
    them."""

    what: str
    days: Callable[[], int]
    pick: Callable[[datetime, int], list[Any]]
    delete: Callable[[Sequence[Any], datetime], int]

    def forget(self, now: datetime, chunks: Chunks) -> None:
        """Raises TimeIsUp."""
        if (older := before(now, self.days())) is not None:
            delete_all(self.what, partial(self.pick, older), lambda keys: self.delete(keys, older), chunks)

    def foresee(self, now: datetime) -> "AgePreview | None":
        """Returns what would go, or None where nothing would."""
        if (older := before(now, self.days())) is None:
            return None
        count = len(self.pick(older, COUNTED + 1))
        return AgePreview(self.what, older, min(count, COUNTED), count > COUNTED) if count else None


@dataclass(frozen=True, slots=True)
class AgePreview:
    """`cut`: there are more. `kept`: {reason: how many} stay though their time is over."""

    what: str
    before: datetime
    count: int
    cut: bool
    setting_key: str = ""
    kept: Mapping[str, int] = field(default_factory=dict)


def _closed_alerts(older: datetime) -> QuerySet[Alert]:
    """Leaves out those that a person closed while their cause lasts: without them it would be notified again.
    Nor are those among them with pending notifications."""
    pending = Notice.objects.filter(transition__alert=OuterRef("pk"), state=NoticeState.PENDING)
    rows = Alert.objects.filter(state=AlertState.CLOSED, closed_at__lt=older, held=False)
    return rows.filter(~Exists(pending))


def _pick_alerts(older: datetime, n: int) -> list[int]:
    return list(_closed_alerts(older).order_by("closed_at", "pk").values_list("pk", flat=True)[:n])


def _delete_alerts(keys: Sequence[int], older: datetime) -> int:
    """Deletes transitions and notifications too. Returns how many alerts: one that was opened again stays."""
    still = Alert.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk", flat=True)
    going = list(_closed_alerts(older).filter(pk__in=list(still)).order_by().values_list("pk", flat=True))
    Alert.objects.filter(pk__in=going).delete()
    return len(going)


def _pick_events(older: datetime, n: int) -> list[UUID]:
    pending = Notice.objects.filter(event=OuterRef("pk"), state=NoticeState.PENDING)
    rows = Event.objects.filter(over_at__lt=older).filter(~Exists(pending))
    return list(rows.order_by("over_at", "pk").values_list("pk", flat=True)[:n])


def _delete_events(keys: Sequence[UUID], older: datetime) -> int:
    """Deletes their notifications too. Returns how many events."""
    return Event.objects.filter(pk__in=keys).delete()[1].get(Event._meta.label, 0)


def _pick_test_notices(older: datetime, n: int) -> list[int]:
    rows = Notice.objects.filter(created_at__lt=older, trip=None, transition=None, event=None)
    rows = rows.exclude(state=NoticeState.PENDING).order_by("created_at", "pk")
    return list(rows.values_list("pk", flat=True)[:n])


def _pick_first(model: Any, older: datetime, n: int) -> list[int]:
    """Returns them in the order of the keys, which grow with the receipt, as long as they are old."""
    keys = []
    for pk, received_at in model._default_manager.order_by("pk").values_list("pk", "received_at")[:n]:
        if received_at >= older:
            break
        keys.append(pk)
    return keys


def _pick_ended(older: datetime, n: int) -> list[int]:
    rows = Acknowledgement.objects.filter(ended_at__lt=older).order_by("ended_at", "id")
    return list(rows.values_list("pk", flat=True)[:n])


def _delete_rows(model: Any, keys: Sequence[int], older: datetime) -> int:
    deleted: int = model._default_manager.filter(pk__in=keys).delete()[0]
    return deleted


def _records(what: str, model: Any) -> AgeLimit:
    return AgeLimit(
        what, lambda: settings.MA_KEEP_REFUSED_DAYS, partial(_pick_first, model), partial(_delete_rows, model)
    )


AGE_LIMITS = (
    AgeLimit(ALERTS, lambda: settings.MA_KEEP_ALERTS_DAYS, _pick_alerts, _delete_alerts),
    AgeLimit(EVENTS, lambda: settings.MA_KEEP_ALERTS_DAYS, _pick_events, _delete_events),
    AgeLimit(
        TEST_NOTICES, lambda: settings.MA_KEEP_ALERTS_DAYS, _pick_test_notices, partial(_delete_rows, Notice)
    ),
    _records(REFUSED, RefusedRecord),
    _records(CONFLICTS, RecordConflict),
    AgeLimit(
        ANSWERS, lambda: settings.MA_KEEP_ANSWERS_DAYS, _pick_ended, partial(_delete_rows, Acknowledgement)
    ),
)


REPLAYS, AUDIT = "replays", "audit"
JOBS_AT_ONCE = 100


def forget_old_replays(now: datetime, chunks: Chunks) -> None:
    """Job by job: its items with their edits, a chunk at a time, its slices, then the job. Killed in between,
    the job is still there and old. Raises TimeIsUp."""
    if (older := before(now, settings.MA_KEEP_REPLAYS_DAYS)) is None:
        return
    older = min(older, archived_before("replays", now) or older)
    while jobs := list(_over(older).values_list("pk", flat=True)[:JOBS_AT_ONCE]):
        for pk in jobs:
            _forget(pk, chunks)


def _forget(pk: UUID, chunks: Chunks) -> None:
    delete_all("replay_items", partial(_keys, ReplayItem.objects.filter(job=pk)), _delete_items, chunks)
    delete_all("replay_slices", partial(_keys, ReplaySlice.objects.filter(job=pk)), _delete_slices, chunks)
    delete_all(REPLAYS, partial(_keys, ReplayJob.objects.filter(pk=pk)), _delete_jobs, chunks)


def forget_old_audit(now: datetime, chunks: Chunks) -> None:
    """In the order of the numbers, which grow with time; they are never given again. Raises TimeIsUp."""
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
    return raw_delete(ReplayItem.objects.filter(pk__in=keys))


def _delete_slices(keys: Sequence[int]) -> int:
    return raw_delete(ReplaySlice.objects.filter(pk__in=keys))


def _delete_jobs(keys: Sequence[UUID]) -> int:
    return raw_delete(ReplayJob.objects.filter(pk__in=keys))


def _delete_entries(keys: Sequence[int]) -> int:
    """Past the guard of the model, which refuses every delete."""
    return raw_delete(AuditEntry.objects.filter(pk__in=keys))
