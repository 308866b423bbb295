"""What failed how often: by hour, setting, server and fingerprint."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.moments import hour_of, moment
from pipeline.jobs.shapes import shaped
from pipeline.results import FAILURE_TRENDS


def hours(protocols: DataFrame) -> DataFrame:
    """The hours of occurrence that they touch: one column `hour`."""
    return protocols.select(hour_of(moment()).alias("hour")).distinct()


def of_hours(protocols: DataFrame, hours: DataFrame) -> DataFrame:
    """Those that occurred in them."""
    placed = protocols.withColumn("_hour", hour_of(moment()))
    return placed.join(F.broadcast(hours), placed["_hour"] == hours["hour"], "left_semi").drop("_hour")


def messages() -> Column:
    """How many messages: by 64 bits of their keys, so that what is shuffled stays narrow. A standalone run has none."""
    return F.count_distinct(F.when(F.col("message_key") != "", F.xxhash64("message_key")))


def failure_trends(protocols: DataFrame) -> DataFrame:
    """`protocols` must hold all of each hour that they touch."""
    at = moment()
    grouped = protocols.groupBy(hour_of(at).alias("hour"), "setting_key", "server", "fingerprint").agg(
        F.count(F.lit(1)).alias("count"),
        F.count_if("temporary").alias("temporary"),
        F.min(at).alias("first_at"),
        F.max(at).alias("last_at"),
        messages().alias("messages"),
    )
    return shaped(grouped, FAILURE_TRENDS)
