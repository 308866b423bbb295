"""The MA's database, read over JDBC and never written to.

Which statement gives the rows of a kind comes with the plan: tables and their joins are the MA's. A statement
answers the columns of the kind by their names; `{first}` and `{last}` in it stand for the range of the block,
where it has to know it; else the range is asked of the column by which the kind is received.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, TimestampType

from contract.names import DEAD_LETTER_PREFIX
from pipeline.schemas import KINDS, LETTERS, Kind

# -- dead letters without the values that settings mask ------------------------------------------------------
# By the rule of the console: whatever the setting of a letter masks and the one in whose queue it lies; of
# settings that are gone, whatever any setting masks.

# Every value is archived as text.
PROPERTIES = "array<struct<name: string, type: string, value: string>>"


def masked(letters: DataFrame, masks: Mapping[str, Sequence[str]]) -> DataFrame:
    """`masks`: {setting key: names} of every setting that exists. A body of which something is masked is left
    out."""
    names = _names(masks)
    told = F.transform(F.from_json("properties", PROPERTIES), lambda each: _told(each, names))
    return letters.withColumns(
        {
            "properties": F.to_json(told),
            "body": F.when(F.size(names) == 0, F.col("body")).otherwise(F.lit(None)),
        }
    )


def _told(each: Column, names: Column) -> Column:
    hidden = F.array_contains(names, each["name"])
    nothing = F.lit(None).cast("string")
    return F.struct(
        each["name"].alias("name"),
        F.when(hidden, nothing).otherwise(each["type"]).alias("type"),
        F.when(hidden, nothing).otherwise(each["value"]).alias("value"),
    )


def _names(masks: Mapping[str, Sequence[str]]) -> Column:
    every = _texts(sorted({name for names in masks.values() for name in names}))
    if not masks:
        return every
    lists = F.map_from_arrays(_texts(list(masks)), F.array(*(_texts(names) for names in masks.values())))
    said = F.try_element_at(lists, F.col("setting_key"))
    lies = F.try_element_at(
        lists, F.regexp_replace("queue", f"^{DEAD_LETTER_PREFIX.replace('.', '[.]')}", "")
    )
    nothing = _texts([])
    both = F.concat(F.coalesce(said, nothing), F.coalesce(lies, nothing))
    return F.when(said.isNull() & lies.isNull(), every).otherwise(both)


def _texts(texts: Sequence[str]) -> Column:
    return F.array(*map(F.lit, texts)).cast("array<string>")


# -- source --------------------------------------------------------------------------------------------------


DRIVERS = {"postgresql": "org.postgresql.Driver", "sqlite": "org.sqlite.JDBC"}
# Rows of one answer of the database: a whole block never stands in memory.
FETCHED = 2000
MOST_PARTITIONS = 8
POSTGRESQL_SESSION = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SET TIME ZONE 'UTC'"


@dataclass(frozen=True, slots=True)
class Source:
    """`statements`: {kind: SQL}. `masks`: see `masked`."""

    kind: str
    url: str
    statements: Mapping[str, str]
    user: str = ""
    password: str = field(default="", repr=False)
    masks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: Mapping[str, Any], environ: Mapping[str, str]) -> "Source":
        """`plan`: {"url_env", "user_env", "password_env", "statements", "masks"}; secrets are in variables
        that it names."""
        url = environ[plan["url_env"]]
        return cls(
            kind=url.split(":")[1],
            url=url,
            user=environ.get(plan.get("user_env", ""), ""),
            password=environ.get(plan.get("password_env", ""), ""),
            statements=plan["statements"],
            masks=plan.get("masks", {}),
        )

    def rows(self, session: SparkSession, block: Mapping[str, Any]) -> DataFrame:
        """Those of the block in the schema of their kind. Lazily: what the database says comes as Spark's
        error."""
        kind = KINDS[block["kind"]]
        statement, ranged = self.statements[kind.name], "{first}" not in self.statements[kind.name]
        first, last = self._literal(block["first"]), self._literal(block["last"])
        statement = statement.replace("{first}", first).replace("{last}", last)
        edges = _edges(block) if ranged else []
        predicates = [
            f"{kind.received} >= {self._literal(a)} AND {kind.received} < {self._literal(b)}"
            for a, b in pairwise(edges)
        ] or ["1 = 1"]
        read = session.read.jdbc(self.url, f"({statement}) rows_of_block", predicates=predicates,
                                 properties=self._properties(kind))  # fmt: skip
        rows = read.selectExpr(
            *(
                f"CAST(`{each.name}` AS {each.dataType.simpleString()}) AS `{each.name}`"
                for each in kind.schema
            )
        )
        return masked(rows, self.masks) if kind.name == LETTERS.name else rows

    def _literal(self, instant: str) -> str:
        """Of an instant as a plan writes it: ISO, UTC. SQLite compares texts, as Django wrote them."""
        plain = instant.removesuffix("+00:00").replace("T", " ")
        if self.kind == "sqlite":
            return f"'{plain.removesuffix('.000000')}'"
        return f"TIMESTAMPTZ '{plain}+00'"

    def _properties(self, kind: Kind) -> dict[str, str]:
        types = ", ".join(f"{each.name} {self._type(each.dataType)}" for each in kind.schema)
        found = {"driver": DRIVERS[self.kind], "fetchsize": str(FETCHED), "customSchema": types}
        if self.kind == "postgresql":
            found |= {
                "user": self.user,
                "password": self.password,
                "sessionInitStatement": POSTGRESQL_SESSION,
            }
        return found

    def _type(self, wanted: DataType) -> str:
        """As the driver hands it out: SQLite knows texts and numbers only."""
        if isinstance(wanted, LongType):
            return "BIGINT"
        if isinstance(wanted, DoubleType):
            return "DOUBLE"
        if isinstance(wanted, BooleanType):
            return "BIGINT" if self.kind == "sqlite" else "BOOLEAN"
        if isinstance(wanted, TimestampType):
            return "STRING" if self.kind == "sqlite" else "TIMESTAMP"
        return "STRING"


def _edges(block: Mapping[str, Any]) -> list[str]:
    """Where partitions meet: the planned splits within the range, thinned out where there are too many."""
    inner = [each for each in block.get("splits", ()) if block["first"] < each < block["last"]]
    step = -(-(len(inner) + 1) // MOST_PARTITIONS)
    return [block["first"], *inner[step - 1 :: step], block["last"]]
