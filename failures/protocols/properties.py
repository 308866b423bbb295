"""Finding protocols by properties of their messages: by name and value, or by a value of whatever name.

Each database finds candidates in an index that it keeps itself, whoever stores, erases or deletes a protocol:
PostgreSQL in one over the JSON of the column, SQLite in a table that triggers write. `HasProperty` then says
of each whether it really has the property. Why not one table for both: docs/protocols.md.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, Func

from failures.models import FailureProtocol

PROTOCOLS = FailureProtocol._meta.db_table
INDEX, VALUES = "protocols_by_property", "failures_property_values"
# Characters of a value that SQLite's table holds; more are found by these, and compared in the row.
HEAD = 64


@dataclass(frozen=True, slots=True)
class WantedProperty:
    """`name` empty: of whatever name, but for those that are `hidden` from who asks."""

    value: str
    name: str = ""
    hidden: frozenset[str] = frozenset()


# -- the index -----------------------------------------------------------------------------------------------
# A pending list of 1 MB: what comes in is put into the index a little at a time, so no batch waits for long.

CREATED_POSTGRESQL = (
    "CREATE INDEX {concurrently} {index} ON {protocols} USING gin (properties jsonb_ops) "
    "WITH (gin_pending_list_limit = 1024)"
)
# What people write of a value; a boolean is a number in SQLite.
_TEXT = (
    "CASE {each}.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST({each}.value AS TEXT) END"
)
_HEADS = (
    "SELECT substr(" + _TEXT.format(each="each") + ", 1, {head}) "
    "FROM json_each({row}.properties) AS each WHERE each.value IS NOT NULL"
)
_NEW = (
    "INSERT OR IGNORE INTO {values} SELECT substr("
    + _TEXT.format(each="each")
    + ", 1, {head}), {row}.number, {row}.id FROM {source} json_each({row}.properties) AS each "
    "WHERE each.value IS NOT NULL"
)
# By number before the id, which is random: protocols that come together lie together.
CREATED_SQLITE = (
    "CREATE TABLE {values} (value text NOT NULL, number bigint NOT NULL, protocol char(32) NOT NULL, "
    "PRIMARY KEY (value, number, protocol)) WITHOUT ROWID",
    "CREATE TRIGGER {values}_insert AFTER INSERT ON {protocols} BEGIN {new}; END",
    "CREATE TRIGGER {values}_update AFTER UPDATE OF properties ON {protocols} BEGIN {old}; {new}; END",
    "CREATE TRIGGER {values}_delete AFTER DELETE ON {protocols} BEGIN {old}; END",
)
FILLED_SQLITE = "{all} AND p.id > %s AND p.id <= %s"


def statement(text: str, *, concurrently: bool = False) -> str:
    """Returns one of those above for the tables there are."""
    named = {"values": VALUES, "head": HEAD}
    parts = {
        "new": _NEW.format(**named, row="NEW", source=""),
        "all": _NEW.format(**named, row="p", source=f"{PROTOCOLS} AS p,"),
        "old": f"DELETE FROM {VALUES} WHERE number = OLD.number AND protocol = OLD.id AND value IN "
        f"({_HEADS.format(**named, row='OLD')})",
    }
    also = "CONCURRENTLY" if concurrently else ""
    return text.format(**named, **parts, index=INDEX, protocols=PROTOCOLS, concurrently=also)


# -- candidates ----------------------------------------------------------------------------------------------


def candidates(wanted: Sequence[WantedProperty], most: int) -> list[UUID]:
    """At most so many protocols that may have all of them; those that have them are among these, where these
    are fewer. By the index alone."""
    sql, parameters = question(wanted)
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} LIMIT %s", [*parameters, most])
        return [pk if isinstance(pk, UUID) else UUID(pk) for (pk,) in cursor.fetchall()]


def question(wanted: Sequence[WantedProperty]) -> tuple[str, list[Any]]:
    if connection.vendor == "postgresql":
        return f"SELECT id FROM {PROTOCOLS} WHERE properties @@ %s::jsonpath", [json_path(wanted)]
    first, *others = [each.value[:HEAD] for each in wanted]
    more = f" AND protocol IN (SELECT protocol FROM {VALUES} WHERE value = %s)" * len(others)
    return f"SELECT protocol FROM {VALUES} WHERE value = %s{more}", [first, *others]


def json_path(wanted: Sequence[WantedProperty]) -> str:
    """A condition in the language of PostgreSQL's JSON paths: a text and, where it reads so, a number or a
    boolean. Every name and value is quoted."""
    return " && ".join(
        "(" + " || ".join(f"{_member(each)} == {literal}" for literal in literals(each.value)) + ")"
        for each in wanted
    )


def _member(wanted: WantedProperty) -> str:
    return f"$.{json.dumps(wanted.name)}" if wanted.name else "$.*"


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


# -- each row ------------------------------------------------------------------------------------------------


class HasProperty(Func):
    """Is true of rows whose properties, {name: value}, have the wanted one. No index is used for it."""

    output_field = BooleanField()

    def __init__(self, properties: Any, *, wanted: WantedProperty) -> None:
        self.wanted = wanted
        super().__init__(properties)

    def as_postgresql(self, compiler: Any, connection: Any, **_more: Any) -> tuple[str, list[Any]]:
        column, parameters = compiler.compile(self.get_source_expressions()[0])
        source = f"jsonb_each_text(CASE jsonb_typeof({column}) WHEN 'object' THEN {column} END)"
        return self._exists(source, "each.value", [*parameters, *parameters])

    def as_sqlite(self, compiler: Any, connection: Any, **_more: Any) -> Any:
        column, parameters = compiler.compile(self.get_source_expressions()[0])
        source = f"json_each(CASE json_type({column}) WHEN 'object' THEN {column} END)"
        return self._exists(source, _TEXT.format(each="each"), [*parameters, *parameters])

    def _exists(self, source: str, text: str, parameters: Sequence[Any]) -> tuple[str, list[Any]]:
        where, given = [f"{text} = %s"], [*parameters, self.wanted.value]
        if self.wanted.name:
            where, given = [*where, "each.key = %s"], [*given, self.wanted.name]
        if hidden := sorted(self.wanted.hidden):
            where, given = [*where, f"each.key NOT IN ({', '.join(['%s'] * len(hidden))})"], [*given, *hidden]
        return f"EXISTS (SELECT 1 FROM {source} AS each WHERE {' AND '.join(where)})", given
