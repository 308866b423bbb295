"""What retention is going to delete in the next days, and how large archive and database are by then: a
projection.

By days, not by rows, and taken that each setting goes on as in the last weeks: as many failures a day as in
the last GROWTH_DAYS, and, where an activation of it finished in the last ACTIVE_DAYS, one that finishes each
day as the last one did. retention.rules has the rule itself.
"""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.jobs.moments import day_of
from pipeline.results import RETENTION_PLAN, shaped

DAYS = 30
GROWTH_DAYS = 28
ACTIVE_DAYS = 7
WHOLE = ""  # as setting: the row of the whole day, the only one with sizes


@dataclass(frozen=True, slots=True)
class Facts:
    """`silent_days`: C, None: off. `last_run_at`: when retention ran last, None: never, as far as is known.
    The sizes are of now; 0: not known."""

    now: datetime
    zone: str = "UTC"
    silent_days: int | None = None
    last_run_at: datetime | None = None
    archive_bytes: int = 0
    database_bytes: int = 0


def last_finished(activations: DataFrame, zone: str) -> DataFrame:
    """Per setting: of the one that started last of those that have ended `started`, `ended` (days) and
    `well`; and `silent_since`, the day of the last end."""
    return (
        activations.where(F.col("ended_at").isNotNull())
        .groupBy("setting_key")
        .agg(F.max(F.struct("started_at", "ended_at", "well")).alias("last"), F.max("ended_at").alias("end"))
        .select(
            "setting_key",
            day_of(F.col("last.started_at"), zone).alias("started"),
            day_of(F.col("last.ended_at"), zone).alias("ended"),
            F.coalesce("last.well", F.lit(False)).alias("well"),
            day_of(F.col("end"), zone).alias("silent_since"),
        )
    )


def bounds(settings: DataFrame, last: DataFrame, facts: Facts) -> DataFrame:
    """Per setting and day from the one before today to DAYS later: `bound`, before which everything is gone
    by the end of the day; null: nothing goes. The first one is what retention did when it ran last."""
    today = _today(facts)
    ran = F.coalesce(day_of(F.lit(facts.last_run_at).cast("timestamp"), facts.zone), today)
    placed = (
        settings.join(last, "setting_key", "left")
        .withColumn("step", F.explode(F.sequence(F.lit(-1), F.lit(DAYS - 1))))
        .withColumn("day", F.date_add(today, F.col("step")))
        .withColumn("on", F.when(F.col("step") < 0, ran).otherwise(F.col("day")))
    )
    active = F.col("ended") >= F.date_sub(today, ACTIVE_DAYS)
    well = F.when(active, F.col("on")).otherwise(F.col("ended"))
    error = F.date_sub(F.when(active, F.col("on")).otherwise(F.col("started")), F.col("n_days"))
    rule = F.when(F.col("known") & F.col("well"), well).when(
        F.col("known") & F.col("ended").isNotNull(), error
    )
    silent = F.lit(None).cast("date")
    if facts.silent_days is not None:
        since = F.date_sub("on", facts.silent_days)
        silent = F.when(
            ~F.col("known") | F.col("silent_since").isNull() | (F.col("silent_since") < since), since
        )
    never = (F.col("step") < 0) & F.lit(facts.last_run_at is None)
    bound = F.when(~never, F.greatest(rule, silent))
    held = F.max(bound).over(Window.partitionBy("setting_key").orderBy("day"))
    return placed.select("setting_key", "day", "step", held.alias("bound"))


def _today(facts: Facts) -> Column:
    return day_of(F.lit(facts.now).cast("timestamp"), facts.zone)


def gone(bounds: DataFrame, counts: DataFrame, facts: Facts) -> DataFrame:
    """`bounds` with `gone`: rows of the setting before the bound; `total`: all that there were by the end of
    the day; `growth`: rows a day."""
    today = _today(facts)
    days = counts.where(F.col("day") < today).groupBy("setting_key", "day").agg(F.sum("count").alias("rows"))
    lately = F.when(F.col("day") >= F.date_sub(today, GROWTH_DAYS), F.col("rows")).otherwise(0)
    settings = days.groupBy("setting_key").agg(
        F.sum("rows").alias("kept_ever"), (F.sum(lately) / F.lit(float(GROWTH_DAYS))).alias("growth")
    )
    nothing = F.lit(None)
    both = bounds.select("setting_key", "bound", "day", "step",
        F.lit(None).cast("long").alias("rows")).unionByName(
        days.select(
            "setting_key", F.col("day").alias("bound"), nothing.cast("date").alias("day"),
            nothing.cast("int").alias("step"), "rows",
        )
    )  # fmt: skip
    # A bound stands before the rows of its own day, which stay.
    order = Window.partitionBy("setting_key").orderBy(
        F.col("bound").asc_nulls_first(), F.col("step").isNull()
    )
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    past = both.withColumn("past", F.coalesce(F.sum("rows").over(so_far), F.lit(0))).where(
        F.col("step").isNotNull()
    )
    ahead = F.greatest(F.lit(0), F.datediff("bound", today))
    return past.join(settings, "setting_key", "left").fillna(0, ["kept_ever", "growth"]).select(
        "setting_key", "day", "step",
        F.when(F.col("bound").isNull(), 0.0).otherwise(F.col("past") + F.col("growth") * ahead).alias("gone"),
        (F.col("kept_ever") + F.col("growth") * (F.col("step") + 1)).alias("total"),
    )  # fmt: skip


def projected(counts: DataFrame, activations: DataFrame, settings: DataFrame, facts: Facts) -> DataFrame:
    """See `gone`. `counts`: every day that was ever counted. A setting that is gone has no activation to go
    by: only its age counts."""
    known = settings.select(F.col("key").alias("setting_key"), "n_days", F.lit(True).alias("known"))
    keys = counts.select("setting_key").distinct().join(known, "setting_key", "left").fillna(False, ["known"])
    return gone(bounds(keys, last_finished(activations, facts.zone), facts), counts, facts)


def retention_plan(of_settings: DataFrame, facts: Facts) -> DataFrame:
    """`of_settings`: as `projected` says, small and read several times. Bytes are rows times the mean size of
    one; what a database gives up it uses again."""
    day_before = Window.partitionBy("setting_key").orderBy("step")
    going = of_settings.withColumn("going", F.col("gone") - F.lag("gone").over(day_before)).where(
        F.col("step") >= 0
    )
    start = of_settings.where(F.col("step") < 0).agg(
        F.sum(F.col("total") - F.col("gone")).alias("rows_now"), F.sum("total").alias("archived")
    )
    whole = (
        of_settings.where(F.col("step") >= 0)
        .groupBy("day")
        .agg(F.sum(F.col("total") - F.col("gone")).alias("left"), F.sum("total").alias("total"))
    )
    each = going.groupBy("day", "setting_key").agg(F.sum("going").alias("rows"))
    per_row = F.try_divide(F.lit(float(facts.database_bytes)), "rows_now")
    in_archive = F.try_divide(F.lit(float(facts.archive_bytes)), "archived")
    days = each.groupBy("day").agg(F.sum("rows").alias("rows")).join(whole,
        "day").crossJoin(F.broadcast(start)).select(
        "day", F.lit(WHOLE).alias("setting_key"), F.round("rows").alias("rows_going"),
        F.round(F.coalesce(F.col("rows") * per_row, F.lit(0))).alias("bytes_going"),
        F.round(in_archive * F.col("total")).alias("archive_bytes"),
        F.round(per_row * F.col("left")).alias("database_bytes"),
    )  # fmt: skip
    nothing = F.lit(None).cast("double")
    parts = each.where(F.round("rows") > 0).crossJoin(F.broadcast(start)).select(
        "day", "setting_key", F.round("rows").alias("rows_going"),
        F.round(F.coalesce(F.col("rows") * per_row, F.lit(0))).alias("bytes_going"),
        nothing.alias("archive_bytes"), nothing.alias("database_bytes"),
    )  # fmt: skip
    return shaped(days.unionByName(parts), RETENTION_PLAN)
