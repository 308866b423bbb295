"""Retention applied: what goes, what stays, what it says of it, and what it keeps nowhere."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agents.models import Activation, LaunchSetting, Pool, Run, Server
from console.processes import record_heartbeat
from contract.outcomes import Outcome
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol, RecoveredMessage
from insights.runs import worker as runner
from retention import batches, worker
from retention.models import PART_FAILED, RetentionFigure, RetentionRun
from retention.protocols import holds, setting_rule
from retention.protocols.holds import HOLDS, Hold
from retention.protocols.queries import fact_of, silent_span, span_of
from retention.protocols.setting_rule import apply_to_setting
from retention.rules import what_goes
from retention.worker import run_retention_turn
from tests.web import reports
from tests.web.retention_rows import DAY, NOW, activation, left, protocols, recoveries, run_of
from tests.web.rows import make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
AT_ONCE = timedelta(0)


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few rows, so that every loop goes round more than once."""
    monkeypatch.setattr(setting_rule, "AT_ONCE", 7)
    monkeypatch.setattr(batches, "FIRST", 3)
    monkeypatch.setattr(batches, "LEAST", 2)
    monkeypatch.setattr(batches, "MOST", 5)
    monkeypatch.setattr(batches, "let_others_write", lambda took: None)


def apply(now: Any = NOW) -> RetentionRun:
    run = run_retention_turn(now, every=AT_ONCE)
    assert run is not None
    assert run.state == "done", run.problem
    return run


def told(run: RetentionRun) -> dict[tuple[str, str, str], tuple[int, dict[str, int]]]:
    return {(row.what, row.setting_key, row.rule): (row.deleted, row.kept_for) for row in run.figures.all()}


def test_after_one_that_finished_well_everything_up_to_it_goes(setting: LaunchSetting) -> None:
    bad, well = activation(setting, 9, well=False), activation(setting, 5, well=True)
    going_on = activation(setting, 2, going_on=True)
    protocols(bad, 11, 9)
    recoveries(protocols(well, 10, 5))
    protocols(going_on, 4, 1)
    # Its server's clock is years behind.
    protocols(going_on, 3, 5, occurred_at=NOW - 2000 * DAY)

    run = apply()

    assert left() == {str(going_on.pk): 7}
    assert RecoveredMessage.objects.count() == 0
    assert told(run) == {
        ("protocols", "orders", "well"): (21, {}),
        ("recovered", "orders", "well"): (10, {}),
    }
    assert run.deleted == 31
    assert set(Activation.objects.filter(cleared=True)) == {bad, well}
    assert apply().deleted == 0


def test_after_one_with_an_error_what_is_older_than_n_goes(setting: LaunchSetting) -> None:
    LaunchSetting.objects.update(retention_days=10)
    old, middle, bad = (activation(setting, days, well=True) for days in (40, 14, 5))
    Activation.objects.filter(pk=bad.pk).update(well=False)
    recoveries(protocols(old, 8, 40))
    protocols(middle, 3, 15.1)
    protocols(middle, 4, 14.9)
    # It came late: by our clock it is young.
    protocols(middle, 2, 20, received_at=NOW - 6 * DAY)
    protocols(bad, 5, 5)

    run = apply()

    assert left() == {str(middle.pk): 6, str(bad.pk): 5}
    assert told(run) == {
        ("protocols", "orders", "error"): (11, {}),
        ("recovered", "orders", "error"): (8, {}),
    }
    figure = RetentionFigure.objects.get(what="protocols")
    assert figure.before == NOW - 15 * DAY
    assert set(Activation.objects.filter(cleared=True)) == {old}


def test_n_of_the_site_holds_where_the_setting_has_none(setting: LaunchSetting, settings: Any) -> None:
    settings.MA_RETENTION_DAYS = 2
    bad = activation(setting, 5, well=False)
    protocols(bad, 2, 7.5)
    protocols(bad, 1, 6.5)

    apply()

    assert left() == {str(bad.pk): 1}


def test_one_that_never_ends_loses_what_is_older_than_c(setting: LaunchSetting) -> None:
    endless = activation(setting, 200, going_on=True)
    recoveries(protocols(endless, 12, 100))
    recoveries(protocols(endless, 3, 80))

    run = apply()

    assert left() == {str(endless.pk): 3}
    assert RecoveredMessage.objects.count() == 3
    assert told(run)["protocols", "orders", "silent"] == (12, {})


def test_nothing_goes_by_age_where_c_is_off(setting: LaunchSetting, settings: Any) -> None:
    settings.MA_RETENTION_SILENT_DAYS = 0
    protocols(activation(setting, 200, going_on=True), 3, 150)
    protocols(None, 2, 150)

    assert apply().deleted == 0


def test_what_nobody_can_place_goes_by_age(setting: LaunchSetting) -> None:
    activation(setting, 5, well=True)
    recoveries(protocols(None, 9, 100))
    recoveries(protocols(None, 2, 50))

    run = apply()

    assert left() == {str(UUID(int=77)): 2}
    assert RecoveredMessage.objects.count() == 2
    assert told(run)["protocols", "", "silent"] == (9, {})


def test_before_one_that_goes_on_loses_its_evidence_it_is_written_down(setting: LaunchSetting) -> None:
    endless = activation(setting, 200, going_on=True)
    recoveries(protocols(endless, 5, 100))
    apply()
    assert Activation.objects.get().well is None

    protocols(endless, 1, 100, temporary=True, outcome="temporary")
    apply()
    assert Activation.objects.get().well is None

    protocols(endless, 1, 100)
    apply()
    assert Activation.objects.get().well is False


def test_a_late_record_of_what_was_cleared_is_found_again(setting: LaunchSetting, server: Server) -> None:
    well = activation(setting, 5, well=True)
    run = run_of(well)
    apply()
    assert Activation.objects.get().cleared
    late = reports.protocol(
        reports.run_of(run), occurred_at=NOW - 5 * DAY, temporary=True, outcome="temporary"
    )
    accept_batch(server, reports.Spool().batch(late), NOW)
    assert not Activation.objects.get().cleared

    assert apply(NOW + DAY).deleted == 1


def test_a_late_record_of_a_run_that_nobody_knows_is_found_again(
    setting: LaunchSetting, server: Server
) -> None:
    well = activation(setting, 5, well=True)
    run = run_of(well)
    apply()
    of = reports.run_of(run)
    Run.objects.all().delete()
    accept_batch(
        server, reports.Spool().batch(reports.protocol(of, temporary=True, outcome="temporary")), NOW
    )

    assert not Activation.objects.get().cleared
    assert apply(NOW + DAY).deleted == 1


def test_what_was_deleted_does_not_come_back_with_a_resend(setting: LaunchSetting, server: Server) -> None:
    well = activation(setting, 5, well=True)
    of = reports.run_of(run_of(well))
    batch = reports.Spool().batch(*[reports.protocol(of)] * 3, reports.recovered(of))
    assert accept_batch(server, batch, NOW).new == 4
    Activation.objects.update(well=True)
    assert apply().deleted == 4

    receipt = accept_batch(server, batch, NOW)

    assert (receipt.new, receipt.known) == (0, 4)
    assert not FailureProtocol.objects.exists()
    assert not RecoveredMessage.objects.exists()


def test_late_records_that_turn_well_into_error_stop_what_goes_on(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = activation(setting, 5, well=True)
    protocols(well, 20, 5)
    seen: list[int] = []

    def turn_bad(took: float) -> None:
        seen.append(FailureProtocol.objects.count())
        Activation.objects.update(well=False)

    monkeypatch.setattr(batches, "let_others_write", turn_bad)
    apply()

    assert FailureProtocol.objects.count() == seen[0] > 0


def test_protocols_that_count_the_deaths_of_a_kma_stay_for_a_day(setting: LaunchSetting) -> None:
    well = activation(setting, 0.5, well=True, lasted=0.2)
    protocols(well, 1, 0.4, outcome=Outcome.KMA_DIED.value, message_key="ID:1", counted=False)
    protocols(well, 2, 0.3, message_key="ID:1")
    protocols(well, 2, 0.3)

    run = apply()

    assert told(run)["protocols", "orders", "well"] == (2, {"attempts": 3})
    assert apply(NOW + DAY).deleted == 3


def test_what_nobody_would_keep_goes_without_being_looked_at(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    one_by_one = setting_rule.of_activation

    def of_activation(pk: UUID) -> Iterator[Any]:
        for some in one_by_one(pk):
            looked_at.append(len(some))
            yield some

    monkeypatch.setattr(setting_rule, "of_activation", of_activation)
    record_heartbeat("feed", NOW)
    well = activation(setting, 5, well=True)
    protocols(well, 12, 4)
    # Received just now: a letter of it may be on its way.
    kept = protocols(well, 1, 4, received_at=NOW, last_attempt=True)

    apply(NOW)
    assert list(FailureProtocol.objects.all()) == kept and looked_at == [1]


def test_where_somebody_has_to_look_each_is_looked_at(setting: LaunchSetting) -> None:
    well = activation(setting, 5, well=True)
    rows = protocols(well, 12, 4)
    HOLDS["test"] = Hold(
        lambda picked, now: {each.id for each in picked if each.id == rows[7].pk}, lambda now: None
    )
    try:
        assert holds.held_before(NOW) is None
        apply(NOW)
    finally:
        del HOLDS["test"]

    assert list(FailureProtocol.objects.all()) == [rows[7]]


def test_a_guard_keeps_what_it_says_and_is_told_of(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an archive does: nothing goes that is in no verified block."""
    well = activation(setting, 5, well=True)
    kept = {each.pk for each in protocols(well, 30, 5)[::2]}
    hold = Hold(lambda picked, now: {each.id for each in picked} & kept, lambda now: None)
    monkeypatch.setitem(HOLDS, "archive", hold)
    run = apply()
    monkeypatch.undo()

    assert set(FailureProtocol.objects.values_list("pk", flat=True)) == kept
    assert told(run)["protocols", "orders", "well"] == (15, {"archive": 15})
    assert not Activation.objects.get().cleared
    assert apply().deleted == 15


def test_a_fault_of_one_setting_keeps_no_other_from_its_turn(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("bad", "good"):
        protocols(activation(make_setting(pool, key), 5, well=True), 4, 5)
    real = apply_to_setting

    def faulty(setting: LaunchSetting, *rest: Any) -> None:
        if setting.key == "bad":
            raise RuntimeError("out of order")
        real(setting, *rest)

    monkeypatch.setattr(worker, "apply_to_setting", faulty)
    run = run_retention_turn(NOW, every=AT_ONCE)

    assert run is not None
    assert (run.state, run.problem) == (
        "failed",
        PART_FAILED(part="bad", type="RuntimeError", text="out of order"),
    )
    assert set(FailureProtocol.objects.values_list("setting_key", flat=True)) == {"bad"}


def test_a_turn_that_is_over_is_gone_on_with(pool: Pool) -> None:
    for key in ("one", "two"):
        protocols(activation(make_setting(pool, key), 5, well=True), 4, 5)
    run = run_retention_turn(NOW, every=AT_ONCE, seconds=0)
    assert run is not None
    assert (run.state, FailureProtocol.objects.count()) == ("running", 8)
    # The one that is open, not a new one: though the last began just now.
    again = run_retention_turn(NOW)

    assert again is not None
    assert (again.pk, again.state, FailureProtocol.objects.count()) == (run.pk, "done", 0)
    assert run_retention_turn(NOW) is None
    assert run_retention_turn(NOW + worker.EVERY) is not None


def test_runs_are_told_of_for_a_while(setting: LaunchSetting) -> None:
    for days in (200, 91, 89):
        RetentionRun.objects.create(state="done", started_at=NOW - days * DAY).figures.create(
            what="audit", deleted=1
        )

    run = apply()

    assert list(RetentionRun.objects.values_list("started_at", flat=True)) == [run.started_at, NOW - 89 * DAY]
    assert RetentionFigure.objects.count() == 1


class RetentionAgainstTheRule(TestCase):
    """What is left in the database is what the rule leaves, row by row, whatever the history."""

    @how(max_examples=25, deadline=None)
    @given(
        st.lists(st.tuples(st.integers(0, 150), st.none() | st.integers(0, 100), st.booleans()), max_size=4),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200), st.integers(0, 50)), max_size=12),
        st.integers(0, 60),
        st.booleans(),
    )
    def test_the_rows_that_are_left(
        self,
        history: list[tuple[int, int | None, bool]],
        failures: list[tuple[int, int, int]],
        days: int,
        swept: bool,
    ) -> None:
        if swept:
            record_heartbeat("feed", NOW)
        pool = Pool.objects.create(name="demo")
        setting = make_setting(pool, retention_days=days)
        made = []
        for start, lasted, well in sorted(history, key=lambda each: -each[0]):
            each = activation(setting, start, well=well, lasted=min(lasted or 0, start))
            if lasted is None and not Activation.objects.filter(ended_at=None).exists():
                Activation.objects.filter(pk=each.pk).update(ended_at=None, well=None, state="running")
            made.append(each)
        facts = {each.pk: fact_of(each) for each in Activation.objects.all()}
        ranges = what_goes(facts.values(), now=NOW, n=span_of(setting), c=silent_span())
        expected = set()
        for which, ago, delay in failures:
            of = made[which] if which < len(made) else None
            at = NOW - ago * DAY
            known = {"setting": setting, "setting_key": setting.key}
            row = protocols(of, 1, ago, received_at=at + delay * DAY, **known)[0]
            fact = facts[of.pk] if of else None
            unplaced = of is None and at + delay * DAY < NOW - 90 * DAY
            if not unplaced and not any(each.covers(fact, at + delay * DAY) for each in ranges):
                expected.add(row.pk)

        apply()

        assert set(FailureProtocol.objects.values_list("pk", flat=True)) == expected


def test_the_plan_of_the_pipeline_says_when_it_ran_last(setting: LaunchSetting) -> None:
    assert runner._retention()["last_run_at"] is None
    run_retention_turn(NOW)
    assert runner._retention()["last_run_at"] == NOW.isoformat()
