"""Instants as the jobs see them. The session's time zone is UTC."""

from pyspark.sql import Column
from pyspark.sql import functions as F

# A clock that says otherwise is not believed: then the receipt counts. As failures.error_groups.increments
# has it.
BELIEVED_DAYS = 90


def moment() -> Column:
    """When a protocol occurred, by the server's clock where that is believable."""
    occurred, received = F.col("occurred_at"), F.col("received_at")
    earliest = received - F.expr(f"INTERVAL {BELIEVED_DAYS} DAYS")
    return F.when(occurred.between(earliest, received), occurred).otherwise(received)


def hour_of(instant: Column) -> Column:
    return F.date_trunc("hour", instant)


def day_of(instant: Column, zone: str) -> Column:
    """The date in `zone`: of 23, 24 or 25 hours."""
    local = instant if zone == "UTC" else F.from_utc_timestamp(instant, zone)
    return local.cast("date")


def seconds(later: Column, earlier: Column) -> Column:
    """With fractions; negative where `later` is not."""
    return (F.unix_micros(later) - F.unix_micros(earlier)) / F.lit(1_000_000.0)
