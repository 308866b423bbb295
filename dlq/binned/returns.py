"""Whether a letter was put back from the bin, and as which one it goes on: each move gives it a row of its
own.

What lay in the bin is told by the job that took it out. The original is told by its message, which a weak key
does not tell apart from others.
"""

from dataclasses import dataclass
from datetime import datetime

from dlq.models import Action, DeadLetter, ItemState, LetterState, ReplayItem, ReplayJob
from dlq.models.letter import BIN_QUEUE


@dataclass(frozen=True, slots=True)
class PutBack:
    """`as_letter` None: the index has not seen it there, or cannot tell it apart."""

    job: ReplayJob
    at: datetime
    as_letter: int | None


def put_back_of(letter: DeadLetter) -> PutBack | None:
    binned = _binned(letter)
    if binned is None:
        return None
    moved = ReplayItem.objects.filter(letter=binned, state=ItemState.GIVEN_BACK, job__action=Action.PUT_BACK)
    item = moved.select_related("job").first()
    return PutBack(item.job, item.state_at, _next(binned, item.job.target_queue)) if item else None


def _binned(letter: DeadLetter) -> int | None:
    """The row that it has in the bin, or had there."""
    if letter.queue == BIN_QUEUE:
        return letter.pk if letter.state == LetterState.GONE else None
    return _next(letter.pk, BIN_QUEUE) if letter.state == LetterState.DISCARDED else None


def _next(number: int, queue: str) -> int | None:
    """The row that letter `number` got in `queue`, where it was moved from its own."""
    letter = DeadLetter.objects.only("queue", "setting_key", "message_key", "message_key_weak").get(pk=number)
    if not letter.message_key or letter.message_key_weak:
        return None
    same = DeadLetter.objects.filter(message_key=letter.message_key, setting_key=letter.setting_key)
    moved = same.filter(queue=queue, orig_queue=letter.queue, pk__gt=number)
    return moved.order_by("pk").values_list("pk", flat=True).first()
