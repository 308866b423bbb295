"""Building the index of words again, in bounded pieces, while the site runs.

A row (`WordRebuild`) says how far it is. Each piece is one transaction: the words of its dead letters, their
mark `words_without` and the new position. Killed before its commit nothing of the piece is there, after it
the next piece follows; the worker goes on with one that nobody drives (`dlq.put_words`). Words are made of
what a dead letter holds now, so nothing comes back of one that was erased or whose body is over.

SQLite's index cannot forget a dead letter without its very words. There the rebuild begins with an empty
index, and until it has reached a dead letter nobody else adds or removes words of it: `catch_up` waits, and
`pending` dead letters have none. On PostgreSQL a piece replaces the words of its dead letters, so it may meet
whoever stores or erases them: rows are locked.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from console.jobs import crash
from dlq.dead_letters.masks import everybodys_masks
from dlq.models import DeadLetter, WordRebuild
from dlq.search.matching import NO_SQLITE, SQLITE, TABLE
from dlq.search.storing import index_words, masked_names_digest, property_texts, texts_of
from dlq.search.words import all_words

# Dead letters of a piece, and about how many bytes of bodies they may have.
PIECE, PIECE_BYTES = 200, 8 * 1024 * 1024


def open_rebuild() -> WordRebuild | None:
    return WordRebuild.objects.filter(open=True).first()


@transaction.atomic
def begin_rebuild(now: datetime, *, again: bool = False) -> WordRebuild:
    """The open one goes on; `again`: from the first dead letter, because what it put in is no longer
    right."""
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
    index_words(letters)
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
    """The dead letters of the next piece, locked, and up to which number they are all that there are."""
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
    """Their words, and words of dead letters that are gone. A dead letter that is stored at this moment comes
    with its words: a statement sees both or neither."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {TABLE} WHERE letter_id = ANY(%s)", [list(numbers)])
        cursor.execute(
            f"DELETE FROM {TABLE} AS w WHERE letter_id > %s AND letter_id <= %s "
            "AND NOT EXISTS (SELECT 1 FROM dlq_deadletter d WHERE d.id = w.letter_id)",
            [after, up_to],
        )


# -- words of dead letters out of the index of words ---------------------------------------------------------


def forget_words(letters: Sequence[DeadLetter]) -> None:
    """Call it in the transaction in which they forget what they held, and before. `letters` with their
    content."""
    known = [letter for letter in letters if letter.words_without]
    if not known:
        return
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                f"DELETE FROM {TABLE} WHERE letter_id = ANY(%s)", [[letter.pk for letter in known]]
            )
        return
    _forget_on_sqlite(known)


def _forget_on_sqlite(letters: Sequence[DeadLetter]) -> None:
    """Its index forgets a dead letter only by the very words that it was given. Where other names are masked
    since, nobody knows these: then the index is built again, which begins with an empty one."""
    masks, pairs_of, waiting = everybodys_masks(), property_texts, pending(letters)
    there = [letter for letter in letters if letter.pk not in waiting]
    if any(masked_names_digest(masks.names(letter)) != letter.words_without for letter in there):
        begin_rebuild(timezone.now(), again=True)
        return
    rows = []
    for letter in there:
        pairs = pairs_of(letter)
        if words := all_words(texts_of(letter, masks.names(letter), pairs), pairs):
            rows.append((letter.pk, " ".join(words)))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {TABLE} ({TABLE}, rowid, words) VALUES ('delete', %s, %s)", rows)


def merge() -> None:
    """Merges parts of the index on SQLite, a bounded step at a time: only so leaves it what was forgotten."""
    if connection.vendor != "sqlite":
        return
    pages = -STEP  # the first step takes all parts together
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT total_changes()")
            before = cursor.fetchone()[0]
            cursor.execute(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('merge', %s)", [pages])
            cursor.execute("SELECT total_changes()")
            if cursor.fetchone()[0] - before < 2:
                return
        pages = STEP


# Pages of the index that one step writes.
STEP = 500


def put_words(letters: Sequence[DeadLetter]) -> None:
    """Indexes those whose words were taken out. What is not in the index yet, `catch_up` or a rebuild
    adds."""
    waiting = pending(letters)
    index_words([letter for letter in letters if letter.words_without and letter.pk not in waiting])
