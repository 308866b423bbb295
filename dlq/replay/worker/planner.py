"""Planning: the dead letters of a job's scope are read piece by piece and written down as slices with their
items.

A piece is one transaction and moves `planned_to` on. A kill before its commit leaves nothing of it, after it
the next piece follows; of two workers one moves `planned_to` and the other's piece is nothing. What dies
later than the question (`letters_up_to`) does not belong to the scope. Memory holds one piece, whatever the
scope holds.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Max, Min, QuerySet, Sum
from django.utils import timezone

from dlq.models import (
    Action,
    DeadLetter,
    ItemState,
    LetterState,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    Scope,
)
from dlq.models.replay import AT_LEAST
from dlq.replay import counts, scopes
from dlq.replay.counts import write_items
from dlq.replay.preflight import rules
from dlq.replay.rules import ladder, slices
from dlq.replay.rules.slices import Candidate
from dlq.replay.scopes import LISTED, frozen

# Dead letters of a piece. One of ids is sorted as a whole, so that more of its dead letters lie side by side,
# and fills its moves: each reads the queue from its head, however few it names.
IN_ORDER, BY_ROWS = 4 * slices.RANGE_SLICE, 2 * slices.NAMED_SLICE
# Rows of one statement.
AT_ONCE = 500


class Planner:
    """`present`: the ids that a walk found in the queue, None where the index is known to agree with it.
    `alone`: each dead letter gets a slice of its own, so that figures tell its fate without a walk."""

    def __init__(
        self, job: ReplayJob, node_id: str, present: slices.Present | None = None, *, alone: bool = False
    ) -> None:
        self._job, self._node_id, self._present, self._alone = job, node_id, present, alone
        one = job.scope == Scope.ONE
        self._policy = scopes.policy_for(
            job.setting_key, job.action, now=timezone.now(), one=one, node_id=node_id
        )

    def step(self, now: datetime) -> bool:
        """Writes the next piece down; whether there was one. At the end the job is planned."""
        with transaction.atomic():
            row = ReplayJob.objects.select_for_update(no_key=True).get(pk=self._job.pk)
            if row.planned_at is not None:
                return False
            if row.in_order:
                more = self._all_in_order(row, now)
            else:
                more = self._listed(row, now) if row.scope in LISTED else self._found(row, now)
            if not more:
                self._end(row, now)
        return more

    # -- in the order of publishing --------------------------------------------------------------------------

    def _all_in_order(self, job: ReplayJob, now: datetime) -> bool:
        """All of the scope in one piece, each dead letter a slice of its own. Who asked was refused more than
        fit into it."""
        going, skipped = self._listed_here(job, now) if job.scope in LISTED else self._all_found(job)
        firsts = scopes.first_numbers([letter.letter for letter in going])
        ordered = slices.in_publishing_order(self._without_missing(job, going, now), firsts)
        made = ReplaySlice.objects.bulk_create(
            [self._slice_of_one(job, number, letter, now) for number, letter in enumerate(ordered)]
        )
        pieces = {piece.first_letter_id: piece for piece in made}
        if job.scope in LISTED:
            items = list(job.items.filter(state=ItemState.PLANNED, slice=None, letter__in=pieces))
            for item in items:
                item.slice = pieces[item.letter_id]
            ReplayItem.objects.bulk_update(items, ["slice"], batch_size=AT_ONCE)
            return False
        wanted = [
            ReplayItem(job=job, letter_id=pk, slice=piece, state_at=now) for pk, piece in pieces.items()
        ]
        ReplayItem.objects.bulk_create(wanted, batch_size=AT_ONCE, ignore_conflicts=True)
        # What another job took meanwhile.
        taken, _rows = job.slices.filter(items=None).delete()
        skipped += Counter({rules.OUTSTANDING: taken} if taken else {})
        planned = len(pieces) - taken
        counts.add_counts(job.pk, {ItemState.PLANNED: planned, ItemState.SKIPPED: skipped.total()}, skipped)
        return False

    def _listed_here(self, job: ReplayJob, now: datetime) -> "tuple[list[Candidate], Counter[str]]":
        waiting = job.items.filter(state=ItemState.PLANNED, slice=None)
        rows = list(waiting.values_list("letter", "letter__orig_message_id", "letter__node_id"))
        self._leave_out(job, [pk for pk, _, node in rows if node != self._node_id], now)
        return [Candidate(pk, number) for pk, number, node in rows if node == self._node_id], Counter()

    def _all_found(self, job: ReplayJob) -> "tuple[list[Candidate], Counter[str]]":
        judged = scopes.judged(scopes.read(frozen(job)), self._policy)
        skipped = Counter(why for _letter, why in judged if why)
        return [Candidate(letter.pk, letter.number) for letter, why in judged if not why], skipped

    def _slice_of_one(self, job: ReplayJob, place: int, letter: Candidate, now: datetime) -> ReplaySlice:
        return ReplaySlice(
            job=job,
            number=place + 1,
            first_letter_id=letter.letter,
            last_letter_id=letter.letter,
            size=1,
            step=ladder.position_in_ladder(place)[0] if job.ladder else 0,
            first_number=letter.number,
            last_number=letter.number,
            planned_at=now,
            seen_before=not self._alone,
        )

    # -- a list of dead letters: its items are there ---------------------------------------------------------

    def _listed(self, job: ReplayJob, now: datetime) -> bool:
        waiting = job.items.filter(state=ItemState.PLANNED, slice=None).order_by("letter")
        rows = list(waiting.values_list("letter", "letter__orig_message_id", "letter__node_id")[:BY_ROWS])
        here = [Candidate(pk, number) for pk, number, node in rows if node == self._node_id]
        self._leave_out(job, [pk for pk, _, node in rows if node != self._node_id], now)
        for piece, by_range in self._cut(job, self._without_missing(job, here, now)):
            made = self._slice(job, piece, by_range, now)
            ids = [letter.letter for letter in piece]
            job.items.filter(letter__in=ids, state=ItemState.PLANNED, slice=None).update(slice=made)
        return bool(rows)

    def _leave_out(self, job: ReplayJob, letters: Sequence[int], now: datetime) -> None:
        items = job.items.filter(letter__in=letters, state=ItemState.PLANNED)
        number = items.update(state=ItemState.SKIPPED, why=rules.OTHER_BROKER, state_at=now)
        left_out = {rules.OTHER_BROKER: number}
        counts.add_counts(job.pk, {ItemState.PLANNED: -number, ItemState.SKIPPED: number}, left_out)

    # -- a scope that is no list -----------------------------------------------------------------------------

    def _found(self, job: ReplayJob, now: datetime) -> bool:
        rows, size = self._next_rows(job)
        letters = scopes.read(rows[:size])
        skipped: Counter[str] = Counter()
        if job.planned_to is None:
            skipped += self._of_no_use(job)
        going: list[Candidate] = []
        for letter, why in scopes.judged(letters, self._policy):
            if why:
                skipped[why] += 1
            else:
                going.append(Candidate(letter.pk, letter.number))
        if letters:
            job.planned_to = letters[-1].number if job.scope == Scope.ALL else letters[-1].pk
            job.save(update_fields=["planned_to"])
        written = 0
        for piece, by_range in self._cut(job, self._without_missing(job, going, now)):
            written += self._write(job, piece, by_range, now)
        counts.add_counts(job.pk, {ItemState.PLANNED: written, ItemState.SKIPPED: skipped.total()}, skipped)
        return bool(letters)

    def _next_rows(self, job: ReplayJob) -> "tuple[QuerySet[DeadLetter], int]":
        """All of a queue in the order of ids, so that its slices are ranges; what a filter finds in the order
        of rows, as indexes hold it."""
        rows = frozen(job)
        if job.scope != Scope.ALL:
            return rows.filter(pk__gt=job.planned_to or 0).order_by("pk"), BY_ROWS
        after = -1 if job.planned_to is None else job.planned_to
        ours = rows.filter(node_id=self._node_id, orig_message_id__gt=after)
        return ours.order_by("orig_message_id"), IN_ORDER

    def _of_no_use(self, job: ReplayJob) -> "Counter[str]":
        """What a scope in the order of ids never comes to: dead letters without an id, dead letters of
        another broker."""
        if job.scope != Scope.ALL:
            return Counter()
        rows = frozen(job)
        others = sum(rows.filter(node_id=node).count() for node in _nodes() if node != self._node_id)
        none = {"node_id": self._node_id, "orig_message_id__lt": 0}
        # By an index, where the scope's own order would read every dead letter of the queue.
        any_at_all = DeadLetter.objects.filter(queue=job.source_queue, **none).exists()
        without = rows.filter(**none).count() if any_at_all else 0
        return Counter({rules.OTHER_BROKER: others, rules.NO_ID: without})

    # -- slices ----------------------------------------------------------------------------------------------

    def _cut(
        self, job: ReplayJob, letters: Sequence[Candidate]
    ) -> Iterator[tuple[Sequence[Candidate], bool]]:
        """Slices with whether they are ranges: the scope holds every dead letter that is known between their
        ends."""
        largest = 1 if self._alone else _largest(job.per_second)
        # As fast as it can be: then what is no range is gathered into few moves, in the order of ids all the
        # same.
        gathers = not self._alone and not job.ladder and largest == slices.RANGE_SLICE
        apart: list[Candidate] = []
        # On a ladder no slice reaches into the next step.
        rooms = _left_in_step(job) if job.ladder else None
        for chunk in slices.chunks(letters, largest, rooms):
            if self._by_ids(job):
                yield from ((piece, False) for piece in slices.by_ids(chunk))
            elif self._whole(job, chunk):
                yield from ((piece, False) for piece in slices.by_ids(apart, slices.NAMED_SLICE))
                apart = []
                yield chunk, True
            elif gathers:
                apart += chunk
            else:
                yield from ((piece, False) for piece in slices.by_ids(chunk))
        yield from ((piece, False) for piece in slices.by_ids(apart, slices.NAMED_SLICE))

    def _by_ids(self, job: ReplayJob) -> bool:
        """A list that was planned by a walk names its dead letters too: a range would need one more walk at
        the end, for what died meanwhile."""
        return self._alone or job.action == Action.EDIT or (self._present is not None and job.scope in LISTED)

    def _whole(self, job: ReplayJob, chunk: Sequence[Candidate]) -> bool:
        first, last = chunk[0].number, chunk[-1].number
        dead = DeadLetter.objects.filter(
            node_id=self._node_id, queue=job.source_queue, state=LetterState.DEAD
        )
        between = dead.filter(orig_message_id__range=(first, last)).order_by("orig_message_id")
        if between[: len(chunk) + 1].count() != len(chunk):
            return False
        return self._present is None or self._present.within(first, last) == len(chunk)

    def _slice(
        self, job: ReplayJob, letters: Sequence[Candidate], by_range: bool, now: datetime
    ) -> ReplaySlice:
        number = (job.slices.aggregate(last=Max("number"))["last"] or 0) + 1
        return ReplaySlice.objects.create(
            job=job,
            number=number,
            first_letter_id=min(letter.letter for letter in letters),
            last_letter_id=max(letter.letter for letter in letters),
            size=len(letters),
            step=step_now(job)[0] if job.ladder else 0,
            by_range=by_range,
            first_number=letters[0].number,
            last_number=letters[-1].number,
            planned_at=now,
            seen_before=not self._alone,
        )

    def _write(self, job: ReplayJob, letters: Sequence[Candidate], by_range: bool, now: datetime) -> int:
        """The slice with its items; how many. What another job took meanwhile is not in it: then it is no
        range."""
        piece = self._slice(job, letters, by_range, now)
        write_items(job, [letter.letter for letter in letters], now, piece=piece)
        held = piece.items.count()
        if not held:
            piece.delete()
        elif held < piece.size:
            taken = {rules.OUTSTANDING: piece.size - held}
            ReplaySlice.objects.filter(pk=piece.pk).update(size=held, by_range=False)
            counts.add_counts(job.pk, {ItemState.SKIPPED: piece.size - held}, taken)
        return held

    # -- what the walk did not see ---------------------------------------------------------------------------

    def _without_missing(
        self, job: ReplayJob, letters: Sequence[Candidate], now: datetime
    ) -> list[Candidate]:
        """Leaves out those in the index, but not in the queue: somebody else took them, or they expired."""
        if self._present is None:
            return list(letters)
        missing = [letter.letter for letter in letters if letter.number not in self._present]
        if missing:
            self._write_missing(job, missing, now)
        return [letter for letter in letters if letter.number in self._present]

    def _write_missing(self, job: ReplayJob, letters: Sequence[int], now: datetime) -> None:
        state, why = ItemState.NOT_FOUND, rules.GONE
        if job.scope in LISTED:
            planned = job.items.filter(letter__in=letters, state=ItemState.PLANNED)
            number = planned.update(state=state, why=why, state_at=now)
            counts.add_counts(job.pk, {ItemState.PLANNED: -number, ItemState.NOT_FOUND: number})
        else:
            write_items(job, letters, now, state=state, why=why)
            counts.add_counts(job.pk, {ItemState.NOT_FOUND: len(letters)})
        dead = DeadLetter.objects.filter(pk__in=letters, state=LetterState.DEAD)
        dead.update(state=LetterState.GONE, state_at=now)

    def _end(self, job: ReplayJob, now: datetime) -> None:
        job.refresh_from_db(fields=["counts"])
        exact = {name: number for name, number in job.counts.items() if name != AT_LEAST}
        ReplayJob.objects.filter(pk=job.pk).update(planned_at=now, total=counts.total_of(exact), counts=exact)


def _nodes() -> Iterator[str]:
    """The brokers of all dead letters, which are few: each by one look into the index that begins with
    them."""
    node = DeadLetter.objects.aggregate(first=Min("node_id"))["first"]
    while node is not None:
        yield node
        node = DeadLetter.objects.filter(node_id__gt=node).aggregate(next=Min("node_id"))["next"]


def step_now(job: ReplayJob) -> tuple[int, int]:
    """Returns the step of a ladder that the next slice belongs to, and how many dead letters still fit into
    it."""
    planned = job.slices.aggregate(letters=Sum("size"))["letters"] or 0
    return ladder.position_in_ladder(planned)


def _largest(per_second: float) -> int:
    """No slice of a slow job holds more than a second's dead letters."""
    return max(1, min(slices.RANGE_SLICE, int(per_second))) if per_second else slices.RANGE_SLICE


def _left_in_step(job: ReplayJob) -> Iterator[int]:
    while True:
        yield step_now(job)[1]
