"""Instants as the jobs see them, and what came next, or last, of another stream.

The session's time zone is UTC.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# A clock that says otherwise is not believed: then the receipt counts. As failures.error_groups.increments
# has it.
BELIEVED_DAYS = 90


def moment() -> Column:
    """When a protocol occurred, by the server's clock where that is believable."""
    occurred, received = F.col("occurred_at"), F.col("received_at")
    earliest = received - F.expr(f"INTERVAL {BELIEVED_DAYS} DAYS")
    return F.when(occurred.between(earliest, received), occurred).otherwise(received)


def hour_of(instant: Column) -> Column:
    return F.date_trunc("hour", instant)


def day_of(instant: Column, zone: str) -> Column:
    """The date in `zone`: of 23, 24 or 25 hours."""
    local = instant if zone == "UTC" else F.from_utc_timestamp(instant, zone)
    return local.cast("date")


def seconds(later: Column, earlier: Column) -> Column:
    """With fractions; negative where `later` is not."""
    return (F.unix_micros(later) - F.unix_micros(earlier)) / F.lit(1_000_000.0)


# What came next, or last, of another stream: one sort of both together, never a join over a range of time.


def with_next(asked: DataFrame, events: DataFrame, by: Sequence[str], at: str, name: str) -> DataFrame:
    """`asked` with the column `name`: the first instant of `events` (columns `by` and `event_at`) after `at`,
    with the same `by`; null where there is none. Rows of `asked` without an instant stay, with null."""
    return _with(asked, events, by, at, name, next_one=True)


def with_last(asked: DataFrame, events: DataFrame, by: Sequence[str], at: str, name: str) -> DataFrame:
    """The same with the last instant that is not after `at`."""
    return _with(asked, events, by, at, name, next_one=False)


def _with(
    asked: DataFrame, events: DataFrame, by: Sequence[str], at: str, name: str, *, next_one: bool
) -> DataFrame:
    # `_turn` at one instant: an event at `at` itself is before it for the next, and not after it for the
    # last.
    questions = asked.select(
        *by, F.col(at).alias("_at"), F.lit(1).alias("_turn"), F.struct(*asked.columns).alias("_row")
    )
    answers = events.select(
        *by,
        F.col("event_at").alias("_at"),
        F.lit(0).alias("_turn"),
        F.lit(None).cast(questions.schema["_row"].dataType).alias("_row"),
    )
    order = Window.partitionBy(*by).orderBy("_at", "_turn")
    event: Column = F.when(F.col("_row").isNull(), F.col("_at"))
    if next_one:
        # The rows after this one in reverse order are those before it: a running frame, not one that is read
        # anew.
        order = Window.partitionBy(*by).orderBy(F.desc("_at"), F.desc("_turn"))
    found = F.last(event, ignorenulls=True).over(
        order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    both = questions.unionByName(answers).withColumn(name, F.when(F.col("_at").isNotNull(), found))
    return both.where(F.col("_row").isNotNull()).select("_row.*", name)
