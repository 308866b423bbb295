"""The database answers and takes writes."""

from collections.abc import Iterator
from datetime import datetime

from django.db import DatabaseError, connection

from agents.services.signs import sign_of_life
from ma_site.checks.finding import Finding, bad, good, register


@register("database", 10)
def check(now: datetime) -> Iterator[Finding]:
    vendor = connection.vendor
    try:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode" if vendor == "sqlite" else "SHOW server_version")
            told = cursor.fetchone()[0]
        sign_of_life("doctor", now)
    except DatabaseError as error:
        yield bad(f"{vendor} does not do its work: {error}", "Look at MA_DATABASE_URL; then ./ma manage migrate.")
        return
    if vendor == "sqlite" and told != "wal":
        yield bad(
            f"SQLite is in journal mode {told}, not wal", "Put the file on a local disk: WAL needs shared memory."
        )
        return
    yield good(f"{vendor} ({told}) reads and writes")
