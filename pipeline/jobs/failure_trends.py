"""What failed how often: by hour, setting, server and fingerprint."""

from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.jobs.moments import day_of, hour_of, moment
from pipeline.results import DAY_COUNTS, FAILURE_DAYS, FAILURE_TRENDS, shaped


def hours(protocols: DataFrame) -> DataFrame:
    """The hours of occurrence that they touch: one column `hour`."""
    return protocols.select(hour_of(moment()).alias("hour")).distinct()


def of_hours(protocols: DataFrame, hours: DataFrame) -> DataFrame:
    """Those that occurred in them."""
    placed = protocols.withColumn("_hour", hour_of(moment()))
    return placed.join(F.broadcast(hours), placed["_hour"] == hours["hour"], "left_semi").drop("_hour")


def counted(protocols: DataFrame, period: Column, names: Sequence[str]) -> DataFrame:
    """Columns `period`, `names`, count, temporary, first_at, last_at and messages: how many of them; a
    standalone run has none. Shuffled are 64 bits of the names and of the keys of messages in their place."""
    name, at = F.xxhash64(*names), moment()
    message = F.when(F.col("message_key") != "", F.xxhash64("message_key"))
    narrow = protocols.select(
        period.alias("period"), name.alias("_name"), message.alias("_message"), "temporary", at.alias("_at")
    )
    each = narrow.groupBy("period", "_name", "_message").agg(
        F.count(F.lit(1)).alias("count"),
        F.count_if("temporary").alias("temporary"),
        F.min("_at").alias("first_at"),
        F.max("_at").alias("last_at"),
    )
    summed = each.groupBy("period", "_name").agg(
        F.sum("count").alias("count"),
        F.sum("temporary").alias("temporary"),
        F.min("first_at").alias("first_at"),
        F.max("last_at").alias("last_at"),
        F.count("_message").alias("messages"),
    )
    return summed.join(protocols.select(*names).distinct().withColumn("_name", name), "_name")


def failure_trends(protocols: DataFrame) -> DataFrame:
    """`protocols` must hold all of each hour that they touch."""
    found = counted(protocols, hour_of(moment()), ("setting_key", "server", "fingerprint"))
    return shaped(found.withColumnRenamed("period", "hour"), FAILURE_TRENDS)


# -- the same by day, in a named time zone, with what each day is beside the one before ----------------------


NAME = ("setting_key", "fingerprint")


def day_counts(protocols: DataFrame, zone: str) -> DataFrame:
    """`protocols` must hold all of each day that they touch."""
    found = counted(protocols, day_of(moment(), zone), NAME)
    return shaped(found.withColumnRenamed("period", "day"), DAY_COUNTS)


def failure_days(counts: DataFrame, first: date | None, today: date) -> DataFrame:
    """From `first` on (None: all). `counts`: every day that was ever counted.

    new: never before · same: also the day before · returned: before, but not the day before · gone: the day
    before, and not on this day, which must be over: before `today`. `rank`: place in the day's list over all
    settings, by count; of one that is gone its place the day before.
    """
    recent = counts
    if first is not None:
        # What is said of a day needs the day before, and whether there was any other.
        recent = counts.where(F.col("day") >= F.lit(first - timedelta(days=1)))
    name = Window.partitionBy(*NAME).orderBy("day")
    placed = (
        recent.withColumn(
            "rank", F.row_number().over(Window.partitionBy("day").orderBy(F.desc("count"), *NAME))
        )
        .withColumn("_before", F.lag("day").over(name))
        .withColumn("_after", F.lead("day").over(name))
    )
    is_first = F.col("_before").isNull()
    if first is not None:
        placed = placed.join(counts.groupBy(*NAME).agg(F.min("day").alias("_began")), list(NAME))
        is_first = F.col("day") == F.col("_began")
    seen = placed.withColumn(
        "standing",
        F.when(is_first, "new").when(F.col("_before") == F.date_sub("day", 1), "same").otherwise("returned"),
    )
    next_day = F.date_add("day", 1)
    ended = F.col("_after").isNull() | (F.col("_after") > next_day)
    gone = placed.where(ended & (next_day < F.lit(today))).select(
        next_day.alias("day"),
        *NAME,
        F.lit(0).alias("count"),
        F.lit(0).alias("messages"),
        F.lit("gone").alias("standing"),
        "rank",
    )
    both = seen.select(*gone.columns).unionByName(gone)
    return shaped(both if first is None else both.where(F.col("day") >= F.lit(first)), FAILURE_DAYS)
