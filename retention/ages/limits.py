"""Describes what is kept for a time of its own: rows by primary keys that are picked by an index, a chunk at
a time. Closed alerts, deliveries that waited for an answer, records that were refused or came with other
content."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from agents.models import Acknowledgement
from alerts.models import Alert, AlertState, Notice, NoticeState
from failures.models import RecordConflict, RefusedRecord
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
# So many are counted of each where somebody asks what would go.
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class AgeLimit:
    """`pick(older, n)` answers up to n keys of what is over, `delete(keys, older)` deletes what still is of
    them."""

    what: str
    days: Callable[[], int]
    pick: Callable[[datetime, int], list[int]]
    delete: Callable[[Sequence[int], datetime], int]

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
    _records(REFUSED, RefusedRecord),
    _records(CONFLICTS, RecordConflict),
    AgeLimit(
        ANSWERS, lambda: settings.MA_KEEP_ANSWERS_DAYS, _pick_ended, partial(_delete_rows, Acknowledgement)
    ),
)
