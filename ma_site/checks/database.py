"""The database answers, takes writes, and keeps what it has confirmed."""

from collections.abc import Iterator
from datetime import datetime

from django.db import DatabaseError, connection

from agents.models import ComponentCondition
from agents.services.components import note_state
from ma_site.checks.disk import folder_of_sqlite, problem_at
from ma_site.checks.finding import Finding, bad, good, register

# Of PostgreSQL: where one of these is off, a commit may be gone after the machine failed, though its KMA was
# told that it is stored and keeps its copy for some hours only.
LASTING = ("fsync", "full_page_writes", "synchronous_commit")


@register("database", 10)
def check(now: datetime) -> Iterator[Finding]:
    vendor = connection.vendor
    try:
        told = _asked("PRAGMA journal_mode" if vendor == "sqlite" else "SHOW server_version")
        passing = [] if vendor == "sqlite" else [name for name in LASTING if _asked(f"SHOW {name}") == "off"]
        note_state("database", ComponentCondition.OK, now)
    except DatabaseError as error:
        yield bad(f"{vendor} does not do its work: {error}", _advice(str(error)))
        return
    if vendor == "sqlite" and told != "wal":
        yield bad(
            f"SQLite is in journal mode {told}, not wal",
            "Put the file on a local disk: WAL needs shared memory.",
        )
        return
    yield good(f"{vendor} ({told}) reads and writes")
    if passing:
        yield bad(
            f"PostgreSQL may lose what it has confirmed when its machine fails: {', '.join(passing)} is off",
            "Switch it on in postgresql.conf (or for the role) and reload: KMAs soon delete what is said to "
            "be stored.",
        )


def _advice(error: str) -> str:
    """SQLite has many words for a full disk; the disk itself has one."""
    if connection.vendor == "sqlite" and folder_of_sqlite().exists() and problem_at(folder_of_sqlite()):
        return "Make room on its disk: see “disk” above. The schema is not the cause."
    if "No space left" in error:
        return "Make room on the disk of PostgreSQL's machine; leave its data folder and pg_wal alone."
    return "Look at MA_DATABASE_URL; then ./ma manage migrate."


def _asked(question: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return str(cursor.fetchone()[0])
