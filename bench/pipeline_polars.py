"""The trends by Polars, in its own words: by hour, and by day with what is new, the same, gone or
returned."""

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

NAME = ("setting_key", "fingerprint")
# The stage of the product that gives the same answers.
STAGE = "failure_trends"


def part(report: Mapping[str, Any]) -> float:
    """Seconds of the product for the same tables, without the start of its process."""
    return float(next(stage["seconds"] for stage in report["stages"] if stage["stage"] == STAGE))


def answer(archive: Path, results: Path, *, now: str, since: str) -> None:
    import polars as pl

    protocols = pl.scan_parquet(f"{archive}/data/protocols/*/*/*.parquet", hive_partitioning=False)
    messages = (
        pl.col("message_key").filter(pl.col("message_key") != "").n_unique().cast(pl.Int64).alias("messages")
    )
    trends = protocols.group_by(
        pl.col("occurred_at").dt.truncate("1h").alias("hour"), "setting_key", "server", "fingerprint"
    ).agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("temporary").sum().cast(pl.Int64),
        pl.col("occurred_at").min().alias("first_at"),
        pl.col("occurred_at").max().alias("last_at"),
        messages,
    )
    trends.sink_parquet(results / "failure_trends.parquet")
    counts = (
        protocols.group_by(pl.col("occurred_at").dt.date().alias("day"), *NAME)
        .agg(pl.len().cast(pl.Int64).alias("count"), messages)
        .collect(engine="streaming")
    )
    _days(counts, date.fromisoformat(now[:10])).write_parquet(results / "failure_days.parquet")


def _days(counts: Any, today: date) -> Any:
    import polars as pl

    ranked = counts.sort(["day", "count", *NAME], descending=[False, True, False, False]).with_columns(
        rank=pl.int_range(1, pl.len() + 1).over("day")
    )
    ordered = ranked.sort([*NAME, "day"]).with_columns(
        before=pl.col("day").shift(1).over(NAME), after=pl.col("day").shift(-1).over(NAME)
    )
    one = timedelta(days=1)
    seen = ordered.with_columns(
        standing=pl.when(pl.col("before").is_null())
        .then(pl.lit("new"))
        .when(pl.col("before") == pl.col("day") - one)
        .then(pl.lit("same"))
        .otherwise(pl.lit("returned"))
    )
    following = pl.col("day") + one
    gone = ordered.filter(
        (pl.col("after").is_null() | (pl.col("after") > following)) & (following < today)
    ).with_columns(
        day=following, count=pl.lit(0, pl.Int64), messages=pl.lit(0, pl.Int64), standing=pl.lit("gone")
    )
    columns = ["day", *NAME, "count", "messages", "standing", "rank"]
    return pl.concat([seen.select(columns), gone.select(columns)])
