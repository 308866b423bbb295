"""Dead letters that have left their queues: the body goes some days after that, the row more days after it.

What is still dead is kept whole, however old it is. `state_at` of any other state is when the letter left;
every way out of a queue writes it. With the body go the head of it, its words in the index, and what was
fetched of it; the properties stay with the row, and so do their words. Copies that edits made go as long
after the end of their job; what was discarded has a row of its own in the bin, which is dead until it leaves
that.

Each chunk is one transaction. Killed before its commit all of the chunk is there, after it none; the marks
(`body_deleted_at`) and the rows that are left say where to go on. A letter that comes back meanwhile has its
row locked by either side: it is dead when the chunk looks again and stays whole, or the walk that brings it
back sees the mark and brings the body too (`dlq.index.walk`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from console.database.storage import raw_delete, shrink
from console.jobs import crash
from dlq.models import (
    OPEN_FETCHES,
    UNFINISHED_JOBS,
    DeadLetter,
    FetchState,
    ItemState,
    LetterContent,
    LetterEdit,
    LetterState,
    Outcome,
    ReplayItem,
    WholeFetch,
)
from dlq.models.replay import DELIVERING
from dlq.search import rebuild
from dlq.search.words import INDEX
from insights.archive.planning import archived_before
from retention.ages.limits import AgePreview, before, some_at_a_time
from retention.batches import Chunks, TimeIsUp

ROWS, BODIES, EDITS = "dead_letters", "letter_bodies", "edited_bodies"
JOB, OUTCOME, ARCHIVE = "job", "outcome", "archive"
LOOKED_AT = 500
# Letters of one chunk; on SQLite their bodies are read, of up to 1 MB each.
MOST_AT_ONCE = 100
# As the index of the letters that have left says it: with a parameter SQLite would not use it.
LEFT_SQL = f"NOT (dlq_deadletter.state = '{LetterState.DEAD.value}')"


class Old(NamedTuple):
    """A letter that left its queue long enough ago, or (`id` of any kind) the copy of an edit."""

    id: Any
    at: datetime
    setting_key: str
    seen_at: datetime


Reasons = dict[Any, str]


# -- which ---------------------------------------------------------------------------------------------------


def rows_before(now: datetime) -> datetime | None:
    return before(now, settings.MA_KEEP_DEAD_LETTERS_DAYS)


def bodies_before(now: datetime) -> datetime | None:
    return before(now, settings.MA_KEEP_DEAD_LETTER_BODIES_DAYS)


def left_before(older: datetime) -> QuerySet[DeadLetter]:
    return DeadLetter.objects.extra(where=[LEFT_SQL]).filter(state_at__lt=older)


def with_bodies_before(older: datetime) -> QuerySet[DeadLetter]:
    return left_before(older).filter(body_deleted_at=None)


def copies_before(older: datetime) -> QuerySet[LetterEdit]:
    """Returns copies of jobs that ended before, and of which nothing is awaited."""
    rows = LetterEdit.objects.filter(
        body_deleted_at=None, planned_at__lt=older, item__job__finished_at__lt=older
    )
    awaited = Q(item__state=ItemState.GIVEN_BACK, item__outcome=Outcome.WAITING)
    return rows.exclude(item__job__state__in=UNFINISHED_JOBS).exclude(awaited)


def _letters(rows: QuerySet[DeadLetter]) -> Iterator[list[Old]]:
    """The one that left first is first; each is looked at once."""
    after: Old | None = None
    while True:
        following = rows
        if after is not None:
            following = rows.filter(Q(state_at__gt=after.at) | Q(pk__gt=after.id), state_at__gte=after.at)
        values = following.order_by("state_at", "pk").values_list("pk", "state_at", "setting_key", "seen_at")
        found = [Old(*row) for row in values[:LOOKED_AT]]
        if not found:
            return
        after = found[-1]
        yield found


def _copies(rows: QuerySet[LetterEdit]) -> Iterator[list[Old]]:
    after: Old | None = None
    while True:
        following = rows
        if after is not None:
            following = rows.filter(Q(planned_at__gt=after.at) | Q(pk__gt=after.id), planned_at__gte=after.at)
        values = following.order_by("planned_at", "pk").values_list(
            "pk", "planned_at", "item__job__setting_key", "planned_at"
        )
        found = [Old(*row) for row in values[:LOOKED_AT]]
        if not found:
            return
        after = found[-1]
        yield found


def held_letters(letters: Sequence[Old], now: datetime) -> Reasons:
    """{letter: why it stays}: a job has it, what becomes of it is not known yet, or the archive does not have
    it."""
    numbers = [each.id for each in letters]
    found: Reasons = {}
    for reason, which in ((OUTCOME, _awaited()), (JOB, _unfinished())):
        items = _items(which).filter(letter__in=numbers)
        found |= dict.fromkeys(items.values_list("letter", flat=True), reason)
    if (safe := archived_before("letters", now)) is not None:
        for each in letters:
            if each.seen_at >= safe:
                found.setdefault(each.id, ARCHIVE)
    return found


def held_rows(letters: Sequence[Old], now: datetime) -> Reasons:
    """The same of whole rows: with them go what became of their replays, which the archive has, too."""
    found = held_letters(letters, now)
    if (safe := archived_before("replays", now)) is not None:
        late = _items(Q(outcome_at__gte=safe)).filter(letter__in=[each.id for each in letters])
        for letter in late.values_list("letter", flat=True):
            found.setdefault(letter, ARCHIVE)
    return found


def _unfinished() -> Q:
    return Q(job__state__in=UNFINISHED_JOBS)


def _awaited() -> Q:
    return Q(state=ItemState.GIVEN_BACK, outcome=Outcome.WAITING, job__action__in=DELIVERING)


def _items(which: Q) -> QuerySet[ReplayItem]:
    return ReplayItem.objects.filter(which).order_by()


# -- deleting ------------------------------------------------------------------------------------------------


def delete_old_rows(now: datetime, chunks: Chunks) -> None:
    """Raises TimeIsUp."""
    if (older := rows_before(now)) is not None:
        delete = partial(_delete_rows, older)
        _each(ROWS, _letters(left_before(older)), partial(held_rows, now=now), delete, chunks)


def delete_old_bodies(now: datetime, chunks: Chunks) -> None:
    """Raises TimeIsUp."""
    if (older := bodies_before(now)) is not None:
        delete = partial(_delete_bodies, older, now)
        _each(BODIES, _letters(with_bodies_before(older)), partial(held_letters, now=now), delete, chunks)


def delete_old_copies(now: datetime, chunks: Chunks) -> None:
    """Raises TimeIsUp."""
    if (older := bodies_before(now)) is not None:
        delete = partial(_delete_copies, older, now)
        _each(EDITS, _copies(copies_before(older)), lambda _copies: {}, delete, chunks)


def _each(
    what: str,
    parts: Iterator[list[Old]],
    held_of: Callable[[Sequence[Old]], Reasons],
    delete: Callable[[Sequence[Old]], Counter[str]],
    chunks: Chunks,
) -> None:
    for some in parts:
        if chunks.over:
            raise TimeIsUp
        stays = held_of(some)
        going = [each for each in some if each.id not in stays]
        for part in some_at_a_time(going, chunks):
            for begin in range(0, len(part), MOST_AT_ONCE):
                few = part[begin : begin + MOST_AT_ONCE]
                chunks.delete_of_many(
                    what, partial(delete, few), {_key(each): (_key(each), None) for each in few}
                )


def _key(old: Old) -> str:
    """Returns the key as figures have it; what a letter says may be longer."""
    return old.setting_key[:200]


def _counted(olds: Sequence[Old], deleted: Collection[Any]) -> Counter[str]:
    return Counter(_key(each) for each in olds if each.id in deleted)


def _locked(olds: Sequence[Old], older: datetime, **also: Any) -> list[DeadLetter]:
    """What still has left of these, with its content; nobody else changes them before the end of the
    transaction."""
    items = ReplayItem.objects.filter(_unfinished() | _awaited(), letter=OuterRef("pk"))
    rows = DeadLetter.objects.filter(
        ~Exists(items), pk__in=[each.id for each in olds], state_at__lt=older, **also
    )
    letters = (
        rows.exclude(state=LetterState.DEAD)
        .select_related("content")
        .defer("content__encoded")
        .order_by("pk")
    )
    if not INDEX.needs_words:
        letters = letters.defer("content__encoded", "content__body_text")
    return list(letters.select_for_update(of=("self",)))


def _delete_bodies(older: datetime, now: datetime, olds: Sequence[Old]) -> Counter[str]:
    letters = _locked(olds, older, body_deleted_at=None)
    numbers = [letter.pk for letter in letters]
    rebuild.forget_words(letters)
    crash.point("letter ages: words forgotten")
    _empty_contents(letters)
    DeadLetter.objects.filter(pk__in=numbers).update(body_deleted_at=now)
    fetches = WholeFetch.objects.filter(letter__in=numbers)
    fetches.filter(state__in=OPEN_FETCHES).update(state=FetchState.CANCELLED, ended_at=now)
    fetches.exclude(encoded=None).update(encoded=None, state=FetchState.DROPPED)
    for letter in letters:
        letter.encoded, letter.body_text = b"", ""
    rebuild.put_words(letters)
    crash.point("letter ages: bodies deleted")
    return _counted(olds, set(numbers))


def _empty_contents(letters: Sequence[DeadLetter]) -> None:
    contents = LetterContent.objects.filter(pk__in=[letter.pk for letter in letters])
    known = [
        LetterContent(letter_id=x.pk, properties=x.properties, annotations=x.annotations) for x in letters
    ]
    shrink(contents, known, encoded=b"", body_text="")


def _delete_copies(older: datetime, now: datetime, olds: Sequence[Old]) -> Counter[str]:
    known = list(copies_before(older).filter(pk__in=[each.id for each in olds]).defer("encoded", "diff"))
    numbers = {edit.pk for edit in known}
    shrink(LetterEdit.objects.filter(pk__in=numbers), known, encoded=b"", diff=[], body_deleted_at=now)
    return _counted(olds, numbers)


def _delete_rows(older: datetime, olds: Sequence[Old]) -> Counter[str]:
    """Deletes what refers to them too: the items of their finished jobs, whose counts stay with the job."""
    letters = _locked(olds, older)
    numbers = [letter.pk for letter in letters]
    rebuild.forget_words(letters)
    items = ReplayItem.objects.filter(letter__in=numbers)
    LetterEdit.objects.filter(item__in=items).delete()
    ReplayItem.objects.filter(died_as__in=numbers).update(died_as=None)
    raw_delete(items)
    raw_delete(WholeFetch.objects.filter(letter__in=numbers))
    raw_delete(LetterContent.objects.filter(pk__in=numbers))
    crash.point("letter ages: contents deleted")
    raw_delete(DeadLetter.objects.filter(pk__in=numbers))
    return _counted(olds, set(numbers))


# -- foreseeing ----------------------------------------------------------------------------------------------


def foresee(now: datetime, most: int) -> Iterator[AgePreview]:
    """What would go of each setting, and what would be held; looked at up to `most` letters of each kind."""
    going_rows: set[Any] = set()
    if (older := rows_before(now)) is not None:
        yield from _foreseen(
            ROWS, older, _letters(left_before(older)), partial(held_rows, now=now), going_rows, most
        )
    if (older := bodies_before(now)) is not None:
        bodies = (
            [each for each in some if each.id not in going_rows]
            for some in _letters(with_bodies_before(older))
        )
        yield from _foreseen(BODIES, older, bodies, partial(held_letters, now=now), set(), most)
        yield from _foreseen(EDITS, older, _copies(copies_before(older)), lambda _copies: {}, set(), most)


def _foreseen(
    what: str,
    older: datetime,
    parts: Iterator[list[Old]],
    held_of: Callable[[Sequence[Old]], Mapping[Any, str]],
    going: set[Any],
    most: int,
) -> Iterator[AgePreview]:
    counts: Counter[str] = Counter()
    kept: dict[str, Counter[str]] = {}
    looked_at, cut = 0, False
    for some in parts:
        if looked_at >= most:
            cut = True
            break
        looked_at += len(some)
        stays = held_of(some)
        for each in some:
            if each.id in stays:
                kept.setdefault(_key(each), Counter())[stays[each.id]] += 1
            else:
                counts[_key(each)] += 1
                going.add(each.id)
    for key in sorted(counts.keys() | kept.keys()):
        yield AgePreview(what, older, counts[key], cut, key, dict(kept.get(key, {})))
