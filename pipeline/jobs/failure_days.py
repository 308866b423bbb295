"""The same by day, in a named time zone, with what each day is beside the one before."""

from datetime import date, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.jobs.failure_trends import counted
from pipeline.jobs.moments import day_of, moment
from pipeline.jobs.shapes import shaped
from pipeline.results import DAY_COUNTS, FAILURE_DAYS

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
