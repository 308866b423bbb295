"""Clocks of database and servers agree with ours: leases, ages and schedules compare instants of both."""

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import connection

from agents.models import Server
from ma_site.checks.finding import Finding, bad, good, register

MOST_SECONDS = 5.0


@register("clock", 80)
def check(now: datetime) -> Iterator[Finding]:
    skews = {
        f"server {server.name}": server.clock_skew_seconds
        for server in Server.objects.exclude(last_seen_at=None)
    }
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            skews["database"] = (cursor.fetchone()[0] - datetime.now(UTC)).total_seconds()
    wrong = {name: skew for name, skew in skews.items() if abs(skew) > MOST_SECONDS}
    for name, skew in wrong.items():
        yield bad(
            f"{name} differs by {skew:+.1f} s from this machine", "Run a time service (chrony, ntpd) on both."
        )
    if not wrong:
        yield good(f"{len(skews)} clocks compared, all within {MOST_SECONDS:.0f} s")
