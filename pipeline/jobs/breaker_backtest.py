"""What every limit M would have done to the activations that have ended, and which one their setting might
have: the breaker's counts along each run, contract/breaker.py as windows.

A run is an activation on one server with one epoch, in the order in which its failures occurred, and
begins with no counts. Between two failures that count, something was handled well when one of the rows
after the first, up to the second, says so (`successes_before`): that is what failures.what_if makes of
them, one by one.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from pipeline.jobs.moments import with_next
from pipeline.results import BACKTEST_STEPS, BACKTEST_TOTALS, BREAKER_BACKTEST, BREAKER_SUGGESTIONS, shaped

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


# Servers that must give a MANY setting up, if so many had it: agents.breaker.rules has the whole rule.
NEEDED_OF_MANY = 2
# Handled well again so soon after a trip: nobody had needed it.
FALSE_MINUTES = 10
LOOKED_AT = 0  # as M: the activation was looked at


def lives(activations: DataFrame, runs: DataFrame, settings: DataFrame) -> DataFrame:
    """Ended activations with `needed` servers for a trip of the mode many, and whether each message counts
    `once`."""
    servers = runs.groupBy("activation").agg(F.count_distinct("server").alias("servers"))
    said = F.get_json_object("launched_with", "$.count_once") == "true"
    now = settings.select(F.col("key").alias("setting_key"), "count_once")
    return (
        activations.where(F.col("ended_at").isNotNull())
        .withColumnRenamed("id", "activation")
        .join(servers, "activation", "left")
        .join(F.broadcast(now), "setting_key", "left")
        .select(
            "activation",
            "setting_key",
            "ended_at",
            F.least(F.coalesce("servers", F.lit(1)), F.lit(NEEDED_OF_MANY)).cast("int").alias("needed"),
            F.coalesce(said, F.col("count_once"), F.lit(False)).alias("once"),
        )
    )


def trips_of_runs(protocols: DataFrame, lives: DataFrame, *, some_once: bool) -> DataFrame:
    """See `first_trips`; activation and server are told by 64 bits of them (`_short`). `protocols` must hold
    all of `lives`. `some_once`: whether messages count once in any."""
    narrow = protocols.select(
        _short("activation"), _short("server"), "epoch", "occurred_at", "number", _short("exception_type"),
        "temporary",
        "counted", "successes_before",
        *(("message_key", "message_key_weak", "attempt") if some_once else ()),
    )  # fmt: skip
    if not some_once:
        return first_trips(effects(_of(narrow, lives)))
    each, once = (effects(_of(narrow, lives.where(some))) for some in (~F.col("once"), F.col("once")))
    return first_trips(each).unionByName(first_trips(without_repeats(once)))


def _of(protocols: DataFrame, lives: DataFrame) -> DataFrame:
    return protocols.join(lives.select(_short("activation")), "activation", "left_semi")


def _short(name: str) -> Column:
    """64 bits of a text that has only to be told from others: millions of rows are sorted by it."""
    return F.when(F.col(name).isNotNull(), F.xxhash64(name)).alias(name)


def steps(trips: DataFrame, lives: DataFrame, recovered: DataFrame) -> DataFrame:
    """Per activation, M and mode where it would have been switched off. any: the first server that gives it
    up does so; many: the second one, or the only one there was. `recovered` must hold what happened up to
    FALSE_MINUTES later."""
    successes = recovered.select(_short("activation"), F.col("occurred_at").alias("event_at"))
    answered = with_next(trips, successes, ["activation"], "at", "recovered_at")
    false = F.least("again_at", "recovered_at") <= F.col("at") + F.expr(f"INTERVAL {FALSE_MINUTES} MINUTES")
    given_up = (
        answered.withColumn("false_trip", F.coalesce(false, F.lit(False)))
        .withColumn("m", F.explode(F.sequence("from_m", "to_m")))
        .groupBy("activation", "m")
        .agg(
            F.sort_array(F.collect_list(F.struct("after", "server", "at", "false_trip")), asc=False).alias(
                "given_up"
            )
        )
        .withColumnRenamed("activation", "_life")
        .join(lives.withColumn("_life", _short("activation")), "_life")
    )
    first = F.get("given_up", F.lit(0))
    other = F.get(F.filter("given_up", lambda one: one["server"] != first["server"]), F.lit(0))
    many = F.when(F.col("needed") > 1, other).otherwise(first)
    modes = given_up.select(
        "activation", "setting_key", "ended_at", "m",
        F.explode(F.array(_off("any", first), _off("many", many))).alias("off"),
    ).where(F.col("off.at").isNotNull())  # fmt: skip
    tripped = modes.select("activation", "setting_key", "ended_at", "m", "off.*")
    looked_at = lives.select(
        "activation", "setting_key", "ended_at", F.lit(LOOKED_AT).alias("m"), F.lit("").alias("mode"),
        F.lit(None).alias("at"), F.lit(0).alias("saved"), F.lit(False).alias("false_trip"),
    )  # fmt: skip
    return shaped(tripped.unionByName(shaped(looked_at, BACKTEST_STEPS)), BACKTEST_STEPS)


def _off(mode: str, trip: Column) -> Column:
    return F.struct(
        F.lit(mode).alias("mode"),
        trip["at"].alias("at"),
        trip["after"].alias("saved"),
        trip["false_trip"].alias("false_trip"),
    )


def totals(steps: DataFrame) -> DataFrame:
    """With M = 0 how many activations were looked at."""
    summed = steps.groupBy("setting_key", "m", "mode").agg(
        F.count(F.lit(1)).alias("trips"),
        F.sum("saved").alias("saved"),
        F.count_if("false_trip").alias("false_trips"),
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
    )
    return shaped(summed, BACKTEST_TOTALS)


def taken_back(totals: DataFrame) -> DataFrame:
    """What cancels them: their activations were looked at again."""
    return totals.select(
        "setting_key", "m", "mode", *((-F.col(name)).alias(name) for name in ("trips", "saved",
        "false_trips")),
        F.lit(None).cast("timestamp").alias("first_at"), F.lit(None).cast("timestamp").alias("last_at"),
    )  # fmt: skip


def breaker_backtest(totals: DataFrame) -> DataFrame:
    """Every M and both modes of each setting, also where nothing would have tripped."""
    summed = totals.groupBy("setting_key", "m", "mode").agg(
        F.sum("trips").alias("trips"),
        F.sum("saved").alias("deliveries_saved"),
        F.sum("false_trips").alias("false_trips"),
        F.min("first_at").alias("first_trip_at"),
        F.max("last_at").alias("last_trip_at"),
    )
    grid = (
        summed.where((F.col("m") == LOOKED_AT) & (F.col("trips") > 0))
        .select("setting_key", F.col("trips").alias("runs"))
        .withColumn("m", F.explode(F.sequence(F.lit(LOWEST), F.lit(HIGHEST))))
        .withColumn("mode", F.explode(F.array(F.lit("any"), F.lit("many"))))
    )
    whole = grid.join(summed, ["setting_key", "m", "mode"], "left")
    return shaped(whole.fillna(0, ["trips", "deliveries_saved", "false_trips"]), BREAKER_BACKTEST)


# -- which limit a setting might have, by its back-test ------------------------------------------------------


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
