"""The archive of a real MA's rows: what the database holds is what the archive holds, kind by kind."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from dlq.models import DeadLetter, ReplayItem
from failures.models import FailureProtocol, RecoveredMessage
from insights.archive import planning
from insights.archive import planning as settling
from insights.archive import report as results
from insights.archive.statements import KINDS as STATEMENTS
from insights.models import ArchiveBlock
from pipeline.archive.reading import Archive
from pipeline.archive.source import Source
from pipeline.archive.stages import archive_stage
from pipeline.schemas import KINDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.web.factories import World

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def switched_on(settings: Any, archive_url: str) -> None:
    settings.MA_ARCHIVE_URL = archive_url
    settings.MA_ARCHIVE_BODIES = True


@pytest.fixture
def world(settings: Any) -> World:
    from tests.web.factories import make_world

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    world = make_world()
    connection.commit()
    return world


def archived(session: SparkSession, now: Any) -> tuple[Archive, Any]:
    """One run of the archive: planned, written, put down."""
    plan = planning.plan(now)
    source = Source.of_plan(plan["source"], planning.environment())
    archive = Archive(session, plan["archive"])
    done = archive_stage(session, plan["blocks"], plan["verify"], source, archive)
    report = {name: getattr(done, name) for name in ("written", "verified", "failed")}
    results.take_report(report, now)
    archive.forget()
    return archive, done


def test_every_kind_is_archived_as_the_database_has_it(session: SparkSession, world: World) -> None:
    ReplayItem.objects.filter(state="given_back").update(outcome="handled", outcome_at=world.now)
    archive, done = archived(session, world.now + HOUR)

    assert done.failed == []
    assert [each for each in done.verified if not each["ok"]] == []
    counts = {name: archive.rows(name).count() for name in KINDS}
    assert counts["protocols"] == FailureProtocol.objects.count()
    assert counts["recovered"] == RecoveredMessage.objects.count()
    assert counts["letters"] == DeadLetter.objects.count()
    assert counts["replays"] == ReplayItem.objects.filter(outcome="handled").count() > 0
    for name in ("activations", "runs", "trips"):
        assert counts[name] == STATEMENTS[name].count(world.now - timedelta(days=900), world.now + HOUR / 2)
    assert {each.state for each in ArchiveBlock.objects.all()} == {"verified"}


def test_a_protocol_is_archived_to_the_letter(session: SparkSession, world: World) -> None:
    told = FailureProtocol.objects.order_by("pk")[:1].get()
    FailureProtocol.objects.filter(pk=told.pk).update(disposition="discarded", durable=False)
    archive, _ = archived(session, world.now + HOUR)
    rows = archive.rows("protocols").selectExpr(
        "*", "unix_micros(occurred_at) occurred", "unix_micros(received_at) received"
    )
    found = {row["id"]: row for row in rows.collect()}

    for protocol in FailureProtocol.objects.all():
        row = found[str(protocol.pk)]
        assert (row["setting_key"], row["activation"]) == (
            protocol.setting_key,
            str(protocol.activation_uuid),
        )
        assert (row["traceback"], row["exception_text"]) == (protocol.traceback, protocol.exception_text)
        assert (row["temporary"], row["counted"]) == (protocol.temporary, protocol.counted)
        assert json.loads(row["properties"]) == protocol.properties
        assert (row["disposition"], row["durable"]) == (protocol.disposition, protocol.durable)
        assert row["duration_seconds"] == protocol.duration_seconds
        assert row["clock_skew_seconds"] == protocol.clock_skew_seconds
        assert row["occurred"] == round(protocol.occurred_at.timestamp() * 1_000_000)
        assert row["received"] == round(protocol.received_at.timestamp() * 1_000_000)
        assert (row["message_key"], row["place"], row["fingerprint"]) == (
            protocol.message_key, protocol.place, protocol.fingerprint,
        )  # fmt: skip


def test_what_settings_mask_is_in_no_letter_of_the_archive(session: SparkSession, world: World) -> None:
    setting = next(
        each for each in world.settings.values() if DeadLetter.objects.filter(setting_key=each.key).exists()
    )
    letter = DeadLetter.objects.filter(setting_key=setting.key, queue=f"DLQ.{setting.key}").first()
    assert letter is not None
    content = letter.content
    content.properties = [
        {"name": "card", "type": "string", "value": "4111-1111"}, {"name": "count", "type": "int",
        "value": 7},
    ]  # fmt: skip
    content.body_text = '{"card": "4111-1111"}'
    content.save()
    type(setting).objects.filter(pk=setting.pk).update(masked_properties=["card"])
    archive, _ = archived(session, world.now + HOUR)
    row = archive.rows("letters").where(f"id = {letter.pk}").collect()[0]

    assert json.loads(row["properties"]) == [{"name": "card"}, {"name": "count", "type": "int", "value": "7"}]
    assert row["body"] is None


def test_a_run_with_nothing_new_writes_nothing(session: SparkSession, world: World) -> None:
    archived(session, world.now + HOUR)
    _, done = archived(session, world.now + HOUR)

    assert (done.written, done.verified, done.failed) == ([], [], [])


def test_a_setting_that_was_deleted_keeps_its_protocols_in_the_archive(
    session: SparkSession, world: World
) -> None:
    key = FailureProtocol.objects.values_list("setting_key", flat=True)[0]
    count = FailureProtocol.objects.filter(setting_key=key).count()
    FailureProtocol.objects.filter(setting_key=key).update(setting=None, activation=None, run=None)
    archive, done = archived(session, world.now + HOUR)

    assert done.failed == []
    assert archive.rows("protocols").where(f"setting_key = '{key}'").count() == count


def test_a_late_record_brings_its_activation_and_its_runs_again(session: SparkSession, world: World) -> None:
    """A KMA that was away for a week: the activation ended long ago, and turns out to have failed."""
    activation = next(each for each in world.activations.values() if each.ended_at is not None)
    type(activation).objects.filter(pk=activation.pk).update(well=True)
    archived(session, world.now + HOUR)
    late = FailureProtocol.objects.filter(setting_key=activation.setting.key)[0]
    late.pk, late.number = "00000000-0000-4000-8000-000000000001", 10**9
    late.activation, late.activation_uuid = activation, activation.pk
    late.occurred_at, late.received_at = world.now - timedelta(days=7), world.now + 2 * HOUR
    late.save(force_insert=True)
    type(activation).objects.filter(pk=activation.pk).update(well=False)
    archive, done = archived(session, world.now + 4 * HOUR)

    assert done.failed == []
    row = archive.rows("activations").where(f"id = '{activation.pk}'").collect()
    assert [each["well"] for each in row] == [False]
    found = archive.rows("protocols", occurred=(late.occurred_at, late.occurred_at + HOUR))
    assert str(late.pk) in {each["id"] for each in found.collect()}


def test_what_is_committed_late_is_archived_once(session: SparkSession, world: World) -> None:
    archived(session, world.now + HOUR)
    late = FailureProtocol.objects.all()[0]
    late.pk, late.number = "00000000-0000-4000-8000-000000000002", 10**9
    late.save(force_insert=True)
    settling.settle_all(world.now + 3 * HOUR)
    assert ArchiveBlock.objects.filter(late_of__isnull=False, kind="protocols").count() == 1
    archive, done = archived(session, world.now + 3 * HOUR)

    assert done.failed == []
    assert [each for each in done.verified if not each["ok"]] == []
    rows = archive.rows("protocols")
    assert (rows.count(), rows.select("id").distinct().count()) == (FailureProtocol.objects.count(),) * 2
