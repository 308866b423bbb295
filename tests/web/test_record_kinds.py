"""Every kind of record is one class, and what holds over all of them."""

import dataclasses
import itertools
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Interruption, Run
from contract.acknowledgements import EndState, make_id
from contract.messages import Record, RecordBatch, RecordReceipt
from contract.records import KINDS as WIRE_KINDS
from contract.records import AcknowledgementEnded, AcknowledgementOpened, Content
from dlq.models import LetterReport
from failures.intake.batch import KINDS, accept_batch, all_kinds
from failures.models import FailureProtocol, RecoveredMessage
from metrics.models import Minute
from tests.web import reports
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
WITH_ROWS = ("protocol", "recovered", "interruption", "replay_outcome", "minute_figures")
ROWS = (
    FailureProtocol.objects,
    RecoveredMessage.objects,
    Interruption.objects,
    LetterReport.objects,
    Minute.objects,
)


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


def contents(run: Run) -> dict[str, Content]:
    of = reports.run_of(run)
    waits = make_id("00" * 32, of.server, of.activation, of.epoch, bytes(16))
    return {
        "protocol": reports.protocol(of),
        "recovered": reports.recovered(of),
        "interruption": reports.interruption(of),
        "replay_outcome": reports.replay_outcome(of, reports.message()),
        "minute_figures": reports.minute_figures(of),
        "acknowledgement_opened": AcknowledgementOpened(of, waits, reports.message(), "ID:1", AT),
        "acknowledgement_ended": AcknowledgementEnded(of, waits, EndState.COMMITTED, None, AT),
        "closing": reports.closing(of, 1),
    }


def take(run: Run, *records: Record) -> RecordReceipt:
    numbered = (dataclasses.replace(record, number=place) for place, record in enumerate(records, 1))
    return accept_batch(run.server, RecordBatch(run.server.name, uuid.uuid4(), tuple(numbered)), AT)


def test_each_kind_of_the_wire_is_read_by_one_class(run: Run) -> None:
    of_wire = contents(run)
    assert of_wire.keys() == WIRE_KINDS.keys()
    for name, content in of_wire.items():
        item = all_kinds().read(Spool().record(content))
        assert item.content == content and type(content) in item.kind.contents, name


def test_kinds_are_stored_in_this_order() -> None:
    """What an interruption rests on is there before it."""
    assert [type(kind).__name__ for kind in KINDS] == [
        "Protocols", "RecoveredMessages", "Interruptions", "Acknowledgements", "Closings",
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["one batch", "other spool"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        *itertools.permutations(WITH_ROWS, 2),
        *((name, waiting) for name in WITH_ROWS for waiting in ("acknowledgement_opened", "closing")),
    ],
)
def test_an_id_that_two_kinds_use_is_stored_once(run: Run, first: str, second: str, how: str) -> None:
    kinds, same = contents(run), uuid.uuid4()
    records = [dataclasses.replace(Spool().record(kinds[name]), id=same) for name in (first, second)]
    batches = [records] if how == "one batch" else [[record] for record in records]
    receipts = [take(run, *batch) for batch in batches]
    assert (sum(each.new for each in receipts), receipts[-1].known, len(receipts[-1].conflicts)) == (1, 1, 1)
    assert sum(rows.count() for rows in ROWS) == 1
    run.refresh_from_db()
    assert (run.stored_records, run.closing_records) == (1, None)


def test_a_batch_of_many_takes_no_more_statements_than_one_of_two(run: Run) -> None:
    of, taken = reports.run_of(run), list[int]()
    for many in (1, 1, 150):
        about: list[Content] = [reports.protocol(of), reports.recovered(of), reports.minute_figures(of)]
        with CaptureQueriesContext(connection) as statements:
            accept_batch(run.server, Spool().batch(*about * many), AT)
        taken.append(len(statements))
    assert taken[1] == taken[2], taken
