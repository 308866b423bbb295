"""Transactions that meet at the same rows wait for each other in a line, never in a circle."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection

from agents.models import Run, SignInCounter
from dlq.models import ItemState, ReplayItem, ReplayJob, ReplaySlice
from dlq.outcomes import settlement
from dlq.replay import counts
from failures.intake.batch import accept_batch
from ma_site.requests import sign_in
from tests.web import letters, reports
from tests.web.reports import AT, Spool

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*tasks: Callable[[], object]) -> list[str]:
    """What the database said against each task, all begun at once with connections of their own; empty:
    nothing."""
    said = [""] * len(tasks)

    def work(place: int, task: Callable[[], object]) -> None:
        try:
            while (problem := _tried(task)) and "is locked" in problem:
                time.sleep(0.01)  # the test's SQLite in memory answers so where a file would wait
            said[place] = problem
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return said


def _tried(task: Callable[[], object]) -> str:
    try:
        task()
    except OperationalError as error:
        return str(error)
    return ""


class Meeting:
    """Where two transactions wait until both are there, or one of them waits for a lock of the other."""

    def __init__(self, number: int) -> None:
        self._there = threading.Barrier(number)

    def wait(self) -> None:
        try:
            self._there.wait(2.0)
        except threading.BrokenBarrierError:
            return


@pytest.fixture
def job() -> ReplayJob:
    """Two letters of one slice that left their queue. Our move took both, which nobody has concluded yet."""
    rows = [letters.dead("orders", number, f"ID:{number}") for number in (10, 11)]
    job = letters.given_back(reports.setting(), *rows)
    ReplaySlice.objects.filter(job=job).update(moved_exactly=2, moved_at=job.created_at)
    ReplayItem.objects.filter(job=job).update(state=ItemState.UNCONFIRMED)
    counts.recount(job.pk)
    return job


def report(run: Run, message: int) -> Callable[[], object]:
    about = reports.message(
        f"ID:{message}", replayed=True, dead_letter_queue="DLQ.orders", dead_letter_id=message + 10
    )
    batch = Spool(run.server.name).batch(reports.replay_outcome(reports.run_of(run), about))
    return lambda: accept_batch(run.server, batch, AT + timedelta(minutes=10))


def test_reports_of_two_messages_of_one_slice_that_arrive_at_once_are_both_stored(
    job: ReplayJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting, read = Meeting(2), settlement._reports

    def slowly(cases: Any) -> Any:
        meeting.wait()  # each has locked its own item
        return read(cases)

    monkeypatch.setattr(settlement, "_reports", slowly)
    assert job.setting is not None
    runs = [reports.run(job.setting, reports.server(name)) for name in ("srv-1", "srv-2")]
    said = at_once(*[report(run, message) for run, message in zip(runs, (10, 11), strict=True)])
    assert said == ["", ""]
    found = ReplayItem.objects.filter(job=job).values_list("state", "outcome")
    assert list(found) == [("given_back", "handled")] * 2
    job.refresh_from_db()
    assert {name: job.counts.get(name, 0) for name in ("given_back", "unconfirmed", "handled")} == {
        "given_back": 2, "unconfirmed": 0, "handled": 2,
    }  # fmt: skip


def test_somebody_who_signs_in_while_the_account_is_guessed_waits_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sign_in.begin_attempt("10.0.0.1", "anna", AT)
    # The row of the account lies behind that of the address then, and a small table is read from its
    # beginning.
    sign_in.begin_attempt("10.0.0.2", "anna", AT)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE agents_signincounter")
    meeting, add = Meeting(2), sign_in._add

    def add_slowly(key: str, *arguments: Any) -> int:
        failures = add(key, *arguments)
        if key.startswith("account:"):
            meeting.wait()
            waits_for_lock()
        return failures

    def end_well() -> None:
        meeting.wait()
        sign_in.end_well("10.0.0.1", "anna")

    monkeypatch.setattr(sign_in, "_add", add_slowly)
    later = AT + timedelta(minutes=1)
    assert at_once(lambda: sign_in.begin_attempt("10.0.0.1", "anna", later), end_well) == ["", ""]
    left = dict(SignInCounter.objects.values_list("key", "failures"))
    assert left["address:10.0.0.1"] == 1


def waits_for_lock() -> None:
    """Until another connection waits for a lock of PostgreSQL, two seconds at most: where nobody does, all is
    well."""
    if connection.vendor != "postgresql":
        return
    end = time.monotonic() + 2.0
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
