"""A page of what a filter finds, newest first, in bounded time whatever it asks for and however many dead
letters there are.

A condition that matches few dead letters is asked first, by its index; the others are then asked of those
few. Where every condition alone matches many, dead letters are looked through from the newest on, in windows,
until the page is full, or for BUDGET seconds: then the page says how far it got, and the next one goes on
from there.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q, QuerySet

from console.database.statements import quick
from console.database.texts import has_all
from console.lists import keyset
from console.lists.keyset import Found
from console.ui.amounts import about, number
from dlq.dead_letters.masks import everybodys_masks
from dlq.models import DeadLetter, LetterState
from dlq.search.conditions import Condition, Query
from dlq.search.word_index import property_texts, texts_of
from dlq.search.words import INDEX

# So many dead letters are few: each is then looked at.
FEW = 10_000
BATCH = 1000
# Dead letters of the first window, and of the largest.
WINDOW, WIDEST = 500, 32_000
BUDGET = 0.15  # seconds
# Dead letters with the words of a phrase that are asked for at a time, and that are compared together: a body
# has up to 1 MB.
CANDIDATES, TOGETHER = 200, 20


@dataclass(slots=True)
class Newest(Found[int]):
    """Numbers of dead letters. `count` of all that match, exact or (`more`) at least so many, of which
    `about` there may be."""

    count: int = 0
    more: bool = False
    about: int | None = None

    @property
    def words(self) -> str:
        """Returns how many, for people."""
        if not self.more:
            return number(self.count)
        if self.about is not None:
            return about(self.about)
        return f"{number(min(self.count, keyset.COUNTED))}+"


def newest(rows: QuerySet[DeadLetter], asked: Query, *, before: int | None, size: int) -> Newest:
    """`rows`: what the person may see, without the filter. `size` dead letters at most, below `before`."""
    with quick():
        if asked.compares:
            return _compared(rows, asked, before, size)
        return _Search(rows, asked, before, size).run()


def _compared(rows: QuerySet[DeadLetter], asked: Query, before: int | None, size: int) -> Newest:
    """What has the words of phrases and values, newest first, compared with the stored text: for BUDGET."""
    end = time.monotonic() + BUDGET
    with_words, found, at = replace(asked, phrases=(), values=()), Newest(), before
    while True:
        some = _Search(rows, with_words, at, CANDIDATES).run()
        for start in range(0, len(some.places), TOGETHER):
            batch = some.places[start : start + TOGETHER]
            found.places += compared(batch, asked.phrases, asked.values)
            at = batch[-1]
            if len(found.places) >= size or time.monotonic() > end:
                return _cut(found, size, at)
        if some.stopped_at is not None:
            return _cut(found, size, some.stopped_at)
        if len(some.places) < CANDIDATES:
            found.count, found.more = len(found.places), before is not None
            return found


def _cut(found: Newest, size: int, at: int) -> Newest:
    """The page so far, which looked down to `at`: how many there are below it nobody knows."""
    found.count, found.more = len(found.places), True
    if found.count < size:
        found.stopped_at = at
    found.places = found.places[:size]
    return found


# The index of words has no positions: what has the words is compared with the text that is stored, and with
# nothing of it that is masked for anybody.


def compared(numbers: Sequence[int], phrases: Sequence[str], values: Sequence[str]) -> list[int]:
    """Those dead letters that have all phrases, each in its body or in one property, and all values, each as
    that of a property; in the same order."""
    masks = everybodys_masks()
    rows = DeadLetter.objects.filter(pk__in=numbers).select_related("content")
    found = set()
    for row in rows:
        names, pairs = masks.names(row), property_texts(row)
        known = {text for name, text in pairs if name not in names}
        if known.issuperset(values) and has_all(texts_of(row, names, pairs) if phrases else (), phrases):
            found.add(row.pk)
    return [number for number in numbers if number in found]


class _Search:
    def __init__(self, rows: QuerySet[DeadLetter], asked: Query, before: int | None, size: int) -> None:
        asked = _with_index(asked)
        self._places = rows.filter(asked.places).order_by()
        self._asked, self._before, self._size = asked, before, size
        self._end = time.monotonic() + BUDGET
        self._found = Newest()

    def run(self) -> Newest:
        words = [condition for condition in self._asked.conditions if condition.wanted]
        plain = [condition for condition in self._asked.conditions if not condition.wanted]
        if not self._asked.conditions:
            return self._unfiltered()
        for condition in [*words, *plain]:
            few = self._few(condition)
            if few is not None:
                rest = [each for each in self._asked.conditions if each is not condition]
                if rest or condition.wanted:
                    return self._of_few(few, rest)
                self._take(few)
                return self._found
        return self._of_many(words, plain)

    # -- nothing but places ----------------------------------------------------------------------------------

    def _unfiltered(self) -> Newest:
        rows = self._places if self._before is None else self._places.filter(pk__lt=self._before)
        self._found.places = list(rows.order_by("-pk").values_list("pk", flat=True)[: self._size])
        self._found.count = keyset.count_up_to(self._places, keyset.COUNTED)
        self._found.more = self._found.count > keyset.COUNTED
        return self._found

    # -- a condition that matches few ------------------------------------------------------------------------

    def _few(self, condition: Condition) -> list[int] | None:
        """The dead letters that match it, newest first; None where they are many, or no index tells."""
        if condition.wanted:
            found = INDEX.numbers(condition.wanted, above=-1, below=2**63 - 1, most=FEW + 1)
        elif condition.by_index:
            found = list(self._places.filter(condition.q).values_list("pk", flat=True)[: FEW + 1])
        else:
            return None
        return None if len(found) > FEW else sorted(found, reverse=True)

    def _of_few(self, few: list[int], rest: Sequence[Condition]) -> Newest:
        """Each is looked at, so the count is exact."""
        for batch in _batches(few):
            self._take(self._matching(batch, rest))
        return self._found

    # -- all match many --------------------------------------------------------------------------------------

    def _of_many(self, words: Sequence[Condition], plain: Sequence[Condition]) -> Newest:
        top, bottom = self._ends()
        if len(self._asked.conditions) == 1 and self._asked.conditions[0].by_index:
            # More than FEW are known to match it, and an index holds them in order.
            self._found.count, self._found.more = FEW, True
            return self._in_order(self._asked.conditions[0])
        looked_at = top + 1
        hi = top + 1 if self._before is None else min(top + 1, self._before)
        for lo, batch in self._windows(words, hi, bottom):
            rest = [*words[1:], *plain]
            self._take(
                self._matching(batch, rest) if batch is not None else self._matching_between(lo, hi, plain)
            )
            looked_at, hi = lo, lo
            full = self._before is not None and len(self._found.places) >= self._size
            if full or self._found.count > keyset.COUNTED or time.monotonic() > self._end:
                break
        if looked_at > bottom:
            self._stopped(top, looked_at, bottom)
        elif self._before is not None:
            self._found.more = True  # newer ones were not counted
        return self._found

    def _in_order(self, condition: Condition) -> Newest:
        rows = self._places.filter(condition.q)
        rows = rows if self._before is None else rows.filter(pk__lt=self._before)
        hi = self._before or self._ends()[0] + 1
        width, bottom = WINDOW, self._ends()[1]
        while len(self._found.places) < self._size and hi > bottom:
            lo = self._lower(hi, width, bottom)
            wanted = self._size - len(self._found.places)
            window = rows.filter(pk__gte=lo, pk__lt=hi).order_by("-pk")
            self._found.places += window.values_list("pk", flat=True)[:wanted]
            hi, width = lo, min(width * 4, WIDEST)
            if time.monotonic() > self._end and len(self._found.places) < self._size and hi > bottom:
                self._found.stopped_at = hi
                break
        return self._found

    def _windows(
        self, words: Sequence[Condition], hi: int, bottom: int
    ) -> Iterator[tuple[int, list[int] | None]]:
        """Lower ends, downwards; with the dead letters that have the words, where words are asked for."""
        width = WINDOW
        while hi > bottom:
            if words and INDEX.newest_first:
                batch = INDEX.numbers(words[0].wanted, above=bottom - 1, below=hi, most=width)
                lo = batch[-1] if len(batch) == width else bottom
                yield lo, batch
            else:
                lo = self._lower(hi, width, bottom)
                most = 2**31
                batch_or_none = (
                    INDEX.numbers(words[0].wanted, above=lo - 1, below=hi, most=most) if words else None
                )
                yield lo, batch_or_none
            hi, width = lo, min(width * 2, WIDEST)

    def _lower(self, hi: int, width: int, bottom: int) -> int:
        """The lower end of a window of `width` dead letters below `hi`: where the index of places is in
        order, dead letters of other places in between do not count."""
        if len(self._asked.queues or ("",)) == 1 and len(self._asked.states or ("", "")) == 1:
            below = self._places.filter(pk__lt=hi).order_by("-pk").values_list("pk", flat=True)
            found = list(below[width - 1 : width])
            return found[0] if found else bottom
        return max(bottom, hi - width)

    def _ends(self) -> tuple[int, int]:
        """The newest and the oldest number there is in these places, or near them."""
        if len(self._asked.queues or ()) == 1 and len(self._asked.states or ()) == 1:
            rows: QuerySet[DeadLetter] = self._places
        else:
            rows = DeadLetter.objects.order_by()
        # Two queries: SQLite reads a whole index for both at once.
        numbers = rows.values_list("pk", flat=True)
        return numbers.order_by("-pk").first() or 0, numbers.order_by("pk").first() or 0

    # -- both ------------------------------------------------------------------------------------------------

    def _matching(self, batch: Sequence[int], rest: Sequence[Condition]) -> list[int]:
        """Those of `batch` that match the rest of the conditions, newest first."""
        for condition in rest:
            if condition.wanted and batch:
                batch = INDEX.those_with(condition.wanted, batch)
        q = Q(*[condition.q for condition in rest if not condition.wanted])
        found: list[int] = []
        for part in _batches(batch):
            found += self._places.filter(q, pk__among=part).values_list("pk", flat=True)
        return sorted(found, reverse=True)

    def _matching_between(self, lo: int, hi: int, conditions: Sequence[Condition]) -> list[int]:
        q = Q(*[condition.q for condition in conditions])
        found = self._places.filter(q, pk__gte=lo, pk__lt=hi)
        return sorted(found.values_list("pk", flat=True), reverse=True)

    def _take(self, matching_ones: Sequence[int]) -> None:
        """Counts all of them; those of the page are the newest below `before`."""
        self._found.count += len(matching_ones)
        room = self._size - len(self._found.places)
        page = (
            matching_ones if self._before is None else [each for each in matching_ones if each < self._before]
        )
        self._found.places += page[: max(room, 0)]

    def _stopped(self, top: int, looked_at: int, bottom: int) -> None:
        found = self._found
        found.more = True
        if self._before is None:
            found.about = round(found.count * (top - bottom + 1) / max(1, top - looked_at + 1))
        if len(found.places) < self._size:
            found.stopped_at = looked_at


def _with_index(asked: Query) -> Query:
    """Uses the index over all queues, which knows only what is dead: another state is a condition like any
    other."""
    if asked.queues is not None or asked.states is None or asked.states == (LetterState.DEAD.value,):
        return asked
    state = Condition(Q(state__in=asked.states))
    return replace(asked, states=None, conditions=(state, *asked.conditions))


def _batches(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), BATCH):
        yield numbers[start : start + BATCH]
