"""Words of letters out of the index of words."""

from collections.abc import Sequence

from django.db import connection
from django.utils import timezone

from dlq.masks import everybodys_masks
from dlq.models import DeadLetter
from dlq.search.content import left_out, property_texts, texts_of
from dlq.search.rebuild import begin, pending
from dlq.search.tables import TABLE
from dlq.search.words import all_words


def forget(letters: Sequence[DeadLetter]) -> None:
    """In the transaction in which they forget what they held, and before. `letters` with their content."""
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
    """Its index forgets a letter only by the very words that it was given. Where other names are masked
    since, nobody knows these: then the index is built again, which begins with an empty one."""
    masks, pairs_of, waiting = everybodys_masks(), property_texts, pending(letters)
    there = [letter for letter in letters if letter.pk not in waiting]
    if any(left_out(masks.names(letter)) != letter.words_without for letter in there):
        begin(timezone.now(), again=True)
        return
    rows = []
    for letter in there:
        pairs = pairs_of(letter)
        if words := all_words(texts_of(letter, masks.names(letter), pairs), pairs):
            rows.append((letter.pk, " ".join(words)))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {TABLE} ({TABLE}, rowid, words) VALUES ('delete', %s, %s)", rows)


def merge() -> None:
    """On SQLite: what was forgotten leaves the index by merging its parts, a bounded step at a time."""
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
