"""Retention deleting a tenth of the protocols while the intake goes on at 500 /s, beside one bare DELETE of as many
rows of the same table."""

import time
from collections.abc import Sequence
from datetime import timedelta

from bench import Delay, Line, Measure, percentile_95
from bench.protocols import Here
from bench.protocols_rows import SETTINGS, TABLE, WELL, make
from bench.protocols_sent import BATCH, senders, web
from bench.protocols_steady import steady
from deploy.ports import free_ports

GOAL = 0.5
GOAL_OF_INTAKE = 0.2  # seconds
PER_SECOND = 500
MOST_SECONDS = 600


def measure(here: Here) -> Sequence[Line]:
    from failures.models import FailureProtocol

    if not FailureProtocol.objects.filter(setting_id__lte=WELL).exists():
        make(here.rows)
    going = here.rows * WELL // SETTINGS
    with web(free_ports(1)[0]) as url:
        sender = senders(PER_SECOND * MOST_SECONDS // 10, ["steady"])[0]
        with steady(url, sender, PER_SECOND) as seconds:
            deleted, lasted = _retention()
    if deleted < going:
        raise RuntimeError(f"{deleted} of {going} were deleted")
    left = FailureProtocol.objects.filter(setting_id__lte=WELL).count()
    bare = _bare(going)
    name = f"{here.database} · of {here.rows:,} protocols"
    return [
        Measure(
            name=f"{name}, {deleted:,} deleted by retention beside the intake ({left} left), beside one DELETE",
            product=deleted / lasted,
            reference=going / bare,
            goal=GOAL,
            unit="/s",
        ),
        Delay(
            name=f"{name}, a batch of {BATCH} taken in meanwhile ({len(seconds)} of them)",
            product=percentile_95(seconds),
            reference=min(seconds),
            goal=GOAL_OF_INTAKE,
        ),
    ]


def _retention() -> tuple[int, float]:
    """(rows, seconds) of one run, in as many turns as it takes, beside a feed that has no letters to store."""
    from django.utils import timezone

    from agents.services.signs import sign_of_life
    from failures.models import RetentionState
    from failures.retention.turns import work

    began = time.perf_counter()
    while True:
        sign_of_life("feed", timezone.now())
        run = work(timezone.now(), every=timedelta(hours=1))
        if run is None or run.state != RetentionState.RUNNING:
            break
    lasted = time.perf_counter() - began
    assert run is not None
    return run.deleted, lasted


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
