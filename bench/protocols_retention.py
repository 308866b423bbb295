"""Retention deleting a tenth of the protocols while the intake goes on at 500 /s, beside one bare DELETE of
as many rows of the same table; and how long it locks anything of the intake.

On SQLite, which has one writer, a chunk is a lock: 100,000 rows tell how long one is. There the intake is
slower, and retention waits after each chunk on purpose: its rate has no goal.
"""

import re
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from bench import Delay, Line, Measure, percentile_95
from bench.protocols import Here
from bench.protocols_rows import SETTINGS, TABLE, WELL, make, make_few
from bench.protocols_sent import BATCH, senders, web
from bench.protocols_steady import steady
from deploy.services.ports import free_ports

GOALS = {"postgresql": 0.5, "sqlite": 0.0}
GOAL_OF_INTAKE = 0.2  # seconds
GOAL_OF_LOCKS = 0.05  # seconds
PER_SECOND = {"postgresql": 500, "sqlite": 200}
MOST_SECONDS = 600
MOST_ROWS_OF_SQLITE = 100_000
# What PostgreSQL writes of each that waited for a lock for longer than its deadlock_timeout.
WAITED = re.compile(r"acquired \S+ on .* after ([0-9.]+) ms")


def measure(here: Here) -> Sequence[Line]:
    from failures.models import FailureProtocol

    rows = min(here.rows, MOST_ROWS_OF_SQLITE) if here.database == "sqlite" else here.rows
    if not FailureProtocol.objects.filter(setting_id__lte=WELL).exists():
        (make_few if here.database == "sqlite" else make)(rows)
    _tell_of_waits()
    going, per_second = rows * WELL // SETTINGS, PER_SECOND[here.database]
    with web(free_ports(1)[0]) as url:
        sender = senders(per_second * MOST_SECONDS // 10, ["steady"])[0]
        with steady(url, sender, per_second) as seconds:
            deleted, lasted, longest = _retention()
    if deleted < going:
        raise RuntimeError(f"{deleted} of {going} were deleted")
    left = FailureProtocol.objects.filter(setting_id__lte=WELL).count()
    waited = longest if here.database == "sqlite" else _longest_wait()
    bare = _bare(going)
    name = f"{here.database} · of {rows:,} protocols"
    return [
        Measure(
            name=f"{name}, {deleted:,} deleted by retention beside the intake ({left} left), "
            f"beside one DELETE",
            product=deleted / lasted,
            reference=going / bare,
            goal=GOALS[here.database],
            unit="/s",
        ),
        Delay(
            name=f"{name}, a batch of {BATCH} taken in meanwhile ({len(seconds)} of them)",
            product=percentile_95(seconds),
            reference=min(seconds),
            goal=GOAL_OF_INTAKE,
        ),
        Delay(
            name=f"{name}, the longest that anybody waited for a lock meanwhile, beside the one DELETE",
            product=waited,
            reference=bare,
            goal=GOAL_OF_LOCKS,
        ),
    ]


def _retention() -> tuple[int, float, float]:
    """(rows, seconds, seconds of the longest chunk) of one run, in as many turns as it takes, beside a feed
    that has no letters to store."""
    from django.utils import timezone
    from structlog.testing import capture_logs

    from console.processes import record_heartbeat
    from retention.models import RetentionState
    from retention.worker import run_retention_turn

    began = time.perf_counter()
    with capture_logs() as told:
        while True:
            record_heartbeat("feed", timezone.now())
            run = run_retention_turn(timezone.now(), every=timedelta(hours=1))
            if run is None or run.state != RetentionState.RUNNING:
                break
    lasted = time.perf_counter() - began
    assert run is not None
    longest = max(each["longest_chunk_seconds"] for each in told if each["event"] == "retention step")
    return run.deleted, lasted, longest


def _tell_of_waits() -> None:
    """PostgreSQL logs whoever waits for a lock for longer than the goal."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("alter system set log_lock_waits = on")
        cursor.execute(f"alter system set deadlock_timeout = '{GOAL_OF_LOCKS * 1000:.0f}ms'")
        cursor.execute("select pg_reload_conf()")


def _longest_wait() -> float:
    """Seconds; 0 where nobody waited for longer than the goal."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("show data_directory")
        log = Path(cursor.fetchone()[0]).parent / "postgres.log"
    return max((float(ms) / 1000 for ms in WAITED.findall(log.read_text(errors="replace"))), default=0.0)


def _bare(count: int) -> float:
    """Seconds of one DELETE of as many rows: of the settings after those that retention cleared."""
    from django.db import connection

    with connection.cursor() as cursor:
        began = time.perf_counter()
        cursor.execute(f"delete from {TABLE} where setting_id > %s and setting_id <= %s", [WELL, 2 * WELL])
        lasted = time.perf_counter() - began
        if cursor.rowcount < count:
            raise RuntimeError(f"{cursor.rowcount} of {count} were deleted")
    return lasted
