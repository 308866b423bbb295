"""The worker's part of an edit: a copy of each dead letter of a slice is at the broker before the slice is
moved away.

The states of a LetterEdit are written in this order, and any of them may be the last before a kill:

- PLANNED: the whole copy is in the row; nothing was sent, or the worker died right after sending. It is sent
  (again): the broker drops a second one with the same `_AMQ_DUPL_ID`, whether or not the first was consumed
  meanwhile. It knows the last 20,000 such ids of an address, and keeps them over its own kill.
- SENT: the broker confirmed it. It is never sent again; the dead letter may be moved into the trash.
- DONE: the dead letter left its queue.
- FAILED: there is nowhere to send it: nothing was sent, the dead letter stays.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from broker.amqp.codec import decode
from broker.amqp.publisher import AmqpPublisher
from broker.port import AddressUnknown, Outgoing, Publisher
from console.jobs import crash
from console.reasons import said
from dlq import hooks
from dlq.dead_letters.masks import everybodys_masks, masks_for
from dlq.edit.rules.bulk_rule import Rule, apply, rule_of
from dlq.edit.rules.copy import encoded_copy, message_of
from dlq.edit.rules.diff import stored_changes
from dlq.edit.rules.values import EditRefused
from dlq.models import Action, EditState, ItemState, LetterEdit, ReplayItem, ReplayJob, ReplaySlice
from dlq.replay import counts

log = structlog.get_logger(__name__)

# Of what is in memory at once: dead letters, and bytes of their bodies.
LETTERS_AT_ONCE = 100
BYTES_AT_ONCE = 8 * 1024 * 1024
FINISHED_AT_ONCE = 10
NO_SUBSCRIPTION = "no_subscription"


def register_edit_hooks() -> None:
    hooks.register_hooks(Action.EDIT, hooks.Hooks(before_move, after_check, committed, finish_copies))


def before_move(job: ReplayJob, piece: ReplaySlice, publisher: Publisher | None = None) -> None:
    """Sends the copies of all planned dead letters of the slice. Afterwards move only those of its items that
    are still planned, by their ids: dead letters to which the rule does not apply are left out. Raises
    BrokerError: do it again."""
    rule = rule_of(job.edit_rule) if job.edit_rule else None
    with _sending(publisher) as own:
        for items in _portions(job, piece):
            if rule is not None:
                _make(job, rule, items, timezone.now())
            crash.point("edit-planned")
            _send(job, items, own)


def finish_copies(job: ReplayJob, piece: ReplaySlice, publisher: Publisher | None = None) -> None:
    """Sends the copies of a job that is over: one that is written down was perhaps sent, by a worker that
    died right then. Nobody can ask the broker, so it is sent again, which makes one of two; no other copy is
    written any more."""
    items = list(
        piece.items.filter(state=ItemState.PLANNED, edit__state=EditState.PLANNED).values_list(
            "pk", flat=True
        )
    )
    if items:
        with _sending(publisher) as own:
            for start in range(0, len(items), FINISHED_AT_ONCE):
                _send(job, items[start : start + FINISHED_AT_ONCE], own)


@contextmanager
def _sending(publisher: Publisher | None) -> Iterator[Publisher]:
    own = publisher or AmqpPublisher(settings.MA_BROKER_AMQP)
    try:
        yield own
    finally:
        if publisher is None:
            own.close()


def after_check(items: Sequence[int], now: datetime) -> None:
    """The dead letters of these items left their queue. Call it in the transaction that says so."""
    LetterEdit.objects.filter(item__in=items, state=EditState.SENT).update(state=EditState.DONE, done_at=now)


def committed(items: Sequence[int]) -> list[int]:
    """Those whose copies are at the broker: these dead letters have to leave their queue."""
    sent = LetterEdit.objects.filter(item__in=list(items), state=EditState.SENT)
    return list(sent.order_by("item").values_list("item", flat=True))


def _portions(job: ReplayJob, piece: ReplaySlice) -> Iterator[list[int]]:
    """Ids of items, so few at a time that their dead letters fit into memory."""
    items = job.items.filter(slice=piece, state=ItemState.PLANNED).order_by("pk")
    portion: list[int] = []
    held = 0
    for item, size in list(items.values_list("pk", "letter__size")):
        if portion and (len(portion) >= LETTERS_AT_ONCE or held + size > BYTES_AT_ONCE):
            yield portion
            portion, held = [], 0
        portion.append(item)
        held += size
    if portion:
        yield portion


@transaction.atomic
def _make(job: ReplayJob, rule: Rule, items: Sequence[int], now: datetime) -> None:
    """Writes the copies of those that have none yet. Of two workers at the same item one writes its copy: the
    other's is ignored, so there is one duplicate id for each dead letter."""
    counts.lock([job.pk])
    masks, locks = everybodys_masks(), masks_for(job.by) if job.by else everybodys_masks()
    edits: list[LetterEdit] = []
    left_out: dict[int, str] = {}
    rows = ReplayItem.objects.filter(pk__in=items, edit=None, state=ItemState.PLANNED)
    for item in rows.select_related("letter__content").order_by("pk"):
        letter = item.letter
        try:
            before = message_of(letter)
            names = masks.names(letter)
            made = apply(rule, before, names, letter.jms_kind, locked=locks.names(letter))
            edit = LetterEdit(item=item, diff=stored_changes(made.changes, names), planned_at=now)
            edit.encoded = encoded_copy(letter, before, made.message, edit.pk, now)
            edits.append(edit)
        except EditRefused as refused:
            left_out[item.pk] = refused.code
    LetterEdit.objects.bulk_create(edits, ignore_conflicts=True)
    _leave_out(job, left_out, now)


def _leave_out(job: ReplayJob, why: dict[int, str], now: datetime) -> None:
    skipped: Counter[str] = Counter()
    for item, code in why.items():
        planned = ReplayItem.objects.filter(pk=item, state=ItemState.PLANNED)
        skipped[code] += planned.update(state=ItemState.SKIPPED, why=code, state_at=now)
    number = skipped.total()
    counts.add_counts(job.pk, {ItemState.PLANNED: -number, ItemState.SKIPPED: number}, skipped)


def _send(job: ReplayJob, items: Sequence[int], publisher: Publisher) -> None:
    edits = list(LetterEdit.objects.filter(item__in=items, state=EditState.PLANNED).order_by("item"))
    if not edits:
        return
    try:
        destination = destination_of(job)
        publisher.publish([Outgoing(destination, decode(bytes(edit.encoded))) for edit in edits])
    except AddressUnknown as error:
        _fail(job, edits, str(error), timezone.now())
        return
    crash.point("edit-published")
    # The copy is the broker's now; another megabyte for each dead letter is nothing to keep.
    ids = [edit.pk for edit in edits]
    sent = LetterEdit.objects.filter(pk__in=ids, state=EditState.PLANNED)
    sent.update(state=EditState.SENT, sent_at=timezone.now(), encoded=b"")
    crash.point("edit-sent")


def destination_of(job: ReplayJob) -> str:
    """Only the setting's own queue gets the copy. Raises AddressUnknown."""
    setting = job.setting
    if setting is None or setting.destination is None:
        raise AddressUnknown(f"the setting {job.setting_key} or its destination no longer exists")
    return f"{setting.destination.name}::{setting.key}"


@transaction.atomic
def _fail(job: ReplayJob, edits: Sequence[LetterEdit], problem: str, now: datetime) -> None:
    """Nothing was sent, so the dead letters stay where they are."""
    log.warning("edited messages not sent: no target queue", replay=str(job.pk), reason=problem)
    counts.lock([job.pk])
    ids = [edit.pk for edit in edits]
    failed = LetterEdit.objects.filter(pk__in=ids, state=EditState.PLANNED)
    failed.update(state=EditState.FAILED, problem=problem, done_at=now, encoded=b"")
    items = ReplayItem.objects.filter(edit__in=ids, state=ItemState.PLANNED)
    number = items.update(state=ItemState.FAILED_TO_MOVE, why=NO_SUBSCRIPTION, state_at=now)
    ReplayJob.objects.filter(pk=job.pk).update(problem=said(problem))
    counts.add_counts(job.pk, {ItemState.PLANNED: -number, ItemState.FAILED_TO_MOVE: number})
