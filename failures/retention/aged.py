"""Closed alerts, deliveries that waited for an answer, and records that were refused or came with other
content: each kept for a time of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from agents.models import Acknowledgement
from alerts.models import Alert, AlertState, Notice, NoticeState
from failures.models import RecordConflict, RefusedRecord
from failures.retention.aging import before, delete_all
from failures.retention.chunks import Chunks

ALERTS, REFUSED, CONFLICTS, ANSWERS = "alerts", "refused", "conflicts", "answers"
# So many are counted of each where somebody asks what would go.
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Aged:
    """`pick(older, n)` answers up to n keys of what is over, `delete(keys, older)` deletes what still is of
    them."""

    what: str
    days: Callable[[], int]
    pick: Callable[[datetime, int], list[int]]
    delete: Callable[[Sequence[int], datetime], int]

    def forget(self, now: datetime, chunks: Chunks) -> None:
        """Raises TurnOver."""
        if (older := before(now, self.days())) is not None:
            delete_all(self.what, partial(self.pick, older), lambda keys: self.delete(keys, older), chunks)

    def foresee(self, now: datetime) -> "Going | None":
        """What would go, or None where nothing would."""
        if (older := before(now, self.days())) is None:
            return None
        count = len(self.pick(older, COUNTED + 1))
        return Going(self.what, older, min(count, COUNTED), count > COUNTED) if count else None


@dataclass(frozen=True, slots=True)
class Going:
    """`cut`: there are more. `kept`: {reason: how many} stay though their time is over."""

    what: str
    before: datetime
    count: int
    cut: bool
    setting_key: str = ""
    kept: Mapping[str, int] = field(default_factory=dict)


def _closed_alerts(older: datetime) -> QuerySet[Alert]:
    """Not those that a person closed while their cause lasts: without them it would be told anew. Nor those
    of which somebody is still to be told."""
    pending = Notice.objects.filter(transition__alert=OuterRef("pk"), state=NoticeState.PENDING)
    rows = Alert.objects.filter(state=AlertState.CLOSED, closed_at__lt=older, held=False)
    return rows.filter(~Exists(pending))


def _pick_alerts(older: datetime, n: int) -> list[int]:
    return list(_closed_alerts(older).order_by("closed_at", "pk").values_list("pk", flat=True)[:n])


def _delete_alerts(keys: Sequence[int], older: datetime) -> int:
    """With what happened to them and what was told of it. How many alerts: one that was opened again
    stays."""
    still = Alert.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk", flat=True)
    going = list(_closed_alerts(older).filter(pk__in=list(still)).order_by().values_list("pk", flat=True))
    Alert.objects.filter(pk__in=going).delete()
    return len(going)


def _pick_first(model: Any, older: datetime, n: int) -> list[int]:
    """In the order of the keys, which grow with the receipt, as long as they are old."""
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


def _records(what: str, model: Any) -> Aged:
    return Aged(
        what, lambda: settings.MA_KEEP_REFUSED_DAYS, partial(_pick_first, model), partial(_delete_rows, model)
    )


AGED = (
    Aged(ALERTS, lambda: settings.MA_KEEP_ALERTS_DAYS, _pick_alerts, _delete_alerts),
    _records(REFUSED, RefusedRecord),
    _records(CONFLICTS, RecordConflict),
    Aged(ANSWERS, lambda: settings.MA_KEEP_ANSWERS_DAYS, _pick_ended, partial(_delete_rows, Acknowledgement)),
)


# What apps above keep for times of their own: at `now`, of at most so many rows of each kind that are looked
# at.
Foreseer = Callable[[datetime, int], Iterable[Going]]
_foreseers: list[Foreseer] = []


def register_foreseer(foreseer: Foreseer) -> None:
    if foreseer not in _foreseers:
        _foreseers.append(foreseer)


def foresee(now: datetime) -> Iterator[Going]:
    yield from foresee_of_settings(now, COUNTED)
    for each in AGED:
        if (going := each.foresee(now)) is not None:
            yield going


def foresee_of_settings(now: datetime, most: int) -> Iterator[Going]:
    """What is counted by setting, of the `most` that are over first, whichever settings have them."""
    for foreseer in _foreseers:
        yield from foreseer(now, most)
