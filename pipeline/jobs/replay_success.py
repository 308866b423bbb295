"""What became of letters that were given back, by their age and by the time since the setting was
repaired."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.moments import seconds, with_last
from pipeline.results import REPLAY_SUCCESS, shaped

HOUR, DAY = 3600, 86_400
AGES = (("under_1h", HOUR), ("under_1d", DAY), ("under_7d", 7 * DAY), ("under_30d", 30 * DAY))
FIXES = (("under_1h", HOUR), ("under_1d", DAY), ("under_7d", 7 * DAY))
GOES_BACK = ("give_back", "redirect", "edit")


def replay_success(replays: DataFrame, trips: DataFrame) -> DataFrame:
    """`since_fix_bucket`: since a person last enabled the setting again after a trip, which is the only word
    of a fix that the MA has; unknown where none did before."""
    given = replays.where(F.col("action").isin(*GOES_BACK) & F.col("given_back_at").isNotNull()).select(
        F.coalesce(F.when(F.col("target_key") != "", F.col("target_key")),
        F.col("setting_key")).alias("setting_key"),
        "fingerprint", "died_at", "given_back_at", "outcome",
    )  # fmt: skip
    enabled = trips.where(F.col("enabled_again_at").isNotNull()).select(
        "setting_key", F.col("enabled_again_at").alias("event_at")
    )
    placed = with_last(given, enabled, ["setting_key"], "given_back_at", "fixed_at")
    grouped = placed.groupBy(
        "setting_key",
        F.coalesce("fingerprint", F.lit("")).alias("fingerprint"),
        _bucket(seconds(F.col("given_back_at"), F.col("died_at")), AGES).alias("age_bucket"),
        F.when(F.col("fixed_at").isNull(), "unknown")
        .otherwise(_bucket(seconds(F.col("given_back_at"), F.col("fixed_at")), FIXES))
        .alias("since_fix_bucket"),
    ).agg(
        *(
            F.count_if(F.col("outcome") == name).alias(name)
            for name in ("handled", "failed_again", "dead_again")
        )
    )
    return shaped(grouped, REPLAY_SUCCESS)


def _bucket(age: Column, bounds: Sequence[tuple[str, int]]) -> Column:
    """The first whose bound is above; `older` above them all, and where nobody can tell."""
    found = F.lit("older")
    for name, bound in reversed(bounds):
        found = F.when(age < bound, name).otherwise(found)
    return found
