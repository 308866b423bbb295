"""Letters out of the dead-letter queues, for good, before their rows forget which they were."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from broker.letters import count_letters, remove_letters
from dlq import crash
from dlq.binned.expiring import at_work
from dlq.letter_queues import LetterQueues
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem

MAYBE_THERE = (LetterState.DEAD, LetterState.GONE)


@dataclass(slots=True)
class Removed:
    """`numbers` of the rows whose letters are not at the broker (any more). `left`: why others are, in
    words."""

    numbers: list[int] = field(default_factory=list)
    left: set[str] = field(default_factory=set)


def remove(queues: LetterQueues, letters: Collection[DeadLetter], now: datetime) -> Removed:
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
            why = _("letters of %(queue)s have no number there: remove them by hand")
            found.left.add(why % {"queue": letter.queue})
        elif letter.node_id != node and letter.state == LetterState.DEAD:
            found.left.add(_("letters of %(queue)s lie at another broker") % {"queue": letter.queue})
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
    free = _mark(queue, letters, now)
    if len(free) < len(letters):
        found.left.add(_("a replay has letters of %(queue)s: wait until it is over") % {"queue": queue})
    if not free:
        return
    crash.point("erase: marked")
    numbers = [letter.orig_message_id for letter in free]
    remove_letters(queues.management, queue, origin, numbers)
    if lying := count_letters(queues.management, queue, origin, numbers):
        found.left.add(_("%(n)s letters of %(queue)s are in somebody's hands") % {"n": lying, "queue": queue})
        return
    crash.point("erase: removed")
    found.numbers += [letter.pk for letter in free]


@transaction.atomic
def _mark(queue: str, letters: list[DeadLetter], now: datetime) -> list[DeadLetter]:
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
