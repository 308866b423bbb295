"""An id that comes again: with the same content it is known, with other content it is kept and shown."""

import dataclasses
import uuid
from datetime import timedelta
from typing import Any

import pytest

from agents.heartbeat.run_reports import record_outcomes
from agents.models import Interruption, Run, RunPhase
from contract.messages import Record, RecordBatch, RecordReceipt
from contract.records import Closing, Content, RunState
from dlq.models import LetterReport
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol, RecordConflict, RecoveredMessage
from retention.erasure.protocols import erase_protocols, erase_recovered
from tests.web import reports
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


def record(content: Content, number: int, identity: uuid.UUID) -> Record:
    return dataclasses.replace(Spool().record(content), number=number, id=identity)


def take(run: Run, spool: uuid.UUID, *records: Record) -> RecordReceipt:
    return accept_batch(run.server, RecordBatch(run.server.name, spool, records), AT)


def kinds(run: Run) -> dict[str, tuple[Content, Content]]:
    """By name: a record, and another one that says something else."""
    of = reports.run_of(run)
    interruption = reports.interruption(of)
    return {
        "protocol": (reports.protocol(of), reports.protocol(of, exception_text="other")),
        "properties": (
            reports.protocol(of, reports.message(properties={"n": 1e23, "deep": [1, {"x": True}], "t": "a"})),
            reports.protocol(
                of, reports.message(properties={"n": 1e23, "deep": [1, {"x": False}], "t": "a"})
            ),
        ),
        "recovered": (reports.recovered(of), reports.recovered(of, occurred_at=AT + timedelta(days=1))),
        "interruption": (interruption, dataclasses.replace(interruption, max_failures=11)),
        "outcome": (
            reports.replay_outcome(of, reports.message()),
            reports.replay_outcome(of, reports.message(), "failed"),
        ),
        "kind": (reports.protocol(of), reports.recovered(of)),
        "kind of an outcome": (reports.replay_outcome(of, reports.message()), reports.protocol(of)),
    }


NAMES = ["protocol", "properties", "recovered", "interruption", "outcome", "kind", "kind of an outcome"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["same number", "next number", "other spool", "one batch"])
def test_an_id_with_other_content_is_kept_and_counts_as_known(run: Run, name: str, how: str) -> None:
    (first, other), spool, same = kinds(run)[name], uuid.uuid4(), uuid.uuid4()
    second = record(other, 1 if how == "same number" else 2, same)
    if how == "one batch":
        receipt = take(run, spool, record(first, 1, same), second)
        assert (receipt.new, receipt.known) == (1, 1)
    else:
        take(run, spool, record(first, 1, same))
        receipt = take(run, uuid.uuid4() if how == "other spool" else spool, second)
        assert (receipt.new, receipt.known) == (0, 1)
    assert receipt.known_numbers == receipt.conflicts == (second.number,)
    kept = RecordConflict.objects.get()
    assert (kept.record_id, kept.stored_id, kept.number, kept.kind) == (
        same,
        same,
        second.number,
        second.kind,
    )
    assert kept.content and kept.server == run.server


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["same number", "next number", "other spool", "one batch"])
def test_an_id_with_the_same_content_is_only_known(run: Run, name: str, how: str) -> None:
    (first, _), spool, same = kinds(run)[name], uuid.uuid4(), uuid.uuid4()
    second = record(first, 1 if how == "same number" else 2, same)
    if how == "one batch":
        receipt = take(run, spool, record(first, 1, same), second)
    else:
        take(run, spool, record(first, 1, same))
        receipt = take(run, uuid.uuid4() if how == "other spool" else spool, second)
    assert (receipt.known, receipt.known_numbers, receipt.conflicts) == (1, (second.number,), ())
    assert not RecordConflict.objects.exists()
    rows = (FailureProtocol.objects, RecoveredMessage.objects, Interruption.objects, LetterReport.objects)
    assert sum(of_kind.count() for of_kind in rows) == 1


def test_a_conflict_that_is_sent_again_is_kept_once(run: Run) -> None:
    (first, other), spool, same = kinds(run)["protocol"], uuid.uuid4(), uuid.uuid4()
    take(run, spool, record(first, 1, same))
    for _ in range(3):
        take(run, spool, record(other, 2, same))
    assert RecordConflict.objects.count() == 1


def test_a_number_that_another_record_has_is_not_dropped(run: Run) -> None:
    """As from a spool that was put back from a copy and went on counting."""
    spool, of = Spool(), reports.run_of(run)
    first = spool.batch(*[reports.protocol(of)] * 3)
    accept_batch(run.server, first, AT)
    again = record(reports.protocol(of, exception_text="lost?"), 2, uuid.uuid4())
    receipt = take(run, spool.id, again)
    assert (receipt.known, receipt.conflicts, receipt.stored_up_to) == (1, (2,), 3)
    kept = RecordConflict.objects.get()
    assert (kept.record_id, kept.stored_id) == (again.id, first.records[1].id)
    assert "lost?" in kept.content


def closed_with(run: Run) -> tuple[object, ...]:
    run.refresh_from_db()
    return run.closing_records, run.handled, run.state, run.any_count, run.stored_records


@pytest.mark.parametrize("how", ["next number", "other spool", "one batch"])
@pytest.mark.parametrize("same_id", [True, False])
def test_the_first_closing_record_of_a_run_counts(run: Run, how: str, same_id: bool) -> None:
    of, spool, identity = reports.run_of(run), uuid.uuid4(), uuid.uuid4()
    first = record(reports.closing(of, 0, handled=310), 1, identity)
    other: Closing = reports.closing(
        of, 7, handled=5, state=RunState.FAILED, counts=reports.interruption(of).counts
    )
    second = record(other, 2, identity if same_id else uuid.uuid4())
    if how == "one batch":
        receipt = take(run, spool, first, second)
    else:
        take(run, spool, first)
        receipt = take(run, uuid.uuid4() if how == "other spool" else spool, second)
    assert closed_with(run) == (0, 310, "finished", 0, 0)
    assert receipt.known_numbers == receipt.conflicts == (2,)
    kept = RecordConflict.objects.get()
    assert (kept.record_id, kept.stored_id, kept.kind) == (second.id, run.activation_id, "closing")


@pytest.mark.parametrize("how", ["same number", "next number", "other spool"])
def test_a_closing_record_that_comes_again_is_only_known(run: Run, how: str) -> None:
    spool, identity = uuid.uuid4(), uuid.uuid4()
    closing = reports.closing(reports.run_of(run), 0, handled=310)
    take(run, spool, record(closing, 1, identity))
    again = record(closing, 1 if how == "same number" else 2, identity)
    receipt = take(run, uuid.uuid4() if how == "other spool" else spool, again)
    assert (receipt.new, receipt.known, receipt.conflicts) == (0, 1, ())
    assert not RecordConflict.objects.exists()


def test_of_two_intakes_at_once_the_first_closing_record_counts(run: Run) -> None:
    """The second looked at the run before the first had closed it."""
    of = reports.run_of(run)
    for handled in (310, 5):
        record_outcomes(run, closing=reports.closing(of, 0, handled=handled), now=AT)
    assert closed_with(run) == (0, 310, "finished", 0, 0)


def test_a_run_that_was_lost_is_closed_by_its_own_record(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunPhase.LOST, closed_at=AT, handled=300)
    receipt = take(
        run, uuid.uuid4(), record(reports.closing(reports.run_of(run), 0, handled=310), 1, uuid.uuid4())
    )
    assert (receipt.new, closed_with(run)[:3]) == (1, (0, 310, "lost"))


def test_records_that_will_never_come_make_no_conflict_of_their_closing_one(run: Run) -> None:
    closing = reports.closing(reports.run_of(run), 4, state=RunState.INTERRUPTED)
    take(run, uuid.uuid4(), record(closing, 1, uuid.uuid4()))
    Run.objects.filter(pk=run.pk).update(closing_records=0)
    receipt = take(run, uuid.uuid4(), record(closing, 1, uuid.uuid4()))
    assert (receipt.known, receipt.conflicts) == (1, ())


def test_what_retention_has_deleted_is_known_and_no_conflict(run: Run) -> None:
    (first, other), spool, same = kinds(run)["protocol"], uuid.uuid4(), uuid.uuid4()
    take(run, spool, record(first, 1, same))
    FailureProtocol.objects.all().delete()
    assert take(run, spool, record(other, 1, same)).known == 1
    assert not RecordConflict.objects.exists() and not FailureProtocol.objects.exists()


def test_what_was_erased_does_not_come_back_beside_it(run: Run) -> None:
    """The answer was lost, a person erased the message, the KMA sends again."""
    of, spool = reports.run_of(run), Spool()
    batch = spool.batch(reports.protocol(of), reports.recovered(of))
    accept_batch(run.server, batch, AT)
    cases = {(run.activation.setting.key, "ID:1")}
    erase_protocols(cases, "ID:1", dry=False)
    erase_recovered(cases, dry=False)
    assert accept_batch(run.server, batch, AT).known == 2
    assert not RecordConflict.objects.exists()


def test_a_conflict_is_shown_with_the_protocol_and_its_server(world: World) -> None:
    protocol = world.protocols[0]
    of = dataclasses.replace(
        reports.run_of(world.runs[next(iter(world.runs))]),
        server=protocol.server_name,
        setting=protocol.setting_key,
    )
    server = world.servers[protocol.server_name]
    hostile: Any = reports.protocol(of, exception_text="<script>alert(1)</script> other")
    accept_batch(server, RecordBatch(server.name, uuid.uuid4(), (record(hostile, 1, protocol.pk),)), AT)
    client = signed_in(world, "viewer")

    page = looked_at(client, f"/protocols/{protocol.pk}/")
    assert (
        "1 record arrived later with the same number but different content." in page.text
        and "alert(1)" in page.text
    )
    text = looked_at(client, f"/servers/{server.name}/").text
    assert "Records received again with different content" in text and str(protocol.pk)[:8] in text


def test_a_conflict_of_a_closing_record_leads_to_its_activation(world: World) -> None:
    run = next(iter(world.runs.values()))
    for handled in (310, 5):
        closing = reports.closing(reports.run_of(run), 0, handled=handled)
        of_server = RecordBatch(run.server.name, uuid.uuid4(), (record(closing, 1, uuid.uuid4()),))
        accept_batch(run.server, of_server, AT)
    page = looked_at(signed_in(world, "viewer"), f"/servers/{run.server.name}/")
    assert str(run.activation_id)[:8] in page.text.split("Records received again with different content")[1]
    assert not any(link == f"/protocols/{run.activation_id}/" for link in page.links())


def test_records_that_never_came_are_shown_with_their_server(world: World) -> None:
    run = next(iter(world.runs.values()))
    batch = RecordBatch(
        run.server.name,
        uuid.uuid4(),
        tuple(
            record(reports.recovered(reports.run_of(run)), number, uuid.uuid4()) for number in (1010, 1012)
        ),
    )
    client, address = signed_in(world, "viewer"), f"/servers/{run.server.name}/"
    assert "never came" not in looked_at(client, address).text
    accept_batch(run.server, batch, AT)
    assert "1,010 records are missing, latest numbers: 1,011, 1..1,009" in looked_at(client, address).text
