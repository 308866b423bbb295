"""How each activation went, once it has ended."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.moments import seconds, with_next
from pipeline.results import ACTIVATION_HEALTH, shaped

# A success so long after the setting was enabled again says nothing about the repair.
REPAIR_DAYS = 7


def failed(protocols: DataFrame) -> DataFrame:
    """Per activation. `wasted_deliveries`: those of messages that had failed before."""
    return protocols.groupBy("activation").agg(
        F.count(F.lit(1)).alias("failures"),
        F.count_if("temporary").alias("temporary"),
        F.count_if(F.col("attempt") > 1).alias("wasted_deliveries"),
        F.min("occurred_at").alias("first_failure_at"),
    )


def handled(runs: DataFrame) -> DataFrame:
    return runs.groupBy("activation").agg(F.sum("handled").alias("handled"))


def repaired(trips: DataFrame, recovered: DataFrame) -> DataFrame:
    """Per activation its first trip; `repaired_at`: when, after it was enabled again, a message of the
    setting that had failed was handled well for the first time, within REPAIR_DAYS."""
    first = (
        trips.where(F.col("activation").isNotNull())
        .groupBy("activation")
        .agg(
            F.min_by("setting_key", F.struct("at", "id")).alias("setting_key"),
            F.min("at").alias("tripped_at"),
            F.min_by("enabled_again_at", F.struct("at", "id")).alias("enabled_again_at"),
        )
    )
    successes = recovered.select("setting_key", F.col("occurred_at").alias("event_at"))
    found = with_next(first, successes, ["setting_key"], "enabled_again_at", "repaired_at")
    late = F.col("repaired_at") > F.col("enabled_again_at") + F.expr(f"INTERVAL {REPAIR_DAYS} DAYS")
    return found.select("activation", "tripped_at", F.when(~late, F.col("repaired_at")).alias("repaired_at"))


def activation_health(
    activations: DataFrame, runs: DataFrame, protocols: DataFrame, trips: DataFrame, recovered: DataFrame
) -> DataFrame:
    """One row for each of `activations`; the others must hold all that is of them, and may hold more."""
    whole = (
        activations.withColumnRenamed("id", "activation")
        .join(failed(protocols), "activation", "left")
        .join(handled(runs), "activation", "left")
        .join(repaired(trips, recovered), "activation", "left")
        .fillna(0, ["failures", "temporary", "wasted_deliveries", "handled"])
    )
    ends = F.col("handled") + F.col("failures")
    figures = whole.select(
        "*",
        seconds(F.col("ended_at"), F.col("started_at")).alias("duration_seconds"),
        F.when(ends > 0, F.col("failures") * 1000.0 / ends).alias("failures_per_1000"),
        F.when(
            F.col("tripped_at") >= F.col("first_failure_at"),
            seconds(F.col("tripped_at"), F.col("first_failure_at")),
        ).alias("seconds_to_trip"),
        seconds(F.col("repaired_at"), F.col("tripped_at")).alias("seconds_to_repair"),
        F.when(F.col("failures") > 0, F.col("temporary") / F.col("failures")).alias("temporary_share"),
    )
    return shaped(figures, ACTIVATION_HEALTH)
