"""Which limit a setting might have, by its back-test."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.shapes import shaped
from pipeline.results import BREAKER_SUGGESTIONS

# So many trips a limit must have had before anything is concluded from them …
ENOUGH_TRIPS = 3
# … and so large a part of them may have been false.
FALSE_SHARE = 0.1


def breaker_suggestions(backtest: DataFrame, settings: DataFrame) -> DataFrame:
    """The smallest M of which at most a tenth of the trips were false; what there is where no M had enough
    trips, or none was good enough. `why`: too_little · as_it_is · earlier_saves (a smaller M) ·
    later_avoids_false (a larger)."""
    of_mode = settings.select(
        F.col("key").alias("setting_key"),
        F.col("breaker_m").alias("m_now"),
        F.lower("server_mode").alias("mode"),
    ).join(backtest, ["setting_key", "mode"], "left")
    enough = F.col("trips") >= ENOUGH_TRIPS
    good = enough & (F.col("false_trips") <= FALSE_SHARE * F.col("trips"))
    facts = F.struct("m", "trips", "deliveries_saved", "false_trips")
    chosen = of_mode.groupBy("setting_key", "m_now").agg(
        F.max("runs").alias("runs"),
        F.max(enough).alias("enough"),
        F.min(F.when(good, facts)).alias("suggested"),
        F.max(F.when(F.col("m") == F.col("m_now"), facts)).alias("now"),
    )
    m = F.coalesce(F.col("suggested.m"), F.col("m_now"))
    why = (
        F.when(~F.coalesce("enough", F.lit(False)), "too_little")
        .when(m == F.col("m_now"), "as_it_is")
        .when(m < F.col("m_now"), "earlier_saves")
        .otherwise("later_avoids_false")
    )
    evidence = F.to_json(F.struct(F.coalesce("runs", F.lit(0)).alias("runs"), "now", "suggested"))
    told = chosen.select(
        "setting_key", "m_now", m.alias("m_suggested"), why.alias("why"), evidence.alias("evidence")
    )
    return shaped(told, BREAKER_SUGGESTIONS)
