"""Each job of a run: reads, calls, writes. False: there was nothing new for it."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.derived import PART, ROWS
from pipeline.jobs.activation_health import REPAIR_DAYS, activation_health
from pipeline.jobs.breaker_backtest import (
    breaker_backtest,
    breaker_suggestions,
    lives,
    steps,
    taken_back,
    totals,
    trips_of_runs,
)
from pipeline.jobs.failure_trends import day_counts, failure_days, failure_trends, of_hours
from pipeline.jobs.moments import day_of, moment
from pipeline.jobs.odd_servers import odd_servers
from pipeline.jobs.poison_profile import MOST_HELD, described, endings, poison_counts, poison_profile
from pipeline.jobs.replay_success import replay_success
from pipeline.jobs.retention_plan import Facts, projected, retention_plan
from pipeline.plan import instant
from pipeline.results import BACKTEST_STEPS, BACKTEST_TOTALS, DAY_COUNTS, POISON_COUNTS
from pipeline.run import ALL, Run
from pipeline.schemas import KINDS

# What servers and replays are judged by.
SERVER_DAYS = 30
REPLAY_DAYS = 180
# A message that recovered or died failed before: so long before at most, else it is left out of the profile.
POISON_HOURS = 24

STEPS, TOTALS = "backtest", "totals"


def trends(run: Run) -> bool:
    """By hour and by day. Only the hours, and the days, that new protocols touch."""
    if not run.is_new("protocols") and run.again is None:
        return False
    hours, days = run.touched_hours, run.touched_days()
    if hours is None or days is None:
        run.write("failure_trends", failure_trends(run.all("protocols")))
        _days(run, run.all("protocols"), None)
        return True
    if hours:
        some = [(hour, hour + timedelta(hours=1)) for hour in hours]
        touched = run.hours_frame(hours)
        rows = of_hours(run.of("protocols", some), touched)
        run.write("failure_trends", failure_trends(rows), run.write_replaced("failure_trends", touched))
        of_days = run.of("protocols", run.stretches_of(days))
        placed = of_days.withColumn("_day", day_of(moment(), run.plan.zone))
        wanted = F.broadcast(run.days_frame(days))
        _days(run, placed.join(wanted, placed["_day"] == wanted["day"], "left_semi").drop("_day"), days[0])
    return True


def _days(run: Run, protocols: DataFrame, first: date | None) -> None:
    run.derived.sweep("day_counts")
    run.derived.merge("day_counts", {ROWS: (DAY_COUNTS, newest_days)})
    run.derived.add("day_counts", day_counts(protocols, run.plan.zone))
    today = run.plan.now.astimezone(ZoneInfo(run.plan.zone)).date()
    replaced = ALL if first is None else {"column": "day", "from": first.isoformat()}
    run.write("failure_days", failure_days(counts(run), first, today), replaced)


def counts(run: Run) -> DataFrame:
    parts = run.derived.parts("day_counts")
    rows = run.derived.rows("day_counts", DAY_COUNTS, parts)
    return newest_days(rows) if len(parts) > 1 else rows.drop(PART)


def newest_days(rows: DataFrame) -> DataFrame:
    """A day as the last part that counted it says."""
    last = rows.groupBy("day").agg(F.max(PART).alias(PART))
    return rows.join(F.broadcast(last), ["day", PART], "left_semi").drop(PART)


def health(run: Run) -> bool:
    if not run.is_new("activations", "runs", "trips", "protocols") and run.again is None:
        return False
    if run.lifetime is None:
        return True
    first, last = run.lifetime
    trips = run.of("trips", [run.lifetime])
    # As far as repairs are looked for after the last trip.
    repaired = run.of("recovered", [(first, last + timedelta(days=REPAIR_DAYS))])
    found = activation_health(
        run.activations, run.of("runs", [run.lifetime]), run.of("protocols", [run.lifetime]), trips, repaired
    )
    replaced = ALL
    if not run.all_new("activations"):
        ids = run.activations.select(F.col("id").alias("activation"))
        replaced = run.write_replaced("activation_health", ids)
    run.write("activation_health", found, replaced)
    return True


def backtest(run: Run) -> bool:
    """Touched activations are looked at anew, what they said before is taken back; the rest stays summed
    up."""
    if not run.is_new("activations", "runs", "protocols") and run.again is None:
        return False
    run.derived.sweep(STEPS)
    run.derived.merge(STEPS, {ROWS: (BACKTEST_STEPS, newest_steps), TOTALS: (BACKTEST_TOTALS, summed)})
    if run.lifetime is not None:
        _look_at(run, *run.lifetime)
    told = run.keep(breaker_backtest(run.derived.rows(STEPS, BACKTEST_TOTALS, sheet=TOTALS)))
    run.write("breaker_backtest", told)
    run.write("breaker_suggestions", breaker_suggestions(told, run.settings))
    return True


def _look_at(run: Run, first: datetime, last: datetime) -> None:
    lived = run.keep(lives(run.activations, run.of("runs", [(first, last)]), run.settings))
    some_once = bool(lived.where("once").limit(1).count())
    tripped = trips_of_runs(run.of("protocols", [(first, last)]), lived, some_once=some_once)
    made = steps(tripped, lived, run.of("recovered", [(first, last)]))
    ends = first.isoformat(), last.isoformat()
    before = [part for part in run.derived.parts(STEPS) if part.may_hold(*ends)]

    def summed_up(written: DataFrame) -> DataFrame:
        if not before:
            return totals(written)
        touched = run.activations.select(F.col("id").alias("activation"))
        old = run.derived.rows(STEPS, BACKTEST_STEPS, before).join(touched, "activation", "left_semi")
        return totals(written).unionByName(taken_back(totals(newest_steps(old))))

    run.derived.add(STEPS, made, first=ends[0], last=ends[1], more={TOTALS: summed_up})


def newest_steps(rows: DataFrame) -> DataFrame:
    """An activation as the last part that looked at it says."""
    last = Window.partitionBy("activation")
    return (
        rows.withColumn("_last", F.max(PART).over(last))
        .where(F.col(PART) == F.col("_last"))
        .drop("_last", PART)
    )


def summed(rows: DataFrame) -> DataFrame:
    return rows.groupBy("setting_key", "m", "mode").agg(
        *(F.sum(name).alias(name) for name in ("trips", "saved", "false_trips")),
        F.min("first_at").alias("first_at"),
        F.max("last_at").alias("last_at"),
    )


def replays(run: Run) -> bool:
    if not run.is_new("replays", "trips"):
        return False
    since = run.plan.now - timedelta(days=REPLAY_DAYS)
    some = run.within("replays", (since, run.plan.now))
    run.write("replay_success", replay_success(some, run.all("trips")))
    return True


def servers(run: Run) -> bool:
    if not run.is_new("runs"):
        return False
    since = run.plan.now - timedelta(days=SERVER_DAYS)
    run.write("odd_servers", odd_servers(run.within("runs", (since, run.plan.now))))
    return True


def poison(run: Run) -> bool:
    """Endings of the new blocks, added to what was counted before."""
    span = run.span_of_new("letters", "recovered")
    if span is None:
        return False
    run.derived.sweep("poison_counts")
    run.derived.merge("poison_counts", {ROWS: (POISON_COUNTS, poison_sums)})
    ended = endings(run.new("letters"), run.new("recovered"))
    before = (span[0] - timedelta(hours=POISON_HOURS), span[1])
    held = run.rows_of_new("letters", "recovered") <= MOST_HELD
    run.derived.add(
        "poison_counts", poison_counts(described(ended, run.of("protocols", [before]), held=held))
    )
    run.write("poison_profile", poison_profile(run.derived.rows("poison_counts", POISON_COUNTS)))
    return True


def poison_sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("setting_key", "property", "value_bucket").agg(
        F.sum("dead").alias("dead"), F.sum("recovered").alias("recovered")
    )


def retention(run: Run) -> bool:
    """After anything new. Its days begin today; where nothing happens any more those of the last plan stay
    true."""
    plan = run.plan
    if not (run.is_new(*KINDS) or run.again) or not run.derived.parts("day_counts"):
        return False
    told, last = plan.retention, plan.retention.get("last_run_at")
    size = plan.archive_bytes
    if size is None:
        size = sum(file.bytes for each in run.archive.manifests("protocols").values() for file in each.files)
    facts = Facts(
        now=plan.now,
        zone=plan.zone,
        silent_days=told.get("silent_days"),
        last_run_at=instant(last) if last else None,
        archive_bytes=size,
        database_bytes=plan.database_bytes,
    )
    goes = run.keep(projected(counts(run), run.all("activations"), run.settings, facts))
    run.write("retention_plan", retention_plan(goes, facts))
    return True


# In the order in which they run: the plan of retention goes by the days that the trends count.
JOBS: Mapping[str, Callable[[Run], bool]] = {
    "failure_trends": trends,
    "activation_health": health,
    "breaker_backtest": backtest,
    "replay_success": replays,
    "odd_servers": servers,
    "poison_profile": poison,
    "retention_plan": retention,
}
