"""Activations, runs, replays and audit are kept for a time of their own, and as long as something needs
them."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from agents.models import Activation, BreakerTrip, Interruption, LaunchSetting, Run, StateChange
from console.audit.log import record
from console.audit.models import AuditEntry
from dlq.models import DeadLetter, JobState, ReplayItem, ReplayJob, ReplaySlice
from failures.intake.batch import accept_batch
from failures.models import FailureGroup, FailureProtocol
from retention import batches
from retention.ages import activations
from retention.models import RetentionRun
from retention.worker import run_retention_turn
from tests.web import letters, reports
from tests.web.retention_rows import DAY, NOW, activation, protocols, run_of

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def times(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MA_KEEP_ACTIVATIONS_DAYS, settings.MA_KEEP_RUNS_DAYS = 100, 50
    settings.MA_KEEP_REPLAYS_DAYS, settings.MA_KEEP_AUDIT_DAYS = 40, 70
    monkeypatch.setattr(batches, "let_others_write", lambda took: None)
    monkeypatch.setattr(activations, "AT_ONCE", 3)
    monkeypatch.setattr(batches, "FIRST", 2)


def apply() -> dict[str, int]:
    run = run_retention_turn(NOW, every=timedelta(0))
    assert run is not None
    assert run.state == "done", run.problem
    return {row.what: row.deleted for row in run.figures.all()}


def test_old_activations_go_with_their_runs_and_never_the_last_finished_one(setting: LaunchSetting) -> None:
    old = [activation(setting, 300 + days, well=True) for days in range(5, 0, -1)]
    last = activation(setting, 200, well=True)
    for each in (*old, last):
        run_of(each)
        StateChange.objects.create(setting=setting, activation=each, what="activation", new="succeeded")
        FailureGroup.objects.create(
            activation_uuid=each.pk, fingerprint="v1:1", latest=uuid4(), first_at=NOW, last_at=NOW, count=3
        )
    switched = StateChange.objects.create(setting=setting, activation=old[0], what="setting", new="enabled")

    assert apply() == {"activations": 5, "runs": 5}

    assert list(Activation.objects.all()) == [last]
    assert Run.objects.get().activation == last
    assert FailureGroup.objects.get().activation_uuid == last.pk
    switched.refresh_from_db()
    assert switched.activation_id is None
    assert StateChange.objects.filter(activation=last).count() == 1
    assert apply() == {}


def test_runs_go_before_their_activations(setting: LaunchSetting) -> None:
    middle, young = activation(setting, 60, well=True), activation(setting, 10, well=True)
    kept = [run_of(middle), run_of(young)][1]
    told = Interruption.objects.create(
        id=uuid4(), setting=setting, run=Run.objects.get(activation=middle), server=kept.server,
        activation_uuid=middle.pk, epoch=1, reason="same_type", limit_m=10, occurred_at=NOW - 60 * DAY,
    )  # fmt: skip

    assert apply() == {"runs": 1}
    assert list(Run.objects.all()) == [kept]
    told.refresh_from_db()
    assert told.run_id is None
    assert Activation.objects.count() == 2


def test_what_is_still_needed_stays(setting: LaunchSetting, settings: Any) -> None:
    settings.MA_RETENTION_SILENT_DAYS = 0
    with_protocols = activation(setting, 310, well=False)
    protocols(with_protocols, 1, 160, received_at=NOW - 150 * DAY)
    of_a_trip = activation(setting, 309, well=True)
    BreakerTrip.objects.create(setting=setting, activation=of_a_trip, reason="same_type", ended_at=NOW)
    of_a_letter = activation(setting, 308, well=True)
    letters.dead(setting.key, 10, "ID:1")
    DeadLetter.objects.update(activation_uuid=of_a_letter.pk, setting_key=setting.key)
    going_on = activation(setting, 307, going_on=True)
    last = activation(setting, 150, well=False)

    assert apply() == {}

    assert set(Activation.objects.all()) == {with_protocols, of_a_trip, of_a_letter, going_on, last}


def test_a_late_record_of_an_activation_that_is_gone_is_stored(setting: LaunchSetting) -> None:
    old = activation(setting, 300, well=True)
    activation(setting, 200, well=True)
    run = run_of(old)
    of = reports.run_of(run)
    assert apply() == {"activations": 1, "runs": 1}
    receipt = accept_batch(run.server, reports.Spool().batch(reports.protocol(of)), NOW)

    assert receipt.new == 1
    assert FailureProtocol.objects.get().activation_id is None


def job(setting: LaunchSetting, days_ago: float, **fields: Any) -> ReplayJob:
    at = NOW - days_ago * DAY
    known: dict[str, Any] = {
        "scope": "selection",
        "state": JobState.DONE,
        "finished_at": at,
        "created_at": at,
    }
    return ReplayJob.objects.create(setting=setting, setting_key=setting.key, **{**known, **fields})


def test_finished_replays_go_with_their_items_and_nothing_that_is_awaited(setting: LaunchSetting) -> None:
    found = [letters.dead(setting.key, number, f"ID:{number}") for number in range(10, 17)]
    over, waits = job(setting, 41), job(setting, 41)
    part = ReplaySlice.objects.create(job=over, number=1, first_letter_id=1, last_letter_id=9, size=5)
    for letter in found[:5]:
        ReplayItem.objects.create(job=over, letter=letter, slice=part, state="given_back", outcome="handled")
    ReplayItem.objects.create(job=waits, letter=found[5], state="given_back")
    thrown = job(setting, 41, action="discard")
    ReplayItem.objects.create(job=thrown, letter=found[6], state="given_back")
    going_on = job(setting, 41, state=JobState.PAUSED, finished_at=None)
    young = job(setting, 39)

    assert apply() == {"replays": 2, "replay_items": 6, "replay_slices": 1}

    assert set(ReplayJob.objects.all()) == {waits, going_on, young}
    assert ReplayItem.objects.count() == 1
    assert DeadLetter.objects.count() == 7


def test_the_audit_goes_by_its_age_and_by_nothing_else(setting: LaunchSetting, settings: Any) -> None:
    for days in (90, 80, 60):
        record("look", by=None, now=NOW - days * DAY, target="letter:1")
    numbers = list(AuditEntry.objects.order_by("pk").values_list("pk", flat=True))
    settings.MA_KEEP_AUDIT_DAYS = 0
    assert apply() == {}
    settings.MA_KEEP_AUDIT_DAYS = 70
    assert apply() == {"audit": 2}
    assert list(AuditEntry.objects.values_list("pk", flat=True)) == numbers[2:]

    settings.MA_KEEP_AUDIT_DAYS = 1
    assert apply() == {"audit": 1}
    assert record("look", by=None, now=NOW, target="letter:1").pk > numbers[-1], (
        "numbers are never used again"
    )


def test_the_page_says_how_long_each_is_kept(setting: LaunchSetting, client: Client, viewer: Any) -> None:
    RetentionRun.objects.create(state="done").figures.create(what="activations", deleted=3)
    client.force_login(viewer)
    html = " ".join(client.get("/retention/").content.decode().split())

    assert "<dt>ended activations</dt><dd>100 days</dd>" in html
    assert "activations: 3" in html
