"""Conditions on dead letters by their words, for any query on DeadLetter."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import BooleanField, F, Func, Value

from dlq.search.words import pair_word, words_of

# -- the inverted index, a table of each database ------------------------------------------------------------
# It is no model, because no field of Django is one. PostgreSQL: `words` as tsvector beside the number of the
# dead letter, with GIN, which finds the dead letters of a word; a table of its own, because every change of a
# dead letter's row would write all of its words again. SQLite: FTS5 that keeps neither texts nor positions;
# its row number is the dead letter's. It cannot forget a row without its words, and need not: numbers are
# never used again, and whoever asks joins with the dead letters.


TABLE = "dlq_words"

POSTGRESQL = (
    f"CREATE TABLE {TABLE} (letter_id bigint PRIMARY KEY, words tsvector NOT NULL)",
    f"CREATE INDEX {TABLE}_of_letters ON {TABLE} USING gin (words)",
    # Words go with their dead letter, by whatever way it is deleted.
    f"CREATE FUNCTION {TABLE}_forget() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN DELETE FROM {TABLE} WHERE letter_id = OLD.id; RETURN NULL; END $$",
    f"CREATE TRIGGER {TABLE}_forget AFTER DELETE ON dlq_deadletter FOR EACH ROW EXECUTE FUNCTION "
    f"{TABLE}_forget()",
)
NO_POSTGRESQL = (
    f"DROP TRIGGER {TABLE}_forget ON dlq_deadletter",
    f"DROP FUNCTION {TABLE}_forget()",
    f"DROP TABLE {TABLE}",
)
# Words come ready from us (dlq/search/words.py): ASCII only parts them, all other characters are of a word.
SQLITE = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5(words, content='', detail=none, columnsize=0, "
    "tokenize=\"ascii tokenchars '_='\")",
)
NO_SQLITE = (f"DROP TABLE {TABLE}",)


def create(apps: Any, editor: Any) -> None:
    _run(editor, POSTGRESQL, SQLITE)


def drop(apps: Any, editor: Any) -> None:
    _run(editor, NO_POSTGRESQL, NO_SQLITE)


def _run(editor: Any, postgresql: tuple[str, ...], sqlite: tuple[str, ...]) -> None:
    for statement in postgresql if editor.connection.vendor == "postgresql" else sqlite:
        editor.execute(statement)


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
    """Returns it in the language of the database; every word is quoted, so no character of one is of that
    language."""
    if connection.vendor == "postgresql":
        return " & ".join(f"'{_doubled(word)}'{':*' if begins else ''}" for word, begins in wanted)
    return " AND ".join(f'"{word}"{" *" if begins else ""}' for word, begins in wanted)


def _doubled(word: str) -> str:
    """Words have no quotes; a backslash would be one of ours to double."""
    return word.replace("\\", "\\\\").replace("'", "''")


class HasWords(Func):
    """True of dead letters with all the words. They are a parameter: nothing of them gets into the SQL."""

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


def matching_numbers(wanted: Iterable[Wanted], *, above: int, below: int, most: int) -> list[int]:
    """Numbers of dead letters with all the words, in `above` < number < `below`: the newest `most` of them on
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
    """Returns whether `matching_numbers` are the newest."""
    return connection.vendor != "postgresql"


def those_with(wanted: Iterable[Wanted], candidates: Sequence[int]) -> list[int]:
    """Those of `candidates` that have all the words, in their order. Bounded by them, or by the dead letters
    with the words between the least and the greatest of them."""
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
