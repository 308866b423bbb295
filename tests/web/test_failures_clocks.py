"""A KMA's clock may be anything: the records are stored, the difference is shown, and nothing breaks over
it."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from agents.models import Run
from contract.messages import RecordBatch
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol
from failures.pages.protocol_table import skew_of
from tests.web import reports
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
YEAR = timedelta(days=365)


@pytest.fixture
def run(world: World) -> Run:
    return next(iter(world.runs.values()))


def stored(run: Run, sent_at: datetime | None, occurred_at: datetime, now: datetime = AT) -> FailureProtocol:
    batch = Spool(run.server.name).batch(reports.protocol(reports.run_of(run), occurred_at=occurred_at))
    accept_batch(run.server, dataclasses.replace(batch, sent_at=sent_at), now)
    return FailureProtocol.objects.get(pk=batch.records[0].id)


@pytest.mark.parametrize(
    ("ahead", "waited", "told"),
    [
        (0.0, 0, None),
        (4.9, 0, None),
        (-4.9, 0, None),
        (5.1, 0, 5.1),
        (-5.1, 0, -5.1),
        (0.0, 7200, None),  # hours in a spool are no skew
        (-31536000.0, 7200, -31536000.0),
        (31536000.0, 0, 31536000.0),
    ],
)
def test_the_clock_is_compared_when_the_record_is_sent(
    run: Run, ahead: float, waited: int, told: float | None
) -> None:
    sent_at = AT + timedelta(seconds=ahead)
    assert skew_of(stored(run, sent_at, sent_at - timedelta(seconds=waited))) == told


@pytest.mark.parametrize(("late", "told"), [(-7200, None), (0, None), (4, None), (60, 60.0)])
def test_of_an_older_kma_only_what_has_not_occurred_yet_is_certain(
    run: Run, late: int, told: float | None
) -> None:
    assert skew_of(stored(run, None, AT + timedelta(seconds=late))) == told


@pytest.mark.parametrize(
    "occurred_at",
    [
        timezone.now() + YEAR,
        timezone.now() - YEAR,
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_any_instant_is_stored_and_shown_on_every_page(world: World, run: Run, occurred_at: datetime) -> None:
    now = timezone.now()
    protocol = stored(run, occurred_at, occurred_at, now)
    assert (protocol.occurred_at, protocol.received_at) == (occurred_at, now)
    client = signed_in(world, "viewer")

    assert (
        "The failure time is from the server clock." in looked_at(client, f"/protocols/{protocol.pk}/").text
    )
    tag = "clock ahead" if occurred_at > now else "clock skew"
    assert tag in looked_at(client, f"/protocols/?fingerprint={protocol.fingerprint}").text
    for path in (
        "/",
        f"/settings/{protocol.setting_key}/",
        f"/activations/{protocol.activation_uuid}/",
        f"/servers/{run.server.name}/",
        f"/cases/?key={protocol.message_key}&setting={protocol.setting_key}",
    ):
        looked_at(client, path)
    assert client.get(f"/api/v1/protocols/{protocol.pk}/", headers=_token(world)).status_code == 200
    assert client.get("/api/v1/protocols/", headers=_token(world)).status_code == 200


def test_what_is_measured_is_shown_whole_and_over_rest(world: World, run: Run) -> None:
    batch = Spool(run.server.name).batch(
        reports.protocol(reports.run_of(run), memory_peak_bytes=200 * 1024 * 1024)
    )
    accept_batch(run.server, dataclasses.replace(batch, sent_at=AT + timedelta(seconds=90)), AT)
    path = f"/protocols/{batch.records[0].id}/"
    client = signed_in(world, "viewer")

    assert "200 MiB" in looked_at(client, path).text
    answer = client.get(f"/api/v1{path}", headers=_token(world)).json()
    assert (answer["memory_peak_bytes"], answer["clock_skew_seconds"]) == (200 * 1024 * 1024, 90.0)
    assert (answer["delivery_count"], answer["redelivered"]) == (0, False)


@pytest.mark.parametrize(
    ("attempt", "count", "again"), [(1, 0, False), (2, 1, True), (1, 1, True), (3, 0, True)]
)
def test_whether_somebody_had_the_message_before_is_told(
    world: World, run: Run, attempt: int, count: int, again: bool
) -> None:
    about = reports.message(attempt=attempt, delivery_count=count)
    batch = Spool(run.server.name).batch(reports.protocol(reports.run_of(run), about))
    accept_batch(run.server, batch, AT)
    path = f"/protocols/{batch.records[0].id}/"
    client = signed_in(world, "viewer")

    assert ("redelivered" in looked_at(client, path).text) is again
    assert client.get(f"/api/v1{path}", headers=_token(world)).json()["redelivered"] is again


def test_an_unknown_activation_is_shown_as_such_with_its_server(world: World, run: Run) -> None:
    of = dataclasses.replace(reports.run_of(run), activation=uuid4())
    batch = Spool(run.server.name).batch(reports.protocol(of))
    accept_batch(run.server, batch, AT)
    client = signed_in(world, "viewer")

    listed = looked_at(client, f"/protocols/?activation={of.activation}").text
    assert "1 total" in listed and "unknown activation" in listed and run.server.name in listed
    whole = looked_at(client, f"/protocols/{batch.records[0].id}/").text
    assert "unknown activation" in whole and str(of.activation) in whole
    known = next(row for row in world.protocols if row.activation_id)
    assert "unknown activation" not in looked_at(client, f"/protocols/{known.pk}/").text


def test_fields_that_were_not_understood_are_shown_with_their_server(world: World, run: Run) -> None:
    record = Spool(run.server.name).record(reports.protocol(reports.run_of(run)))
    record = dataclasses.replace(record, content={**record.content, "<b>mood": 1})
    accept_batch(run.server, RecordBatch(run.server.name, uuid4(), (record,)), AT)
    text = looked_at(signed_in(world, "viewer"), f"/servers/{run.server.name}/").text
    assert "1 unknown field was ignored." in text and "protocol.<b>mood" in text


def _token(world: World) -> dict[str, Any]:
    return reports.bearer_of(world.people["viewer"])
