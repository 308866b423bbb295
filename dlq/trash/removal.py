"""The trash: dead letters that were discarded, and originals of edited ones. They can be put back until they
expire."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import uuid4

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from broker.management.dead_letters import SLICE, count_dead_letters, delete_dead_letters
from broker.port import BrokerError
from console.audit.log import record
from console.audit.models import AuditResult
from console.jobs import crash
from dlq.index.broker import LetterQueues
from dlq.models import DeadLetter, ItemState, JobState, LetterState, ReplayItem, ReplayJob
from dlq.models.dead_letter import BIN_QUEUE

log = structlog.get_logger(__name__)


def kept_for() -> timedelta:
    return timedelta(days=settings.MA_BIN_DAYS)


def expires_at(letter: DeadLetter) -> datetime:
    """Returns when it is removed for good. The producer may have said an earlier time: that one the broker
    keeps."""
    by_us = letter.seen_at + kept_for()
    return by_us if letter.expires_at is None else min(by_us, letter.expires_at)


# -- purge: bounded steps, by a task that runs every minute --------------------------------------------------
# The broker cannot do it: a move keeps the expiry that the producer gave, and the queues of dead letters
# share one address with one policy. A step first marks its rows gone, with entries in the audit, then removes
# the messages by their ids. A kill in between leaves messages that the index calls gone: the sweep finds
# them, and the next step removes them. Nothing is removed while a job moves messages out of the trash: its
# figures would not be its own.


EXPIRED = "trash.purged"


def expire(queues: LetterQueues, now: datetime) -> int:
    """One step: at most SLICE dead letters of one setting; how many. Raises BrokerError: what was marked is
    dead again."""
    letters = _mark(queues.node_id(), now)
    if not letters:
        return 0
    crash.point("bin: marked")
    try:
        for origin, numbers in _by_origin(letters).items():
            removed = delete_dead_letters(queues.management, BIN_QUEUE, origin, numbers)
            log.info(
                "expired messages removed from the trash",
                origin=origin,
                letters=len(numbers),
                removed=removed,
            )
    except BrokerError as error:
        _unmark(letters, now, str(error))
        raise
    crash.point("bin: removed")
    return len(letters)


def due(now: datetime) -> QuerySet[DeadLetter]:
    """Dead rows of the trash whose time is over, those that a job is about to move left out; the oldest
    first."""
    planned = ReplayItem.objects.filter(letter=OuterRef("pk"), state=ItemState.PLANNED)
    left = DeadLetter.objects.filter(queue=BIN_QUEUE, state=LetterState.DEAD, seen_at__lt=now - kept_for())
    return left.filter(~Exists(planned), orig_message_id__gte=0).order_by("seen_at")


@transaction.atomic
def _mark(node_id: str, now: datetime) -> list[DeadLetter]:
    """The row locks come before the look at jobs: one that plans at this moment waits for them, or is
    seen."""
    rows = due(now).filter(node_id=node_id)
    first = rows.values_list("setting_key", flat=True).first()
    if first is None:
        return []
    light = rows.only("pk", "orig_queue", "orig_message_id", "setting_key")
    letters = list(light.filter(setting_key=first).select_for_update(of=("self",))[:SLICE])
    if at_work(BIN_QUEUE, now):
        return []
    DeadLetter.objects.filter(pk__in=[letter.pk for letter in letters]).update(
        state=LetterState.GONE, state_at=now
    )
    _record_purged(letters, now)
    return letters


def at_work(queue: str, now: datetime) -> bool:
    """Returns whether a job takes dead letters out of this queue, or is telling apart what it took. One that
    waits for a person does not; what it holds already is planned."""
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    resting = Q(state=JobState.AWAITING) | (Q(state=JobState.PAUSED) & free)
    return ReplayJob.objects.filter(source_queue=queue, finished_at=None).exclude(resting).exists()


def _by_origin(letters: Sequence[DeadLetter]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for letter in letters:
        found[letter.orig_queue].append(letter.orig_message_id)
    return found


@transaction.atomic
def _unmark(letters: Sequence[DeadLetter], now: datetime, why: str) -> None:
    """The broker did not do it, or did not say so: the next step tries the same again."""
    marked = DeadLetter.objects.filter(
        pk__in=[letter.pk for letter in letters], state=LetterState.GONE, state_at=now
    )
    if number := marked.update(state=LetterState.DEAD):
        record(
            EXPIRED, by=None, now=now, target=f"queue:{BIN_QUEUE}", setting_key=letters[0].setting_key,
            counts={"letters": number}, result=AuditResult.FAILED, detail={"why": why},
        )  # fmt: skip


def _record_purged(letters: Sequence[DeadLetter], now: datetime) -> None:
    """An entry for the step, and one for each dead letter: nothing else tells later who removed it."""
    key, operation = letters[0].setting_key, uuid4()
    record(
        EXPIRED, by=None, now=now, target=f"queue:{BIN_QUEUE}", operation=operation, setting_key=key,
        counts={"letters": len(letters)},
    )  # fmt: skip
    for letter in letters:
        record(
            EXPIRED, by=None, now=now, target=f"letter:{letter.pk}", operation=operation, setting_key=key,
            letter=letter.pk,
        )  # fmt: skip


# -- dead letters out of the dead-letter queues, for good, before their rows forget which they were ----------


MAYBE_THERE = (LetterState.DEAD, LetterState.GONE)


@dataclass(slots=True)
class Removed:
    """`numbers` of the rows whose dead letters are not at the broker (any more). `left`: why others are, in
    words."""

    numbers: list[int] = field(default_factory=list)
    left: set[str] = field(default_factory=set)


def remove_from_broker(queues: LetterQueues, letters: Collection[DeadLetter], now: datetime) -> Removed:
    """Raises BrokerError: what is marked gone and still lies there the sweep would find, and the next call
    does.

    Rows that are gone by the index are removed once more: whoever marked them may have died before the broker
    did."""
    found, node = Removed(), queues.node_id()
    by_place: dict[tuple[str, str], list[DeadLetter]] = defaultdict(list)
    for letter in letters:
        if letter.state not in MAYBE_THERE:
            found.numbers.append(letter.pk)
        elif letter.orig_message_id < 0 and letter.state == LetterState.DEAD:
            why = _("messages in %(queue)s have no broker id: remove them manually")
            found.left.add(why % {"queue": letter.queue})
        elif letter.node_id != node and letter.state == LetterState.DEAD:
            found.left.add(_("messages from %(queue)s are on another broker") % {"queue": letter.queue})
        elif letter.orig_message_id < 0 or letter.node_id != node:
            found.numbers.append(letter.pk)
        else:
            by_place[letter.queue, letter.orig_queue].append(letter)
    for (queue, origin), there in by_place.items():
        _remove_from(queues, queue, origin, there, now, found)
    return found


def _remove_from(
    queues: LetterQueues, queue: str, origin: str, letters: list[DeadLetter], now: datetime, found: Removed
) -> None:
    free = _mark_gone(queue, letters, now)
    if len(free) < len(letters):
        found.left.add(_("a replay uses messages from %(queue)s: wait until it finishes") % {"queue": queue})
    if not free:
        return
    crash.point("erase: marked")
    numbers = [letter.orig_message_id for letter in free]
    delete_dead_letters(queues.management, queue, origin, numbers)
    if left := count_dead_letters(queues.management, queue, origin, numbers):
        found.left.add(_("messages from %(queue)s being delivered: %(n)s") % {"n": left, "queue": queue})
        return
    crash.point("erase: removed")
    found.numbers += [letter.pk for letter in free]


@transaction.atomic
def _mark_gone(queue: str, letters: list[DeadLetter], now: datetime) -> list[DeadLetter]:
    """Those that no job has, gone by the index now. Rows are locked before the look at jobs: one that plans
    at this moment waits for them, or is seen."""
    planned = ReplayItem.objects.filter(letter=OuterRef("pk"), state=ItemState.PLANNED)
    rows = DeadLetter.objects.filter(pk__in=[letter.pk for letter in letters], state__in=MAYBE_THERE)
    locked = set(rows.filter(~Exists(planned)).select_for_update(of=("self",)).values_list("pk", flat=True))
    if not locked or at_work(queue, now):
        return []
    DeadLetter.objects.filter(pk__in=locked, state=LetterState.DEAD).update(
        state=LetterState.GONE, state_at=now
    )
    return [letter for letter in letters if letter.pk in locked]
