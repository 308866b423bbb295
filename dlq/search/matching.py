"""Conditions on letters by their words, for any query on DeadLetter."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import BooleanField, F, Func, Value

from dlq.search.tables import TABLE
from dlq.search.words import pair_word, words_of

MOST_WORDS = 20
# Shorter begins would match too much to be looked up.
SHORTEST_BEGIN = 3
Wanted = tuple[str, bool]


class NoWords(ValueError):
    """`code`: `none`, `too_many`, `too_short`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def wanted_words(text: str) -> list[Wanted]:
    """Words of a text that somebody looks for, all of which must be there; True: any word that begins so
    (`abc*`).

    Nothing in it is a language: every other character only parts words. Raises NoWords."""
    found: list[Wanted] = []
    for part in text.split():
        words = words_of(part)
        begins = part.endswith("*") and bool(words)
        found += [(word, begins and word == words[-1]) for word in words]
    if not found or len(found) > MOST_WORDS:
        raise NoWords("too_many" if found else "none")
    if any(begins and len(word) < SHORTEST_BEGIN for word, begins in found):
        raise NoWords("too_short")
    return found


def wanted_pairs(pairs: Iterable[tuple[str, str]]) -> list[Wanted]:
    return [(pair_word(name, value), False) for name, value in pairs]


def expression(wanted: Iterable[Wanted]) -> str:
    """In the language of the database; every word is quoted, so no character of one is of that language."""
    if connection.vendor == "postgresql":
        return " & ".join(f"'{_doubled(word)}'{':*' if begins else ''}" for word, begins in wanted)
    return " AND ".join(f'"{word}"{" *" if begins else ""}' for word, begins in wanted)


def _doubled(word: str) -> str:
    """Words have no quotes; a backslash would be one of ours to double."""
    return word.replace("\\", "\\\\").replace("'", "''")


class HasWords(Func):
    """True of letters with all the words. They are a parameter: nothing of them gets into the SQL."""

    output_field = BooleanField()
    conditional = True

    def __init__(self, wanted: Iterable[Wanted]) -> None:
        super().__init__(F("pk"), Value(expression(wanted)))

    def as_sqlite(self, compiler: Any, connection: Any, **_more: Any) -> Any:
        joined = f" IN (SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH "
        return self.as_sql(compiler, connection, template="%(expressions)s)", arg_joiner=joined)

    def as_postgresql(self, compiler: Any, connection: Any, **_more: Any) -> Any:
        joined = f" IN (SELECT letter_id FROM {TABLE} WHERE words @@ "
        return self.as_sql(compiler, connection, template="%(expressions)s::tsquery)", arg_joiner=joined)


def numbers(wanted: Iterable[Wanted], *, above: int, below: int, most: int) -> list[int]:
    """Numbers of letters with all the words, in `above` < number < `below`: the newest `most` of them on
    SQLite, any on PostgreSQL, whose index has no order."""
    if connection.vendor == "postgresql":
        sql = (
            f"SELECT letter_id FROM {TABLE} WHERE words @@ %s::tsquery AND letter_id > %s AND "
            f"letter_id < %s LIMIT %s"
        )
    else:
        sql = (
            f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH %s AND rowid > %s AND rowid < %s "
            "ORDER BY rowid DESC LIMIT %s"
        )
    with connection.cursor() as cursor:
        cursor.execute(sql, [expression(wanted), above, below, most])
        return [number for (number,) in cursor.fetchall()]


def in_order() -> bool:
    """Whether `numbers` are the newest."""
    return connection.vendor != "postgresql"


def those_with(wanted: Iterable[Wanted], candidates: Sequence[int]) -> list[int]:
    """Those of `candidates` that have all the words, in their order. Bounded by them, or by the letters with
    the words between the least and the greatest of them."""
    asked = expression(wanted)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sql = f"SELECT letter_id FROM {TABLE} WHERE letter_id = ANY(%s) AND words @@ %s::tsquery"
            cursor.execute(sql, [list(candidates), asked])
        else:
            sql = f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH %s AND rowid >= %s AND rowid <= %s"
            cursor.execute(sql, [asked, min(candidates), max(candidates)])
        having = {number for (number,) in cursor.fetchall()}
    return [number for number in candidates if number in having]
