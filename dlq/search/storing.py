"""Putting letters into the index of words: in the transaction that stores them, or later, in bounded
pieces."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from dlq.masks import everybodys_masks
from dlq.models import DeadLetter, WordRebuild
from dlq.search.content import left_out, property_texts, texts_of
from dlq.search.tables import TABLE
from dlq.search.words import all_words

# Letters of one step of `catch_up`; a body has up to 1 MB.
PIECE = 200


def prepare(rows: Sequence[DeadLetter]) -> list[list[str]]:
    """The words of letters that are about to be stored. Sets `words_without`."""
    masks = everybodys_masks()
    found = []
    for row in rows:
        names, pairs = masks.names(row), property_texts(row)
        found.append(all_words(texts_of(row, names, pairs), pairs))
        row.words_without = left_out(names)
    return found


def add(rows: Sequence[DeadLetter], words: Sequence[Sequence[str]]) -> None:
    """After the letters got their numbers, in the same transaction: a kill before its commit leaves
    neither."""
    pairs = [(row.pk, each) for row, each in zip(rows, words, strict=True) if each]
    if not pairs:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            _copy(cursor, pairs)
        else:
            cursor.executemany(
                f"INSERT INTO {TABLE} (rowid, words) VALUES (%s, %s)",
                [(pk, " ".join(each)) for pk, each in pairs],
            )


def _copy(cursor: Any, pairs: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Words have neither quotes nor backslashes."""
    with (
        connection.wrap_database_errors,
        cursor.cursor.copy(f"COPY {TABLE} (letter_id, words) FROM STDIN") as copy,
    ):
        for pk, words in pairs:
            copy.write_row((pk, "'" + "' '".join(words) + "'"))


def catch_up(most: int = PIECE) -> int:
    """Words of letters that were stored before there was an index of words; how many. Two at a time take
    turns, or one of them finds nothing: the letters are locked, where the database has locks of rows. While
    the index is built again on SQLite, the rebuild comes to them."""
    with transaction.atomic():
        if connection.vendor == "sqlite" and WordRebuild.objects.filter(open=True).exists():
            return 0
        rows = DeadLetter.objects.filter(words_without="").select_related("content").order_by("pk")
        letters = list(rows.select_for_update(skip_locked=True, of=("self",))[:most])
        put(letters)
    return len(letters)


def put(letters: Sequence[DeadLetter]) -> None:
    """Adds the words of letters of which the index has none, and marks them. In a transaction."""
    add(letters, prepare(letters))
    marked: dict[str, list[int]] = defaultdict(list)
    for letter in letters:
        marked[letter.words_without].append(letter.pk)
    for without, numbers in marked.items():
        DeadLetter.objects.filter(pk__in=numbers).update(words_without=without)
