"""Servers on which a setting fails more often than on its others."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.results import ODD_SERVERS, shaped

# The quantile of the normal distribution for a two-sided bound of 99 %.
Z = 2.5758293035489004
# What a server must have tried, and failed, before anything is concluded; as failures.error_groups.rules has
# it.
ENOUGH_ATTEMPTS = 20
ENOUGH_FAILURES = 5
# With enough attempts every difference is significant; only one like this matters.
TIMES_WORSE = 2.0


def odd_servers(runs: DataFrame) -> DataFrame:
    """`low`, `high`: Wilson's score interval of the server's rate of failures. It is odd when that lies
    wholly above the same interval of its peers together, and its rate is twice theirs or more.

    E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, Journal of the
    American Statistical Association 22 (1927), 209-212. It holds for rates near 0, where the usual normal
    interval does not. Two intervals that do not meet are a stricter test than one of the difference of both
    rates.
    """
    each = runs.groupBy("setting_key", "server").agg(
        F.coalesce(F.sum("handled"), F.lit(0)).alias("handled"),
        F.coalesce(F.sum("failed"), F.lit(0)).alias("failures"),
    )
    attempts = F.col("handled") + F.col("failures")
    setting = Window.partitionBy("setting_key")
    beside = (
        each.withColumn("attempts", attempts)
        .withColumn("peers", F.sum("attempts").over(setting) - F.col("attempts"))
        .withColumn("peers_failed", F.sum("failures").over(setting) - F.col("failures"))
        .where(F.col("attempts") > 0)
        .withColumn("rate", F.col("failures") / F.col("attempts"))
        .withColumn("peers_rate", F.when(F.col("peers") > 0, F.col("peers_failed") / F.col("peers")))
        .withColumn("low", bound(F.col("failures"), F.col("attempts"), -Z))
        .withColumn("high", bound(F.col("failures"), F.col("attempts"), Z))
    )
    enough = (F.col("attempts") >= ENOUGH_ATTEMPTS) & (F.col("failures") >= ENOUGH_FAILURES)
    above = F.col("low") > bound(F.col("peers_failed"), F.col("peers"), Z)
    worse = F.col("rate") >= TIMES_WORSE * F.col("peers_rate")
    odd = F.coalesce(enough & (F.col("peers") >= ENOUGH_ATTEMPTS) & above & worse, F.lit(False))
    return shaped(beside.withColumn("odd", odd), ODD_SERVERS)


def bound(failed: Column, attempts: Column, z: float) -> Column:
    """One end of Wilson's interval: the lower with a negative `z`. Null of no attempts."""
    n, square = F.when(attempts > 0, attempts.cast("double")), z * z
    rate = failed / n
    spread = F.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    end = (rate + square / (2 * n) + z * spread) / (1 + square / n)
    return F.when(end.isNotNull(), F.greatest(F.lit(0.0), F.least(F.lit(1.0), end)))
