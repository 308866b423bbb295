"""Retention beside others: two beats, a kill in the middle, intake at the same time."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import LaunchSetting
from console.database.storage import SHARED_SECONDS, checkpoint, checkpoints_apart, seconds_alone
from console.processes import record_heartbeat
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol
from retention import batches, worker
from retention.models import RetentionFigure, RetentionRun
from retention.run_ledger import Claim, LeaseLost
from retention.worker import Part, run_retention_turn
from tests.web import reports
from tests.web.retention_rows import activation, protocols, run_of, take_turn
from tests.web.test_failures_intake_at_once import at_once, insistent

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = timedelta(0)


def of_a_good_one(count: int) -> LaunchSetting:
    setting = reports.setting()
    protocols(activation(setting, 5, well=True), count, 5)
    return setting


def test_of_two_beats_one_works_and_nothing_is_counted_twice() -> None:
    of_a_good_one(60)
    answers = at_once(*[lambda: run_retention_turn(timezone.now())] * 3)

    assert sum(answer is not None for answer in answers) == 1
    run = RetentionRun.objects.get()
    assert (run.state, run.deleted, RetentionFigure.objects.get().deleted) == ("done", 60, 60)


def test_whoever_lost_the_run_deletes_nothing_more() -> None:
    of_a_good_one(3)
    hung = take_turn(timezone.now())
    assert hung is not None
    assert take_turn(timezone.now()) is None
    assert run_retention_turn(timezone.now() + RetentionRun.lease + timedelta(seconds=1)) is not None
    setting = LaunchSetting.objects.get()
    protocols(setting.activations.get(), 4, 5)
    RetentionRun.objects.update(state="running", holder=uuid4())

    with pytest.raises(LeaseLost):
        batches.Chunks(hung, time.monotonic() + 60).delete(
            "protocols", lambda: FailureProtocol.objects.all().delete()[0]
        )
    assert FailureProtocol.objects.count() == 4


@pytest.mark.process
@pytest.mark.parametrize("swept", [True, False], ids=["swept", "one by one"])
def test_a_killed_one_is_gone_on_with_and_every_row_is_counted_once(swept: bool) -> None:
    of_a_good_one(400)
    if swept:
        record_heartbeat("feed", timezone.now())
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW], cwd=ROOT, env=environ(), stdout=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: 0 < FailureProtocol.objects.count() < 380)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait(30)
    left = FailureProtocol.objects.count()
    stopped = RetentionRun.objects.get()
    assert 0 < left < 380
    assert (stopped.state, stopped.deleted) == ("running", 400 - left)
    assert run_retention_turn(timezone.now()) is None

    run = run_retention_turn(timezone.now() + RetentionRun.lease + timedelta(seconds=1))

    assert run is not None
    assert (run.pk, run.state, run.deleted, FailureProtocol.objects.count()) == (stopped.pk, "done", 400, 0)
    assert RetentionFigure.objects.get().deleted == 400


def test_intake_goes_on_beside_it_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = of_a_good_one(1500)
    record_heartbeat("feed", timezone.now())
    monkeypatch.setattr(batches, "MOST", 50)
    going_on = activation(setting, 1, going_on=True)
    run = run_of(going_on)
    of, spool, stored = reports.run_of(run), reports.Spool(), 0
    over = threading.Event()

    def take() -> int:
        nonlocal stored
        while not over.is_set():
            batch = spool.batch(*[reports.protocol(of, occurred_at=timezone.now())] * 20)
            stored += insistent(partial(accept_batch, run.server, batch, timezone.now())).new
            time.sleep(0.04)
        return stored

    def delete() -> Any:
        try:
            while (
                run := insistent(lambda: run_retention_turn(timezone.now(), every=ALWAYS))
            ).state == "running":
                pass
            return run
        finally:
            over.set()

    at_once(take, delete)

    run.refresh_from_db()
    assert stored > 0
    assert FailureProtocol.objects.count() == stored == run.failed
    assert set(FailureProtocol.objects.values_list("activation_uuid", flat=True)) == {going_on.pk}


@pytest.mark.parametrize("swept", [True, False], ids=["swept", "one by one"])
def test_no_transaction_is_long_and_none_is_open_between_chunks(
    swept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_a_good_one(200)
    if swept:
        record_heartbeat("feed", timezone.now())
    began: list[int] = []

    def look(took: float) -> None:
        assert not transaction.get_connection().in_atomic_block
        began.append(FailureProtocol.objects.count())

    monkeypatch.setattr(batches, "MOST", 20)
    monkeypatch.setattr(batches, "FIRST", 20)
    monkeypatch.setattr(batches, "let_others_write", look)
    run_retention_turn(timezone.now())

    assert began == sorted(began, reverse=True)
    assert all(before - after <= 20 for before, after in zip([200, *began], began, strict=False))


def test_a_chunk_of_protocols_keeps_no_intake_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL, where a chunk is longer: records of the activation whose protocols go, of another one,
    and sent again are taken in while its transaction is open. On SQLite one that writes keeps all others
    waiting, so there a chunk is short."""
    setting = of_a_good_one(30)
    record_heartbeat("feed", timezone.now())
    old = run_of(setting.activations.get())
    fresh = run_of(activation(setting, 1, going_on=True))
    spool = reports.Spool()
    waited: list[bool] = []
    taken: list[int] = []

    def take_in() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '50ms'")
        for run in (fresh, old):
            batch = spool.batch(reports.protocol(reports.run_of(run), occurred_at=timezone.now()))
            taken.append(accept_batch(run.server, batch, timezone.now()).new)
            taken.append(accept_batch(run.server, batch, timezone.now()).known)

    def while_open(self: Any, what: str, deleted: Any) -> None:
        count_many(self, what, deleted)
        waited.append(transaction.get_connection().in_atomic_block)
        if connection.vendor == "postgresql" and not taken:
            at_once(take_in)

    count_many = Claim.count_many
    monkeypatch.setattr(Claim, "count_many", while_open)
    aims: list[float] = []
    monkeypatch.setattr(batches, "let_others_write", lambda took: aims.append(took))
    run_retention_turn(timezone.now())

    assert waited and all(waited)
    assert taken == ([1, 1, 1, 1] if connection.vendor == "postgresql" else [])
    assert seconds_alone() == (0.1 if connection.vendor == "postgresql" else 0.025)


def test_what_late_records_lock_goes_in_short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and activations, on either database; protocols before them as the database allows."""
    of_a_good_one(5)
    aims: list[tuple[str, float]] = []

    def part(name: str) -> Part:
        return lambda now, some: aims.append((name, some.pace.aim))

    monkeypatch.setattr(worker, "PARTS", [(name, part(name)) for name, _ in worker.PARTS])
    run_retention_turn(timezone.now())

    assert {name for name, _ in aims} >= {"nobodys", "activations", "runs"}
    assert dict(aims) == {name: SHARED_SECONDS for name, _ in aims} | {"nobodys": seconds_alone()}


def test_no_commit_of_a_chunk_moves_the_log_of_sqlite_on() -> None:
    """Else it would seem to hold its lock for as long as that takes. Others do it as before, and so does this
    one afterwards, also where a turn failed."""
    if connection.vendor == "postgresql":
        with CaptureQueriesContext(connection) as asked, checkpoints_apart():
            pass
        assert len(asked) == 0
        return

    def pages() -> int:
        with connection.cursor() as cursor:
            return int(cursor.execute("PRAGMA wal_autocheckpoint").fetchone()[0])

    before = pages()
    with pytest.raises(ZeroDivisionError), checkpoints_apart():
        assert pages() == 0
        checkpoint()
        raise ZeroDivisionError
    assert pages() == before > 0


SLOW = """
import os, time
import django
django.setup()
from django.utils import timezone
from retention import batches
from retention.worker import run_retention_turn
batches.FIRST = batches.MOST = 10
batches.let_others_write = lambda took: time.sleep(0.1)
run_retention_turn(timezone.now())
"""


def environ() -> dict[str, str]:
    """Of a process on the database of the tests."""
    known = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite://{known['NAME']}"
    else:
        url = f"postgresql://{known['USER']}:{known['PASSWORD']}@{known['HOST']}:{known['PORT']}/{known['NAME']}"
    return {**os.environ, "MA_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}


def wait_for(condition: Any, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, datetime.now()
        time.sleep(0.01)
