"""What failed how often: by hour, setting, server and fingerprint."""

from collections.abc import Sequence

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
