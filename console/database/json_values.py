"""Finding rows by the values of a JSON column, {name: value}: by name and value, or by a value of whatever
name. Each database keeps an index itself, whoever stores, changes or deletes a row."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, Func


@dataclass(frozen=True, slots=True)
class WantedValue:
    """`name` empty: of whatever name, but for those that are `hidden` from who asks."""

    value: str
    name: str = ""
    hidden: frozenset[str] = frozenset()


# What people write of a value; a boolean is a number in SQLite.
_TEXT = "CASE each.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(each.value AS TEXT) END"


class HasValue(Func):
    """Is true of rows whose column has the wanted one. No index is used for it."""

    output_field = BooleanField()

    def __init__(self, column: Any, *, wanted: WantedValue) -> None:
        self.wanted = wanted
        super().__init__(column)

    def as_postgresql(self, compiler: Any, connection: Any, **_more: Any) -> tuple[str, list[Any]]:
        column, parameters = compiler.compile(self.get_source_expressions()[0])
        source = f"jsonb_each_text(CASE jsonb_typeof({column}) WHEN 'object' THEN {column} END)"
        return self._exists(source, "each.value", [*parameters, *parameters])

    def as_sqlite(self, compiler: Any, connection: Any, **_more: Any) -> Any:
        column, parameters = compiler.compile(self.get_source_expressions()[0])
        source = f"json_each(CASE json_type({column}) WHEN 'object' THEN {column} END)"
        return self._exists(source, _TEXT, [*parameters, *parameters])

    def _exists(self, source: str, text: str, parameters: Sequence[Any]) -> tuple[str, list[Any]]:
        where, given = [f"{text} = %s"], [*parameters, self.wanted.value]
        if self.wanted.name:
            where, given = [*where, "each.key = %s"], [*given, self.wanted.name]
        if hidden := sorted(self.wanted.hidden):
            where, given = [*where, f"each.key NOT IN ({', '.join(['%s'] * len(hidden))})"], [*given, *hidden]
        return f"EXISTS (SELECT 1 FROM {source} AS each WHERE {' AND '.join(where)})", given


class ValueIndex(ABC):
    """Of the JSON `column` of the rows of `table`, whose keys are UUIDs; `name`: its own."""

    # The rows that were there before it are put into it piece by piece; else `build` makes it of all.
    in_pieces: ClassVar[bool]

    def __init__(self, table: str, column: str, name: str) -> None:
        self.table, self.column, self.name = table, column, name

    def candidates(self, wanted: Sequence[WantedValue], most: int) -> list[UUID]:
        """At most so many rows that may have all of them; those that have them are among these, where these
        are fewer. By the index alone."""
        sql, parameters = self.question(wanted)
        with connection.cursor() as cursor:
            cursor.execute(f"{sql} LIMIT %s", [*parameters, most])
            return [pk if isinstance(pk, UUID) else UUID(pk) for (pk,) in cursor.fetchall()]

    @abstractmethod
    def question(self, wanted: Sequence[WantedValue]) -> tuple[str, list[Any]]: ...

    @abstractmethod
    def created(self, *, filled: bool) -> list[str]:
        """Returns statements; `filled`: with the rows that are there."""

    @abstractmethod
    def dropped(self) -> list[str]: ...

    def fill(self, after: UUID | None, up_to: UUID) -> None:  # noqa: B027 - nothing to do by default
        """Puts in those rows, in a transaction."""

    def build(self) -> bool:
        """Makes it anew in no transaction; returns whether this one did. It locks nobody out."""
        return False

    def share(self) -> float:
        """Returns how much of it is built, from 0 to 1."""
        return 0.0


class GinValues(ValueIndex):
    """On PostgreSQL: GIN over the column. Its pending list is short: what comes in is put into the index a
    little at a time, so nobody waits for long."""

    in_pieces = False

    def created(self, *, filled: bool) -> list[str]:
        return [self._create()] if filled else []

    def dropped(self) -> list[str]:
        return [f"DROP INDEX IF EXISTS {self.name}"]

    def _create(self, how: str = "") -> str:
        on = f"ON {self.table} USING gin ({self.column} jsonb_ops)"
        return f"CREATE INDEX {how} {self.name} {on} WITH (gin_pending_list_limit = 1024)"

    def question(self, wanted: Sequence[WantedValue]) -> tuple[str, list[Any]]:
        return f"SELECT id FROM {self.table} WHERE {self.column} @@ %s::jsonpath", [json_path(wanted)]

    def build(self) -> bool:
        """Killed, it leaves an index that is not valid: that is dropped first."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [self.name])
            if not cursor.fetchone()[0]:
                return False
            try:
                cursor.execute("SET statement_timeout = 0")
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.name}")
                cursor.execute(self._create("CONCURRENTLY"))
            finally:
                cursor.execute("RESET statement_timeout")
                cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [self.name])
        return True

    def share(self) -> float:
        """Of the table that it reads; reading it once more to be sure of it counts as done."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT blocks_done, blocks_total, phase FROM pg_stat_progress_create_index "
                "WHERE relid = %s::regclass",
                [self.table],
            )
            row = cursor.fetchone()
        if row is None or row[2] == "initializing" or "before build" in row[2]:
            return 0.0
        done, total, phase = row
        return (done / total if total else 0.0) if phase.startswith("building") else 1.0


def json_path(wanted: Sequence[WantedValue]) -> str:
    """A condition in the language of PostgreSQL's JSON paths: a text and, where it reads so, a number or a
    boolean. Every name and value is quoted."""
    parts = []
    for each in wanted:
        member = f"$.{json.dumps(each.name)}" if each.name else "$.*"
        parts.append(" || ".join(f"{member} == {literal}" for literal in literals(each.value)))
    return " && ".join(f"({part})" for part in parts)


def literals(value: str) -> list[str]:
    """The values of JSON that people write so."""
    found = [json.dumps(value)]
    if value in ("true", "false"):
        found.append(value)
    try:
        number = json.loads(value)
    except ValueError:
        return found
    if isinstance(number, (int, float)) and not isinstance(number, bool) and json.dumps(number) == value:
        found.append(value)
    return found


class TableValues(ValueIndex):
    """On SQLite: a table of the first HEAD characters of each value, which triggers write. `number` is a
    column of the rows that grows: before the random key, it lets rows that come together lie together."""

    in_pieces = True
    HEAD = 64

    def created(self, *, filled: bool) -> list[str]:
        add, remove = self._add("NEW"), self._remove()
        made = [
            f"CREATE TABLE {self.name} (value text NOT NULL, number bigint NOT NULL, row char(32) NOT NULL, "
            "PRIMARY KEY (value, number, row)) WITHOUT ROWID",
            self._trigger("insert", "INSERT", add),
            self._trigger("update", f"UPDATE OF {self.column}", f"{remove}; {add}"),
            self._trigger("delete", "DELETE", remove),
        ]
        return [*made, self._add("p", f"{self.table} AS p,")] if filled else made

    def dropped(self) -> list[str]:
        triggers = [f"DROP TRIGGER {self.name}_{event}" for event in ("insert", "update", "delete")]
        return [*triggers, f"DROP TABLE {self.name}"]

    def _trigger(self, name: str, event: str, act: str) -> str:
        return f"CREATE TRIGGER {self.name}_{name} AFTER {event} ON {self.table} BEGIN {act}; END"

    def _add(self, row: str, source: str = "") -> str:
        values = f"substr({_TEXT}, 1, {self.HEAD}), {row}.number, {row}.id"
        return (
            f"INSERT OR IGNORE INTO {self.name} SELECT {values} FROM {source} "
            f"json_each({row}.{self.column}) AS each WHERE each.value IS NOT NULL"
        )

    def _remove(self) -> str:
        values = f"SELECT substr({_TEXT}, 1, {self.HEAD}) FROM json_each(OLD.{self.column}) AS each"
        here = "number = OLD.number AND row = OLD.id"
        return f"DELETE FROM {self.name} WHERE {here} AND value IN ({values} WHERE each.value IS NOT NULL)"

    def question(self, wanted: Sequence[WantedValue]) -> tuple[str, list[Any]]:
        first, *others = [each.value[: self.HEAD] for each in wanted]
        more = f" AND row IN (SELECT row FROM {self.name} WHERE value = %s)" * len(others)
        return f"SELECT row FROM {self.name} WHERE value = %s{more}", [first, *others]

    def fill(self, after: UUID | None, up_to: UUID) -> None:
        between = " AND p.id > %s AND p.id <= %s"
        with connection.cursor() as cursor:
            sql = self._add("p", f"{self.table} AS p,") + between
            cursor.execute(sql, [after.hex if after is not None else "", up_to.hex])


def value_index(table: str, column: str, name: str) -> ValueIndex:
    return (GinValues if connection.vendor == "postgresql" else TableValues)(table, column, name)
