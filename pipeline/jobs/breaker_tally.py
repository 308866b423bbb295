"""The breaker's counts along each run, and where each limit would have tripped: contract/breaker.py as
windows.

A run is an activation on one server with one epoch, in the order in which its failures occurred, and begins
with no counts. Between two failures that count, something was handled well when one of the rows after the
first, up to the second, says so (`successes_before`): that is what failures.what_if makes of them, one
by one.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

LOWEST, HIGHEST = 3, 30  # M
RUN = ("activation", "server", "epoch")


def effects(protocols: DataFrame) -> DataFrame:
    """Rows of a run that the breaker looks at. `kind`: the type of one that counts, else null. `resets`:
    something was handled well before. `after`: failed deliveries of the activation, on whichever server, that
    came later."""
    counts = F.col("counted") & ~F.col("temporary")
    # By the activation alone, which is enough for the windows over its runs: no other shuffle.
    rest_first = Window.partitionBy("activation").orderBy(
        F.desc("occurred_at"), F.desc("number"), F.desc("server")
    )
    return protocols.select(
        *RUN,
        "occurred_at",
        "number",
        F.when(counts, F.col("exception_type")).alias("kind"),
        (F.col("successes_before") > 0).alias("resets"),
        (F.row_number().over(rest_first) - 1).cast("long").alias("after"),
        *(name for name in ("message_key", "message_key_weak", "attempt") if name in protocols.columns),
    ).where(F.col("kind").isNotNull() | F.col("resets"))


def without_repeats(effects: DataFrame) -> DataFrame:
    """Where each message counts once: without the failures of a message that counted before in the same row
    of failures. Equal messages share a weak key, whose first attempts are never repetitions."""
    row = F.sum(F.col("resets").cast("int")).over(_so_far())
    key = F.when(F.col("kind").isNotNull() & (F.col("message_key") != ""), F.col("message_key"))
    placed = effects.withColumn("_row", row).withColumn("_key", key)
    order = Window.partitionBy(*RUN, "_row", "_key").orderBy("occurred_at", "number")
    may_repeat = ~(F.col("message_key_weak") & (F.col("attempt") <= 1))
    repeated = F.col("_key").isNotNull() & may_repeat & (F.row_number().over(order) > 1)
    return (
        placed.withColumn("_repeated", repeated).where(~F.col("_repeated")).drop("_row", "_key", "_repeated")
    )


def first_trips(effects: DataFrame) -> DataFrame:
    """The failures at which a run would have tripped for the first time with the limits `from_m` to `to_m`.
    `again_at`: the next one before which something had been handled well.

    With `any` failures in a row, `same` of them of one type, every M up to max(any, 3 * same + 2) trips: N is
    M / 3 rounded down. So a limit trips first where that reaches it first.
    """
    told = effects.select(
        "*",
        F.count("kind").over(_so_far()).alias("counted"),
        F.last("kind", ignorenulls=True).over(_before()).alias("kind_before"),
        F.expr(
            f"lead(if(resets, occurred_at, null)) IGNORE NULLS OVER (PARTITION BY {', '.join(RUN)}"
            " ORDER BY occurred_at, number)"
        ).alias("again_at"),
    )
    before = F.col("counted") - F.col("kind").isNotNull().cast("long")
    other_kind = F.col("kind").isNotNull() & ~F.col("kind").eqNullSafe(F.col("kind_before"))
    rows = told.select(
        "*",
        _since(F.when(F.col("resets"), before)).alias("any"),
        _since(F.when(F.col("resets") | other_kind, before)).alias("same"),
    ).withColumn("reach", F.when(F.col("kind").isNotNull(), F.greatest(F.col("any"), 3 * F.col("same") + 2)))
    reached = F.coalesce(F.max("reach").over(_before()), F.lit(LOWEST - 1))
    return (
        rows.withColumn("reached", reached)
        .where((F.col("reach") > F.col("reached")) & (F.col("reached") < HIGHEST))
        .select(
            *RUN,
            F.col("occurred_at").alias("at"),
            "after",
            "again_at",
            (F.col("reached") + 1).cast("int").alias("from_m"),
            F.least(F.col("reach"), F.lit(HIGHEST)).cast("int").alias("to_m"),
        )
    )


def _so_far() -> WindowSpec:
    order = Window.partitionBy(*RUN).orderBy("occurred_at", "number")
    return order.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _before() -> WindowSpec:
    return (
        Window.partitionBy(*RUN).orderBy("occurred_at", "number").rowsBetween(Window.unboundedPreceding, -1)
    )


def _since(begun_with: Column) -> Column:
    """Counted failures since the last row that began anew, which says how many there were before it."""
    return F.col("counted") - F.coalesce(F.max(begun_with).over(_so_far()), F.lit(0))
