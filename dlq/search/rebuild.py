"""Building the index of words again, in bounded pieces, while the site runs.

A row (`WordRebuild`) says how far it is. Each piece is one transaction: the words of its letters, their mark
`words_without` and the new position. Killed before its commit nothing of the piece is there, after it the
next piece follows; the worker goes on with one that nobody drives (`dlq.put_words`). Words are made of what a
letter holds now, so nothing comes back of one that was erased or whose body is over.

SQLite's index cannot forget a letter without its very words. There the rebuild begins with an empty index,
and until it has reached a letter nobody else adds or removes words of it: `catch_up` waits, and `pending`
letters have none. On PostgreSQL a piece replaces the words of its letters, so it may meet whoever stores or
erases them: rows are locked.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate

from django.db import connection, transaction
from django.db.models import Max

from dlq import crash
from dlq.models import DeadLetter, WordRebuild
from dlq.search.storing import put
from dlq.search.tables import NO_SQLITE, SQLITE, TABLE

# Letters of a piece, and about how many bytes of bodies they may have.
PIECE, PIECE_BYTES = 200, 8 * 1024 * 1024


def open_rebuild() -> WordRebuild | None:
    return WordRebuild.objects.filter(open=True).first()


@transaction.atomic
def begin(now: datetime, *, again: bool = False) -> WordRebuild:
    """The open one goes on; `again`: from the first letter, because what it put in is no longer right."""
    rebuild = WordRebuild.objects.select_for_update().filter(open=True).first()
    if rebuild is not None and not again:
        return rebuild
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for statement in (*NO_SQLITE, *SQLITE):
                cursor.execute(statement)
    last = DeadLetter.objects.aggregate(last=Max("pk"))["last"] or 0
    values = {"last": last, "position": 0, "letters": 0, "began_at": now}
    if rebuild is None:
        return WordRebuild.objects.create(**values)
    WordRebuild.objects.filter(pk=rebuild.pk).update(**values)
    rebuild.refresh_from_db()
    return rebuild


@transaction.atomic
def step(now: datetime) -> WordRebuild | None:
    """One piece; the rebuild as it is then, None where none is open. Two at a time take turns."""
    rebuild = WordRebuild.objects.select_for_update().filter(open=True).first()
    if rebuild is None:
        return None
    letters, rebuild_to = _following(rebuild)
    if connection.vendor == "postgresql":
        _remove([letter.pk for letter in letters], rebuild.position, rebuild_to)
    put(letters)
    crash.point("reindex: put")
    rebuild.letters, rebuild.position = rebuild.letters + len(letters), rebuild_to
    if rebuild.position >= rebuild.last:
        rebuild.open, rebuild.ended_at = False, now
    rebuild.save()
    return rebuild


def pending(letters: Iterable[DeadLetter]) -> set[int]:
    """Those of which SQLite's index has no words yet, because a rebuild comes to them later. In a
    transaction."""
    rebuild = open_rebuild() if connection.vendor == "sqlite" else None
    if rebuild is None:
        return set()
    return {letter.pk for letter in letters if rebuild.position < letter.pk <= rebuild.last}


def _following(rebuild: WordRebuild) -> tuple[list[DeadLetter], int]:
    """The letters of the next piece, locked, and up to which number they are all that there are."""
    rows = DeadLetter.objects.filter(pk__gt=rebuild.position, pk__lte=rebuild.last).order_by("pk")
    sizes = list(rows.values_list("pk", "size")[:PIECE])
    sums = accumulate(size for _pk, size in sizes)
    few = [pk for (pk, _size), total in zip(sizes, sums, strict=True) if total <= PIECE_BYTES] or [
        pk for pk, _size in sizes[:1]
    ]
    whole = len(few) == len(sizes) < PIECE
    locked = DeadLetter.objects.filter(pk__in=few).order_by("pk").select_related("content")
    return list(locked.select_for_update(of=("self",))), rebuild.last if whole else few[-1]


def _remove(numbers: Sequence[int], after: int, up_to: int) -> None:
    """Their words, and words of letters that are gone. A letter that is stored at this moment comes with its
    words: a statement sees both or neither."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {TABLE} WHERE letter_id = ANY(%s)", [list(numbers)])
        cursor.execute(
            f"DELETE FROM {TABLE} AS w WHERE letter_id > %s AND letter_id <= %s "
            "AND NOT EXISTS (SELECT 1 FROM dlq_deadletter d WHERE d.id = w.letter_id)",
            [after, up_to],
        )
