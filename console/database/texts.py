"""How texts are found: by a part of them, whatever the case of any script, by phrases, or by their words."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created
from django.db.models import BooleanField, CharField, F, Func, TextField, Value
from django.db.models.lookups import IContains

from console.database.bulk import insert_values

# -- `icontains`: SQLite's LIKE knows the case of ASCII only, PostgreSQL's of all ----------------------------


_FUNCTION = "ma_has_part"


class HasPart(IContains):
    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        if not self.rhs_is_direct_value():
            sql, params = self.as_sql(compiler, connection)
            return sql, list(params)
        text, params = self.process_lhs(compiler, connection)
        return f"{_FUNCTION}({text}, %s)", [*params, str(self.rhs).casefold()]


def has_part(text: str | None, part: str) -> bool | None:
    """`part` is folded already. None where there is no text."""
    return None if text is None else part in str(text).casefold()


def _connected(connection: Any, **_signal: Any) -> None:
    if connection.vendor == "sqlite":
        connection.connection.create_function(_FUNCTION, 2, has_part, deterministic=True)


def register_has_part() -> None:
    for each in (CharField, TextField):
        each.register_lookup(HasPart)
    connection_created.connect(_connected, dispatch_uid=_FUNCTION)


# -- phrases: what stands in quotes, found next to each other, in this order, as words of their own ----------


# Pairs of quotes that people type, and that their programs make of them.
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|«([^»]*)»')
_WORD = re.compile(r"\w")


def parted(text: str) -> tuple[tuple[str, ...], str]:
    """The phrases of a text, and what stands beside them. A phrase without a letter or digit is none."""
    quoted = [" ".join(next(filter(None, each.groups()), "").split()) for each in _QUOTED.finditer(text)]
    phrases = tuple(each for each in quoted if _WORD.search(each))
    return phrases, _QUOTED.sub(" ", text).strip() if phrases else text


def pattern(phrase: str) -> str:
    """A regular expression for it, the same in Python and in PostgreSQL. What it begins or ends with is a
    whole word where it is one."""
    inner = r"\s+".join(re.escape(word) for word in phrase.split())
    begins = r"(^|\W)" if _WORD.match(phrase[0]) else ""
    ends = r"(\W|$)" if _WORD.match(phrase[-1]) else ""
    return f"{begins}{inner}{ends}"


def folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def has_all(texts: Iterable[str], phrases: Iterable[str]) -> bool:
    """Whether each phrase stands in one of the texts."""
    patterns = [re.compile(pattern(folded(phrase))) for phrase in phrases]
    plain = [folded(text) for text in texts]
    return all(any(each.search(text) for text in plain) for each in patterns)


# -- an inverted index of the words of rows ------------------------------------------------------------------


# A word that is looked for; True: any word that begins so.
Wanted = tuple[str, bool]


class WordIndex(ABC):
    """A table with the words of each row of another one, `rows`; `number`: the column of its keys, which are
    never used again. It is no model, because no field of Django is one.

    Words come ready: ASCII only parts them, but for letters, digits, `_` and `=`."""

    # It forgets a row only by the very words that it was given; so a rebuild begins with an empty index.
    needs_words = False
    # `numbers` are the newest ones.
    newest_first = False
    created: tuple[str, ...]
    dropped: tuple[str, ...]
    matches: str
    cast = order = ""
    both: str

    def __init__(self, table: str, rows: str, number: str) -> None:
        self.table, self.rows, self.number = table, rows, number
        self.matches = self.matches.format(table=table)

    def statements(self, kind: Sequence[str]) -> list[str]:
        """Returns those of `created` or `dropped`."""
        return [each.format(table=self.table, number=self.number, rows=self.rows) for each in kind]

    def add(self, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        if rows:
            values = [(number, self._stored(words)) for number, words in rows]
            insert_values(self.table, (self.number, "words"), values)

    @abstractmethod
    def forget(self, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Call it before they forget what they held, in the same transaction."""

    def begin_again(self) -> None:  # noqa: B027 - nothing to do by default
        """Empties it where a rebuild begins so."""

    def forget_part(self, numbers: Sequence[int], after: int, up_to: int) -> None:  # noqa: B027
        """Where a rebuild begins with what was there: forgets these rows, and all that are gone from this
        range."""

    def merge(self) -> None:  # noqa: B027
        """Takes what was forgotten out of the file."""

    def condition(self, wanted: Iterable[Wanted]) -> Func:
        """Is true of rows with all the words, in any query on them. The words are a parameter: nothing of
        them gets into the SQL."""
        joined = f" IN (SELECT {self.number} FROM {self.table} WHERE {self.matches} "
        return Func(
            F("pk"), Value(self._expression(wanted)), arg_joiner=joined,
            template=f"%(expressions)s{self.cast})", output_field=BooleanField(),
        )  # fmt: skip

    def numbers(self, wanted: Iterable[Wanted], *, above: int, below: int, most: int) -> list[int]:
        """Returns at most so many of those with all the words, in `above` < number < `below`."""
        between = f"{self.number} > %s AND {self.number} < %s{self.order} LIMIT %s"
        return self._numbers(wanted, between, [above, below, most])

    def those_with(self, wanted: Iterable[Wanted], candidates: Sequence[int]) -> list[int]:
        """Those of `candidates` that have all the words, in their order. Bounded by them, or by the rows with
        the words between the least and the greatest of them."""
        having = set(self._numbers(wanted, *self._near(candidates)))
        return [number for number in candidates if number in having]

    def _numbers(self, wanted: Iterable[Wanted], rest: str, parameters: list[Any]) -> list[int]:
        where = f"{self.matches} %s{self.cast} AND {rest}"
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {self.number} FROM {self.table} WHERE {where}",
                [self._expression(wanted), *parameters],
            )
            return [number for (number,) in cursor.fetchall()]

    def _expression(self, wanted: Iterable[Wanted]) -> str:
        """Every word is quoted, so no character of one is of the language of the database."""
        return self.both.join(self._quoted(word, begins) for word, begins in wanted)

    @abstractmethod
    def _quoted(self, word: str, begins: bool) -> str: ...

    @abstractmethod
    def _stored(self, words: Iterable[str]) -> str: ...

    @abstractmethod
    def _near(self, numbers: Sequence[int]) -> tuple[str, list[Any]]:
        """Returns a condition that holds for these, and perhaps for some between them."""


class TsvectorWords(WordIndex):
    """On PostgreSQL: `tsvector` with GIN, which finds the rows of a word and has no order. It is a table of
    its own, because every change of a row would write all of its words again."""

    created = (
        "CREATE TABLE {table} ({number} bigint PRIMARY KEY, words tsvector NOT NULL)",
        "CREATE INDEX {table}_of_letters ON {table} USING gin (words)",
        # Words go with their row, by whatever way it is deleted.
        "CREATE FUNCTION {table}_forget() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN DELETE FROM {table} WHERE {number} = OLD.id; RETURN NULL; END $$",
        "CREATE TRIGGER {table}_forget AFTER DELETE ON {rows} FOR EACH ROW EXECUTE FUNCTION {table}_forget()",
    )
    dropped = (
        "DROP TRIGGER {table}_forget ON {rows}",
        "DROP FUNCTION {table}_forget()",
        "DROP TABLE {table}",
    )
    matches, cast, both = "words @@", "::tsquery", " & "

    def forget(self, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        here, numbers = self._near([number for number, _words in rows])
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {self.table} WHERE {here}", numbers)

    def forget_part(self, numbers: Sequence[int], after: int, up_to: int) -> None:
        """A row that is stored at this moment comes with its words: a statement sees both or neither."""
        self.forget([(number, ()) for number in numbers])
        with connection.cursor() as cursor:
            cursor.execute(
                f"DELETE FROM {self.table} AS w WHERE {self.number} > %s AND {self.number} <= %s "
                f"AND NOT EXISTS (SELECT 1 FROM {self.rows} r WHERE r.id = w.{self.number})",
                [after, up_to],
            )

    def _quoted(self, word: str, begins: bool) -> str:
        """Words have no quotes; a backslash would be one of ours to double."""
        doubled = word.replace("\\", "\\\\").replace("'", "''")
        return f"'{doubled}'{':*' if begins else ''}"

    def _stored(self, words: Iterable[str]) -> str:
        return "'" + "' '".join(words) + "'"

    def _near(self, numbers: Sequence[int]) -> tuple[str, list[Any]]:
        return f"{self.number} = ANY(%s)", [list(numbers)]


class Fts5Words(WordIndex):
    """On SQLite: FTS5 that keeps neither texts nor positions; its row number is the key of the row. What is
    deleted it need not forget: whoever asks joins with the rows."""

    needs_words = newest_first = True
    created = (
        "CREATE VIRTUAL TABLE {table} USING fts5(words, content='', detail=none, columnsize=0, "
        "tokenize=\"ascii tokenchars '_='\")",
    )
    dropped = ("DROP TABLE {table}",)
    matches, order, both = "{table} MATCH", " ORDER BY rowid DESC", " AND "
    # Pages that one step of `merge` writes.
    step = 500

    def begin_again(self) -> None:
        with connection.cursor() as cursor:
            for statement in self.statements(self.dropped + self.created):
                cursor.execute(statement)

    def forget(self, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        sql = f"INSERT INTO {self.table} ({self.table}, rowid, words) VALUES ('delete', %s, %s)"
        with connection.cursor() as cursor:
            cursor.executemany(sql, [(number, self._stored(words)) for number, words in rows if words])

    def merge(self) -> None:
        """Merges its parts, a bounded step at a time: only so leaves it what was forgotten."""
        pages = -self.step  # the first step takes all parts together
        while True:
            with connection.cursor() as cursor:
                cursor.execute("SELECT total_changes()")
                before = cursor.fetchone()[0]
                cursor.execute(f"INSERT INTO {self.table} ({self.table}, rank) VALUES ('merge', %s)", [pages])
                cursor.execute("SELECT total_changes()")
                if cursor.fetchone()[0] - before < 2:
                    return
            pages = self.step

    def _quoted(self, word: str, begins: bool) -> str:
        return f'"{word}"{" *" if begins else ""}'

    def _stored(self, words: Iterable[str]) -> str:
        return " ".join(words)

    def _near(self, numbers: Sequence[int]) -> tuple[str, list[Any]]:
        return "rowid >= %s AND rowid <= %s", [min(numbers), max(numbers)]


def word_index(table: str, rows: str, number: str) -> WordIndex:
    if connection.vendor == "postgresql":
        return TsvectorWords(table, rows, number)
    return Fts5Words(table, rows, "rowid")
