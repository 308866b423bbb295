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

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from console.jobs import crash
from dlq.dead_letters.masks import everybodys_masks
from dlq.models import DeadLetter, WordRebuild
from dlq.search.word_index import index_words, masked_names_digest, property_texts, texts_of
from dlq.search.words import INDEX, all_words

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
    INDEX.begin_again()
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
    INDEX.forget_part([letter.pk for letter in letters], rebuild.position, rebuild_to)
    index_words(letters)
    crash.point("reindex: put")
    rebuild.letters, rebuild.position = rebuild.letters + len(letters), rebuild_to
    if rebuild.position >= rebuild.last:
        rebuild.open, rebuild.ended_at = False, now
    rebuild.save()
    return rebuild


def pending(letters: Iterable[DeadLetter]) -> set[int]:
    """Those of which an index that began empty has no words yet, because a rebuild comes to them later. In a
    transaction."""
    rebuild = open_rebuild() if INDEX.needs_words else None
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


# -- words of dead letters out of the index of words ---------------------------------------------------------


def forget_words(letters: Sequence[DeadLetter]) -> None:
    """Call it in the transaction in which they forget what they held, and before. `letters` with their
    content."""
    known = [letter for letter in letters if letter.words_without]
    if not known:
        return
    if INDEX.needs_words:
        _forget_with_words(known)
    else:
        INDEX.forget([(letter.pk, ()) for letter in known])


def _forget_with_words(letters: Sequence[DeadLetter]) -> None:
    """Where other names are masked since, nobody knows the words that the index was given: then it is built
    again."""
    masks, waiting = everybodys_masks(), pending(letters)
    there = [letter for letter in letters if letter.pk not in waiting]
    if any(masked_names_digest(masks.names(letter)) != letter.words_without for letter in there):
        begin_rebuild(timezone.now(), again=True)
        return
    rows = [(letter, property_texts(letter)) for letter in there]
    INDEX.forget(
        [
            (letter.pk, all_words(texts_of(letter, masks.names(letter), pairs), pairs))
            for letter, pairs in rows
        ]
    )


def put_words(letters: Sequence[DeadLetter]) -> None:
    """Indexes those whose words were taken out. What is not in the index yet, `catch_up` or a rebuild
    adds."""
    waiting = pending(letters)
    index_words([letter for letter in letters if letter.words_without and letter.pk not in waiting])
