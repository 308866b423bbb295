"""Moving the slices of a job, one after the other, while the database is told of the one before.

The broker is asked in a thread of its own, the database in this one. For each slice: its try and the figures
of the queue are committed (`begin`), it is moved, the figures are read again. They are the next slice's
figures before, so whatever leaves the queue at any time falls to one slice. What left is not what we moved:
others may consume from the queue too. Only the broker's answer to a move of named dead letters says that we
took them. Killed

- before `begin` commits: the slice is planned, nothing moved.
- after it, before the move: the next worker moves it, and its answer says so.
- after the move: the next worker moves it once more, which moves nothing twice. The answer of the first move
  is lost: what is gone is unconfirmed, until the target, a report or a death tells.
- before its letters are marked: the answer was committed with the begin of the next slice. Without a next
  one the slice is moved once more, as above.

While the queue has other consumers, or where a slice came out short, dead letters are moved a few at a time:
what a short part leaves open is little then.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from django.db import transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from broker.port import BrokerTimeout, ManagementFailed
from console.jobs import crash
from dlq.hooks import Hooks, hooks_of
from dlq.index.broker import LetterQueues
from dlq.models import Action, ItemState, ReplayJob, ReplaySlice, SliceState
from dlq.outcomes import results
from dlq.replay.rules import slices
from dlq.replay.rules.slices import Figures, SliceResult
from dlq.replay.worker import pacer, verifier
from dlq.replay.worker.pacer import SLEPT, Pacer, has_unsettled_slice, sleep_until
from dlq.replay.worker.planner import Planner

# Slices that are planned ahead of the one that moves.
AHEAD = 3
# Of a step; between two the worker looks at the job anew.
STEP = timedelta(seconds=5)


class End(Enum):
    """Says why a run of moves ended: its time is over; nothing is left to move; it has to wait; the job is
    not ours, or not to be worked on, any more; it stopped by itself; it has to pause; the broker refuses the
    move."""

    TIME = "time"
    EMPTY = "empty"
    WAIT = "wait"
    LOST = "lost"
    STOP = "stop"
    PAUSE = "pause"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Ended:
    end: End
    why: str = ""
    until: datetime | None = None
    asked: pacer.GateReading | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """`moved` is the broker's word, None where it did not answer; `refused` its reason where it moved no
    more. `whole` are the ids of parts of which it moved every dead letter."""

    moved: int | None
    after: Figures
    refused: str = ""
    whole: tuple[int, ...] = ()


class Moves:
    """One run. `planner` None: everything is planned."""

    def __init__(self, job: ReplayJob, queues: LetterQueues, planner: Planner | None) -> None:
        self._job, self._queues, self._planner = job, queues, planner
        self._hooks = hooks_of(job.action)
        self._pacer = Pacer(job)
        self._checked: ReplaySlice | None = None  # moved as a whole, not yet marked
        self._short = False  # of a slice before, others took some
        self._last_number = 0

    def run(self) -> Ended:
        """Raises BrokerError; a slice that was on its way then is told by the next worker."""
        end = timezone.now() + STEP
        figures = self._queues.figures(self._job.source_queue)
        with ThreadPoolExecutor(1, "moves") as broker:
            try:
                while True:
                    found = self._next()
                    if isinstance(found, Ended):
                        return found
                    done = self._move(found, figures, broker)
                    if isinstance(done, Ended):
                        return done
                    figures = done
                    if timezone.now() >= end:
                        return Ended(End.TIME)
            finally:
                self._mark()

    # -- the next slice --------------------------------------------------------------------------------------

    def _next(self) -> ReplaySlice | Ended:
        found = self._next_piece()
        if isinstance(found, Ended):
            return found
        now = timezone.now()
        asked = pacer.read_gate(self._job, self._queues.management, now)
        if asked.gate is pacer.Gate.OPEN:
            return found
        end = End.WAIT if asked.gate is pacer.Gate.WAIT else End.PAUSE
        return Ended(end, asked.why, now + pacer.ASKED_EVERY, asked)

    def _next_piece(self) -> ReplaySlice | Ended:
        piece = self._planned()
        while piece is None and self._plan_more():
            piece = self._planned()
        if piece is None:
            return Ended(End.EMPTY)
        if self._job.in_order:
            self._mark()
            # The one before may have stayed: it goes first, or nobody can say that it went.
            if has_unsettled_slice(self._job, piece.number):
                return Ended(End.EMPTY)
        if not self._pacer.hurries:
            self._mark()
            if has_unsettled_slice(self._job, piece.number) and piece.step > self._job.ladder_step:
                return Ended(End.EMPTY)
            return self._paced(piece)
        return piece

    def _paced(self, piece: ReplaySlice) -> ReplaySlice | Ended:
        now = timezone.now()
        pace = self._pacer.before(piece, now)
        if pace.stop:
            return Ended(End.STOP, pace.stop)
        if pace.until is None:
            return piece
        if pace.until - now > SLEPT:
            return Ended(End.WAIT, pace.why, pace.until)
        sleep_until(pace.until)
        return self._paced(piece)

    def _planned(self) -> ReplaySlice | None:
        planned = self._job.slices.filter(state=SliceState.PLANNED, number__gt=self._last_number)
        return planned.order_by("number").first()

    def _plan_more(self) -> bool:
        if self._planner is not None and not self._planner.step(timezone.now()):
            self._planner = None
        return self._planner is not None

    # -- one slice -------------------------------------------------------------------------------------------

    def _move(self, piece: ReplaySlice, before: Figures, broker: ThreadPoolExecutor) -> Figures | Ended:
        """The figures afterwards."""
        now = timezone.now()
        # A try before this one may have moved some of it: then the figures before that one count.
        first = piece.count_before is None
        alone = not (before.consumers or self._short)
        if not self._begin(piece, before, now, by_range=piece.by_range and (alone or not first)):
            return Ended(End.LOST)
        self._last_number = piece.number
        crash.point("begun")
        if self._hooks is not None:
            self._prepare(piece, self._hooks)
        if timezone.now() >= (self._job.lease_until or now):  # another worker may have moved it long ago
            return Ended(End.LOST)
        self._pacer.moved(piece, now)
        on_its_way: Future[Done] = broker.submit(self._order(piece, alone))
        self._mark()
        self._plan_ahead(piece)
        done = on_its_way.result()
        crash.point("moved")
        if not first:  # of which nobody knows what it moved
            before = Figures(count=piece.count_before or 0, added=piece.added_before or 0)
        return self._conclude(piece, before, done, first)

    def _begin(self, piece: ReplaySlice, before: Figures, now: datetime, *, by_range: bool) -> bool:
        """Begins a slice: from the commit on its dead letters may have left. A try before it that was not
        answered may have moved some: how many is not known any more, whatever this one answers. The answer
        for the slice before goes with it."""
        begun = {
            "tries": F("tries") + 1,
            "moved_at": now,
            "moved": None,
            "by_range": by_range,
            "moved_exactly": Case(When(count_before=None, then=F("moved_exactly")), default=None),
            "count_before": Coalesce("count_before", Value(before.count)),
            "added_before": Coalesce("added_before", Value(before.added)),
        }
        with transaction.atomic():
            if not self._job.renew(now):
                return False
            ReplaySlice.objects.filter(pk=piece.pk, state=SliceState.PLANNED).update(**begun)
            if checked := self._checked:
                unmarked = ReplaySlice.objects.filter(pk=checked.pk, state=SliceState.PLANNED)
                unmarked.update(moved=checked.moved)
        return True

    def _prepare(self, piece: ReplaySlice, hooks: Hooks) -> None:
        hooks.before_move(self._job, piece)
        crash.point("prepared")
        going = piece.items.filter(state=ItemState.PLANNED).count()
        if going != piece.size:
            piece.size = going
            piece.save(update_fields=["size"])

    def _order(self, piece: ReplaySlice, alone: bool) -> Callable[[], Done]:
        """What the broker is asked in the other thread: there nothing touches the database. `alone`: nobody
        else seems to consume from the queue."""
        job, queues = self._job, self._queues
        by_range = piece.by_range and alone and job.action != Action.EDIT
        numbers: list[int] = []
        if not by_range:
            waiting = piece.items.filter(state=ItemState.PLANNED).order_by("letter__orig_message_id")
            numbers = list(waiting.values_list("letter__orig_message_id", flat=True))

        def carry_out() -> Done:
            answers: list[int] = []
            whole: list[int] = []
            refused, heard = "", True
            parts = [numbers] if by_range else slices.parts_of(numbers, alone=alone)
            try:
                for part in parts:
                    answers.append(_ask(queues, job, piece, part))
                    whole += part if answers[-1] == len(part) else ()
            except BrokerTimeout:
                heard = False  # perhaps moved: what is gone will tell
            except ManagementFailed as error:
                refused = str(error)
            moved = sum(answers) if heard else None
            return Done(moved, queues.figures(job.source_queue), refused, tuple(whole))

        return carry_out

    def _plan_ahead(self, piece: ReplaySlice) -> None:
        if self._planner is None:
            return
        ahead = self._job.slices.filter(state=SliceState.PLANNED, number__gt=piece.number).count()
        if ahead < AHEAD:
            self._plan_more()

    def _conclude(self, piece: ReplaySlice, before: Figures, done: Done, first: bool) -> Figures | Ended:
        if done.moved is None and piece.tries < slices.MOST_TRIES:
            return Ended(End.TIME)  # it is on its way still: the next try tells what this one moved
        left = slices.left_by(before, done.after)
        verdict = slices.slice_result(piece.size, left, done.moved, first=first)
        piece.moved = done.moved
        if verdict is SliceResult.GONE:
            self._checked = piece
        elif verdict is SliceResult.LEFT and not done.after.consumers:
            results.all_unconfirmed(self._job, piece, timezone.now())
        elif verdict is SliceResult.STAYED and done.refused:
            verifier.again(piece)
        else:
            self._short = True
            # A broker that counts anew may have forgotten the move that it answered.
            exactly = done.moved if first and left is not None else None
            verifier.to_be_walked(self._job, piece, left, exactly, done.whole)
        return Ended(End.REFUSED, done.refused) if done.refused else done.after

    def _mark(self) -> None:
        """The slice that was moved as a whole, while the broker moves the next one."""
        if self._checked is not None:
            results.all_left(self._job, self._checked, timezone.now())
            self._checked = None


def _ask(queues: LetterQueues, job: ReplayJob, piece: ReplaySlice, numbers: Sequence[int]) -> int:
    """Names the range where there are no numbers."""
    if numbers:
        return queues.move_ids(job.source_queue, numbers, job.target_queue)
    first, last = piece.first_number or 0, piece.last_number or 0
    return queues.move_between(job.source_queue, first, last, job.target_queue, piece.size)
