"""Counts of activations that the MA never knew, and of kinds of failures, go when nothing refers to them any
more."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.models import LaunchSetting, Server
from contract.names import dead_letter_queue
from contract.records import RecordRun
from dlq.models import DeadLetter, Note
from failures.error_groups import known_errors, merges, rollup
from failures.error_groups.rollup import fold_all
from failures.intake.batch import accept_batch
from failures.models import FailureDelta, FailureGroup, Fingerprint, FingerprintHour
from retention import batches
from retention.ages import error_groups
from retention.worker import run_retention_turn
from tests.web import reports
from tests.web.retention_rows import DAY, NOW, activation, protocols, recoveries
from tests.web.rows import make_person

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

OLD = NOW - 150 * DAY


@pytest.fixture(autouse=True)
def times(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MA_KEEP_ACTIVATIONS_DAYS = 100
    settings.MA_RETENTION_SILENT_DAYS = 0
    monkeypatch.setattr(batches, "let_others_write", lambda took: None)
    monkeypatch.setattr(error_groups, "LOOKED_AT", 3)
    monkeypatch.setattr(batches, "FIRST", 2)


def apply() -> dict[str, int]:
    run = run_retention_turn(NOW, every=timedelta(0))
    assert run is not None
    assert run.state == "done", run.problem
    return {row.what: row.deleted for row in run.figures.all()}


def group(of: UUID, at: Any = OLD, fingerprint: str = "v1:1", key: str = "orders") -> FailureGroup:
    return FailureGroup.objects.create(
        activation_uuid=of, setting_key=key, server_name="srv-1", fingerprint=fingerprint, latest=uuid4(),
        first_at=at, last_at=at, count=3,
    )  # fmt: skip


def kind(name: str, at: Any = OLD) -> Fingerprint:
    return Fingerprint.objects.create(
        pk=name,
        exception_type="KeyError",
        latest=uuid4(),
        first_at=at,
        last_at=at,
        recent_at=at,
        received_at=at,
        count=1,
    )


def test_counts_of_unknown_activations_go_when_they_are_old(setting: LaunchSetting) -> None:
    unknown = [group(uuid4()) for _ in range(8)]
    young = group(uuid4(), NOW - 99 * DAY)
    known = group(activation(setting, 150, well=True).pk)

    assert apply() == {"groups": len(unknown)}
    assert set(FailureGroup.objects.all()) == {young, known}
    assert apply() == {}


def _protocol(of: UUID) -> None:
    protocols(None, 1, 150, activation_uuid=of)


def _recovered(of: UUID) -> None:
    rows = protocols(None, 1, 150, activation_uuid=of)
    recoveries(rows)
    rows[0].delete()


def _letter(of: UUID) -> None:
    DeadLetter.objects.create(
        node_id="n",
        queue=dead_letter_queue("orders"),
        orig_message_id=1,
        setting_key="orders",
        activation_uuid=of,
    )


def _delta(of: UUID) -> None:
    FailureDelta.objects.create(
        setting_key="orders", activation_uuid=of, server_name="srv-1", fingerprint="v1:2", hour=OLD,
        received_at=OLD,
        exception_type="KeyError", count=1, first_at=OLD, last_at=OLD, latest=uuid4(),
    )  # fmt: skip


@pytest.mark.parametrize("refer", [_protocol, _recovered, _letter, _delta])
def test_they_stay_while_something_tells_of_the_activation(refer: Callable[[UUID], None]) -> None:
    told, silent = group(uuid4()), group(uuid4())
    refer(told.activation_uuid)

    assert apply()["groups"] == 1
    assert (
        FailureGroup.objects.filter(pk=told.pk).exists()
        and not FailureGroup.objects.filter(pk=silent.pk).exists()
    )


def test_for_ever_is_for_ever(settings: Any) -> None:
    settings.MA_KEEP_ACTIVATIONS_DAYS = 0
    group(uuid4())
    kind("v1:1")
    assert apply() == {}


def test_kinds_go_after_the_last_count_of_them() -> None:
    for name in ("v1:1", "v1:2", "v1:3", "v1:4"):
        kind(name)
    young = kind("v1:young", NOW - 99 * DAY)
    group(uuid4(), fingerprint="v1:1")
    FingerprintHour.objects.create(fingerprint="v1:2", setting_key="orders", hour=OLD, count=1)

    # The group goes before the kinds are looked at.
    assert apply() == {"groups": 1, "fingerprints": 3}
    assert set(Fingerprint.objects.values_list("pk", flat=True)) == {"v1:2", young.pk}


def test_kinds_that_people_spoke_of_stay() -> None:
    person = make_person("ada")
    for name in ("v1:written", "v1:merged", "v1:head", "v1:noted", "v1:dead", "v1:protocol", "v1:nobodys"):
        kind(name)
    known_errors.write("v1:written", known_errors.KnownErrorFields(cause="disk full"), by=person, now=NOW)
    merges.merge("v1:merged", "v1:head", by=person, now=NOW)
    Note.objects.create(setting_key="orders", fingerprint="v1:noted", text="look", by=person, by_name="ada")
    DeadLetter.objects.create(
        node_id="n",
        queue=dead_letter_queue("orders"),
        orig_message_id=1,
        setting_key="orders",
        fingerprint="v1:dead",
    )
    protocols(None, 1, 150, fingerprint="v1:protocol")

    assert apply() == {"fingerprints": 1}
    assert not Fingerprint.objects.filter(pk="v1:nobodys").exists() and Fingerprint.objects.count() == 6


def test_a_turn_that_ends_early_is_gone_on_with_from_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(10):
        group(uuid4())
    turns = 1
    while (
        run := run_retention_turn(NOW, every=timedelta(0), seconds=0.0)
    ) is not None and run.state != "done":
        # So short a turn comes to nothing: one step of it.
        monkeypatch.setattr(batches.Chunks, "over", property(_after(2)))
        turns += 1
        assert turns < 50
    assert turns > 2 and not FailureGroup.objects.exists()


def _after(looks: int) -> Callable[[Any], bool]:
    seen = 0

    def over(self: Any) -> bool:
        nonlocal seen
        seen += 1
        return seen > looks

    return over


def test_what_comes_between_the_look_and_the_delete_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A KMA that was away for long brings a failure of an activation whose counts are just going."""
    lost = group(uuid4())
    hold = rollup.hold

    def late() -> None:
        hold()
        _delta(lost.activation_uuid)

    monkeypatch.setattr(error_groups, "hold", late)
    assert "groups" not in apply()
    assert FailureGroup.objects.get() == lost

    monkeypatch.setattr(error_groups, "hold", hold)
    FailureDelta.objects.all().delete()
    assert apply()["groups"] == 1


def test_a_kill_before_the_commit_leaves_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    for _ in range(4):
        group(uuid4())
    from retention import run_ledger

    count = run_ledger.Claim.count

    def killed(self: Any, what: str, *more: Any) -> None:
        count(self, what, *more)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(run_ledger.Claim, "count", killed)
        run_retention_turn(NOW, every=timedelta(0))
    assert FailureGroup.objects.count() == 4

    later = NOW + timedelta(hours=2)
    run = run_retention_turn(later, every=timedelta(0)) or run_retention_turn(
        later + timedelta(days=400), every=timedelta(0)
    )
    assert run is not None and run.state == "done" and not FailureGroup.objects.exists()


def test_counts_that_went_begin_anew_when_a_failure_comes(server: Server) -> None:
    lost = uuid4()
    group(lost)
    assert apply() == {"groups": 1}
    named = RecordRun("orders", lost, 1, server.name, "demo.orders", "1")
    accept_batch(server, reports.Spool(server.name).batch(reports.protocol(named)), NOW)
    fold_all(NOW)
    assert FailureGroup.objects.get().count == 1
