"""A database that was put back from a copy asks the KMAs for what it has lost, and gets it once."""

import dataclasses
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import Activation, Run, Server, ServerToken
from contract.messages import RecordBatch, SpoolReport
from contract.wire import dump
from failures.intake.batch import accept_batch
from failures.intake.rate_limit import Charge, Limits
from failures.models import FailureProtocol, IntakeDebt, SpoolMark
from tests.web import reports
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.reports import AT, Spool
from tests.web.rows import heartbeat

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


def told(spool: Spool, run: Run, records: int, *, after: int) -> RecordBatch:
    batch = spool.batch(*[reports.protocol(reports.run_of(run))] * records)
    return dataclasses.replace(batch, after=after)


def mark() -> SpoolMark:
    return SpoolMark.objects.get()


def test_nothing_is_stored_over_what_is_missing_and_all_of_it_from_there(run: Run) -> None:
    spool = Spool()
    first, lost, new = (told(spool, run, 3, after=after) for after in (0, 3, 6))
    accept_batch(run.server, first, AT)

    receipt = accept_batch(run.server, new, AT)
    assert (receipt.stored_up_to, receipt.new, receipt.known) == (3, 0, 0)
    assert (mark().lost_from, mark().lost_to, mark().is_whole_again) == (4, 6, False)

    receipt = accept_batch(run.server, dataclasses.replace(lost, records=lost.records + new.records), AT)
    assert (receipt.stored_up_to, receipt.new) == (9, 6)
    assert FailureProtocol.objects.count() == 9
    assert (mark().never_came, mark().is_whole_again) == (0, True)
    run.refresh_from_db()
    assert (run.failed, run.stored_records) == (9, 9)


def test_a_spool_that_the_copy_does_not_know_comes_from_its_first_record_on(run: Run) -> None:
    spool = Spool()
    everything, new = told(spool, run, 4, after=4), told(spool, run, 1, after=4)
    assert accept_batch(run.server, new, AT).stored_up_to == 0
    assert (mark().lost_from, mark().lost_to) == (1, 4)
    again = dataclasses.replace(everything, records=everything.records + new.records, after=None)
    assert accept_batch(run.server, again, AT).new == 5


def test_what_its_kma_does_not_have_any_more_is_noted_and_holds_nothing_up(run: Run) -> None:
    spool = Spool()
    spool.number = 7
    batch = dataclasses.replace(told(spool, run, 2, after=0), after=None)
    assert accept_batch(run.server, batch, AT).new == 2
    assert (mark().never_came, mark().gaps, mark().passed_at, mark().lost_at) == (7, [[1, 7]], AT, None)


def test_a_kma_that_was_told_less_than_is_stored_is_asked_for_nothing(run: Run) -> None:
    """Its answer was lost: what it sends again is known."""
    spool = Spool()
    batch = told(spool, run, 3, after=0)
    for _ in range(2):
        receipt = accept_batch(run.server, batch, AT)
    assert (receipt.stored_up_to, receipt.known, mark().lost_at) == (3, 3, None)


def test_one_loss_is_noted_once_however_often_it_is_told(run: Run) -> None:
    spool = Spool()
    accept_batch(run.server, told(spool, run, 1, after=0), AT)
    batch = told(spool, run, 1, after=9)
    for seconds in range(3):
        accept_batch(run.server, batch, AT + timedelta(seconds=seconds))
    assert mark().lost_at == AT


def test_what_is_not_stored_is_not_owed(run: Run) -> None:
    charge = Charge(
        ServerToken.objects.create(server=run.server, digest="x"), 10, Limits(rows=1, bytes=10**9)
    )
    accept_batch(run.server, told(Spool(), run, 3, after=9), AT, charge=charge)
    assert not IntakeDebt.objects.exists()


@pytest.mark.parametrize("name", ["after", "first"])
@pytest.mark.parametrize("number", [-1, 2**63, "all", 1.5, True])
def test_a_number_that_is_none_is_refused_whole(client: Client, run: Run, name: str, number: Any) -> None:
    body: Any = dump(told(Spool(), run, 1, after=0))
    answer = client.post(
        "/api/v1/protocols/",
        json.dumps(body | {name: number}).encode(),
        content_type="application/json",
        headers=reports.bearer_of_server(run.server),
    )
    assert answer.status_code == 400 and name in answer.json()["where"]
    assert not SpoolMark.objects.exists()


def test_a_spool_that_goes_on_under_a_new_id_misses_nothing_before_its_first_number(run: Run) -> None:
    spool = Spool()
    spool.number = 2905
    batch = dataclasses.replace(told(spool, run, 2, after=0), after=None, first=2906)
    assert accept_batch(run.server, batch, AT).new == 2
    assert (mark().stored_up_to, mark().never_came, mark().passed_at) == (2907, 0, None)


# -- by the heartbeat ----------------------------------------------------------------------------------------


def asked(server: Server, spool: Spool, after: int | None) -> int | None:
    report = SpoolReport(id=spool.id, after=after)
    return accept_heartbeat(server, heartbeat(server.name, spool=report), AT).spool_stored_up_to


def test_a_heartbeat_finds_the_loss_though_nothing_new_happens(run: Run) -> None:
    spool = Spool()
    accept_batch(run.server, told(spool, run, 2, after=0), AT)
    assert [asked(run.server, spool, after) for after in (None, 1, 2, 5)] == [None, None, None, 2]
    assert (mark().lost_from, mark().lost_to) == (3, 5)


def test_who_only_speaks_of_a_spool_leaves_no_row(run: Run) -> None:
    """Nor takes it from the server whose first batch is still to come."""
    assert [asked(run.server, Spool(), after) for after in (None, 0, 7)] == [None, None, 0]
    assert not SpoolMark.objects.exists()


def test_nobody_learns_of_the_spool_of_another_server(run: Run) -> None:
    spool, other = Spool(), Server.objects.create(name="srv-2")
    accept_batch(run.server, told(spool, run, 2, after=0), AT)
    assert asked(other, spool, 9) is None and mark().lost_at is None


@pytest.mark.parametrize("after", [-5, 2**63])
def test_a_number_that_cannot_be_is_no_loss(run: Run, after: int) -> None:
    assert asked(run.server, Spool(), after) is None and not SpoolMark.objects.exists()


# -- the whole of it -----------------------------------------------------------------------------------------


def test_facts_of_activations_that_the_copy_does_not_know_are_stored_all_the_same(run: Run) -> None:
    """What was begun after the copy was made."""
    spool, gone = Spool(), dataclasses.replace(reports.run_of(run), activation=uuid4())
    batch = dataclasses.replace(spool.batch(reports.protocol(gone)), after=None)
    assert accept_batch(run.server, batch, AT).new == 1
    [row] = FailureProtocol.objects.all()
    assert row.activation is None and not Activation.objects.filter(pk=gone.activation).exists()


def test_people_see_that_records_were_lost_and_came_again(world: World) -> None:
    run = next(iter(world.runs.values()))
    client, address = signed_in(world, "viewer"), f"/servers/{run.server.name}/"
    spool = Spool(run.server.name)
    accept_batch(run.server, spool.batch(reports.protocol(reports.run_of(run))), AT)
    assert "were accepted but are no longer in the database" not in looked_at(client, address).text
    report = SpoolReport(id=spool.id, after=1500)
    accept_heartbeat(run.server, heartbeat(run.server.name, spool=report), timezone.now())
    text = looked_at(client, address).text
    assert (
        "were accepted but are no longer in the database" in text
        and "The KMA has been asked to resend them." in text
    )
    SpoolMark.objects.filter(pk=spool.id).update(stored_up_to=1500)
    assert "The KMA resent the records that it still had." in looked_at(client, address).text
