"""The result tables, and what the jobs keep beside the archive so that the next run costs only what is new.

Times are UTC instants; a day is of the plan's time zone.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TYPES: dict[str, DataType] = {
    "bool": BooleanType(),
    "date": DateType(),
    "double": DoubleType(),
    "int": IntegerType(),
    "long": LongType(),
    "text": StringType(),
    "time": TimestampType(),
}


def _table(columns: str) -> StructType:
    """`name type, …`, as the types are named above."""
    pairs = (column.split() for column in columns.split(","))
    return StructType([StructField(name, _TYPES[kind]) for name, kind in pairs])


FAILURE_TRENDS = _table(
    "hour time, setting_key text, server text, fingerprint text, count long, temporary long, first_at time,"
    " last_at time, messages long"
)
FAILURE_DAYS = _table(
    "day date, setting_key text, fingerprint text, count long, messages long, standing text, rank int"
)
ACTIVATION_HEALTH = _table(
    "activation text, setting_key text, started_at time, ended_at time, duration_seconds double, handled "
    "long,"
    " failures long, failures_per_1000 double, first_failure_at time, tripped_at time, seconds_to_trip "
    "double,"
    " seconds_to_repair double, wasted_deliveries long, temporary_share double"
)
BREAKER_BACKTEST = _table(
    "setting_key text, m int, mode text, runs long, trips long, deliveries_saved long, false_trips long,"
    " first_trip_at time, last_trip_at time"
)
BREAKER_SUGGESTIONS = _table("setting_key text, m_now int, m_suggested int, why text, evidence text")
REPLAY_SUCCESS = _table(
    "setting_key text, fingerprint text, age_bucket text, since_fix_bucket text, handled long, failed_again "
    "long,"
    " dead_again long"
)
ODD_SERVERS = _table(
    "setting_key text, server text, handled long, failures long, rate double, peers_rate double, low double,"
    " high double, odd bool"
)
POISON_PROFILE = _table(
    "setting_key text, property text, value_bucket text, dead long, recovered long, support double, lift "
    "double"
)
RETENTION_PLAN = _table(
    "day date, setting_key text, rows_going long, bytes_going long, archive_bytes long, database_bytes long"
)

TABLES: dict[str, StructType] = {
    "failure_trends": FAILURE_TRENDS,
    "failure_days": FAILURE_DAYS,
    "activation_health": ACTIVATION_HEALTH,
    "breaker_backtest": BREAKER_BACKTEST,
    "breaker_suggestions": BREAKER_SUGGESTIONS,
    "replay_success": REPLAY_SUCCESS,
    "odd_servers": ODD_SERVERS,
    "poison_profile": POISON_PROFILE,
    "retention_plan": RETENTION_PLAN,
}

# -- what the jobs are told, and what they keep --------------------------------------------------------------

SETTINGS = _table("key text, n_days int, breaker_m int, server_mode text, enabled bool, count_once bool")
# One row per day, setting and fingerprint; a later part replaces whole days.
DAY_COUNTS = _table("day date, setting_key text, fingerprint text, count long, messages long")
# What each limit would have done to an activation. A row with m = 0 for each one that was looked at.
BACKTEST_STEPS = _table(
    "activation text, setting_key text, ended_at time, m int, mode text, at time, saved long, false_trip bool"
)
# Sums of steps; negative where an activation was looked at again. Parts add up. m = 0: how many were looked
# at.
BACKTEST_TOTALS = _table(
    "setting_key text, m int, mode text, trips long, saved long, false_trips long, first_at time, last_at "
    "time"
)
# Endings of messages that failed; parts add up. property "": all endings of the setting.
POISON_COUNTS = _table("setting_key text, property text, value_bucket text, dead long, recovered long")


# -- frames in the shape of a schema -------------------------------------------------------------------------


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """Its columns, in the order and of the types of `schema`. A column that is missing is an error of the
    job."""
    return frame.select(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema))


def told(session: SparkSession, rows: Iterable[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """A few rows, by the names of `schema`; what one does not say is null. Inside the plan of the query: rows
    that Python hands over would start a worker of Python for each."""
    text = json.dumps(list(rows), default=_text)
    return session.range(1).select(F.inline(F.from_json(F.lit(text), ArrayType(schema))))


def _text(value: Any) -> str:
    return str(value.isoformat())
