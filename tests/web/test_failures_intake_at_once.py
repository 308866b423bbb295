"""A KMA that lost an answer sends again while the first request is still at work: stored once all the
same."""

import dataclasses
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from agents.models import Run, ServerToken
from contract.messages import RecordBatch, RecordReceipt
from failures.intake.batch import accept_batch
from failures.intake.rate_limit import Charge, Limits, TooFast
from failures.models import FailureProtocol, RecoveredMessage, SpoolMark
from tests.web import reports
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


def at_once(*tasks: Callable[[], Any]) -> list[Any]:
    """What each task answered, all begun at the same instant in threads with connections of their own."""
    gate, answers = threading.Barrier(len(tasks)), [None] * len(tasks)

    def work(place: int, task: Callable[[], Any]) -> None:
        gate.wait()
        try:
            answers[place] = insistent(task)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def insistent(task: Callable[[], Any]) -> Any:
    """Again as a KMA does: the test's in-memory SQLite answers "locked" where a file would wait."""
    for _ in range(500):
        try:
            return task()
        except OperationalError:
            time.sleep(0.01)
    raise AssertionError("the database stayed locked")


@pytest.mark.parametrize("first_time", [True, False])
def test_resends_at_once_store_once(first_time: bool) -> None:
    run = reports.run(reports.setting(), reports.server())
    spool, of = Spool(), reports.run_of(run)
    if not first_time:
        accept_batch(run.server, spool.batch(reports.protocol(of)), AT)
    batch = spool.batch(*[reports.protocol(of)] * 40, *[reports.recovered(of)] * 10)
    before = FailureProtocol.objects.count()
    receipts: list[RecordReceipt] = at_once(*[lambda: accept_batch(run.server, batch, AT)] * 4)
    assert sorted((receipt.new, receipt.known) for receipt in receipts) == [
        (0, 50),
        (0, 50),
        (0, 50),
        (50, 0),
    ]
    assert {receipt.stored_up_to for receipt in receipts} == {spool.number}
    assert (FailureProtocol.objects.count() - before, RecoveredMessage.objects.count()) == (40, 10)
    run.refresh_from_db()
    assert (run.failed, run.recovered, run.stored_records) == (before + 40, 10, before + 50)


def test_a_late_first_request_does_not_undo_the_resend_and_what_followed() -> None:
    run = reports.run(reports.setting(), reports.server())
    spool, of = Spool(), reports.run_of(run)
    first, second = spool.batch(*[reports.protocol(of)] * 5), spool.batch(*[reports.protocol(of)] * 5)
    accept_batch(run.server, first, AT)
    at_once(lambda: accept_batch(run.server, second, AT), lambda: accept_batch(run.server, first, AT))
    assert FailureProtocol.objects.count() == 10
    assert SpoolMark.objects.get().stored_up_to == 10


def test_servers_of_one_activation_report_at_once() -> None:
    setting = reports.setting()
    runs = [reports.run(setting, reports.server(name)) for name in ("srv-1", "srv-2")]
    batches = [Spool(run.server.name).batch(*[reports.protocol(reports.run_of(run))] * 30) for run in runs]
    pairs = zip(runs, batches, strict=True)
    at_once(*[lambda run=run, batch=batch: accept_batch(run.server, batch, AT) for run, batch in pairs])
    assert FailureProtocol.objects.count() == 60
    assert sorted(Run.objects.values_list("failed", flat=True)) == [30, 30]


def test_a_token_is_kept_to_its_limits_by_all_processes_together() -> None:
    """Each with a spool of its own: no lock but that of the debt is shared."""
    run = reports.run(reports.setting(), reports.server())
    token = ServerToken.objects.create(server=run.server, digest="x")
    charge = Charge(token, 10, Limits(rows=1, bytes=10**9))
    batches = [Spool().batch(*[reports.protocol(reports.run_of(run))] * 3) for _ in range(5)]

    def take(batch: RecordBatch) -> int:
        try:
            return accept_batch(run.server, batch, AT, charge=charge).new
        except TooFast:
            return 0

    answers: list[int] = at_once(*[lambda batch=batch: take(batch) for batch in batches])
    assert sorted(answers) == [0, 0, 0, 0, 3], "the first one passes, whatever its size"
    assert FailureProtocol.objects.count() == 3 and SpoolMark.objects.count() == 1


def test_copies_of_a_spool_at_once_store_each_record_once_and_refuse_none() -> None:
    run = reports.run(reports.setting(), reports.server())
    of = reports.run_of(run)
    batch = Spool().batch(*[reports.protocol(of)] * 20, *[reports.recovered(of)] * 5)
    copies = [dataclasses.replace(batch, spool=uuid.uuid4()) for _ in range(4)]
    receipts: list[RecordReceipt] = at_once(
        *[lambda copy=copy: accept_batch(run.server, copy, AT) for copy in copies]
    )
    assert sorted((receipt.new, receipt.known) for receipt in receipts) == [
        (0, 25),
        (0, 25),
        (0, 25),
        (25, 0),
    ]
    assert not any(receipt.refused or receipt.conflicts for receipt in receipts)
    assert (FailureProtocol.objects.count(), RecoveredMessage.objects.count()) == (20, 5)
    run.refresh_from_db()
    assert (run.failed, run.stored_records) == (20, 25)
