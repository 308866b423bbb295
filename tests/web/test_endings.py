"""When an activation ends, as what, and what comes after its end."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents import hooks
from agents.activations.end import end_activations, set_ending
from agents.activations.operations import start_activation
from agents.models import Activation, Ending, LaunchSetting, Pool, Run, Server, StateChange, Trigger
from agents.reasons import LATE_RECORDS, MESSAGES_FAILED
from contract.records import Content, RunState
from dlq.models import LetterReport
from failures.intake.batch import accept_batch
from tests.web.reports import AT, Spool, closing, message, protocol, recovered, run_of
from tests.web.rows import NOW, make_alive, make_setting

pytestmark = pytest.mark.both_databases

LATER = NOW + timedelta(seconds=1)


@pytest.fixture
def delayed(pool: Pool, server: Server) -> LaunchSetting:
    make_alive(server, now=NOW)
    setting = make_setting(pool, timing="DELAYED")
    LaunchSetting.objects.update(enabled=True)
    return setting


@pytest.fixture
def run(delayed: LaunchSetting) -> Run:
    return start_activation(delayed, Trigger.PERSON, None, NOW).runs.get()


@pytest.fixture
def report(run: Run, django_capture_on_commit_callbacks: Any) -> Any:
    spool = Spool()

    def send(*contents: Content) -> Activation:
        with django_capture_on_commit_callbacks(execute=True):
            accept_batch(run.server, spool.batch(*contents), LATER)
        return Activation.objects.get()

    return send


def drain(run: Run) -> None:
    assert set_ending(run.activation, Ending.DRAINED, NOW)


def test_a_drained_activation_succeeds_with_its_last_record(run: Run, report: Any) -> None:
    drain(run)
    assert not Run.objects.get().wanted
    assert end_activations(NOW) == 0

    activation = report(closing(run_of(run), 0))

    assert (activation.state, activation.ended_at) == ("succeeded", LATER)
    changes = (
        StateChange.objects.filter(activation=activation).order_by("id").values_list("what", "old", "new")
    )
    assert list(changes) == [
        ("activation", "", "pending"),
        ("run", "", "wanted"),
        ("ending", "running", "drained"),
        ("activation", "running", "succeeded"),
    ]


def test_it_waits_for_records_that_the_closing_one_counts(run: Run, report: Any) -> None:
    drain(run)
    assert report(closing(run_of(run), 2)).ended_at is None
    assert report(protocol(run_of(run))).ended_at is None

    assert report(recovered(run_of(run))).state == "succeeded"


def test_a_message_that_failed_and_was_not_handled_later_is_an_error(run: Run, report: Any) -> None:
    drain(run)
    activation = report(protocol(run_of(run)), closing(run_of(run), 1))

    assert activation.state == "failed"
    assert StateChange.objects.latest("id").reason == MESSAGES_FAILED(n=1)


def test_a_temporary_failure_is_none(run: Run, report: Any) -> None:
    drain(run)
    temporary = protocol(run_of(run), outcome="temporary", temporary=True, counted=False)

    assert report(temporary, closing(run_of(run), 1)).state == "succeeded"


def test_a_failure_after_the_recovery_of_another_message_is_an_error(run: Run, report: Any) -> None:
    drain(run)
    other = message("ID:2", 2)
    activation = report(protocol(run_of(run)), recovered(run_of(run), other), closing(run_of(run), 2))

    assert activation.state == "failed"


def test_what_was_given_back_and_handled_well_is_resolved(run: Run, report: Any) -> None:
    drain(run)
    report(protocol(run_of(run)))
    LetterReport.objects.create(
        id=run.activation_id, setting_key="orders", message_key="ID:1", result="handled", server_name="srv-1",
        activation_uuid=run.activation_id, attempt=1, occurred_at=AT,
    )  # fmt: skip

    assert report(closing(run_of(run), 1)).state == "succeeded"


def test_a_run_that_ends_by_itself_has_reached_its_limit(run: Run, report: Any) -> None:
    activation = report(closing(run_of(run), 0))

    assert (activation.state, activation.ending) == ("succeeded", "limit")


def test_one_interrupted_run_of_many_does_not_end_it(
    pool: Pool, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW)
    setting = make_setting(pool, timing="DELAYED", spread="MANY")
    LaunchSetting.objects.update(enabled=True)
    activation = start_activation(setting, Trigger.PERSON, None, NOW)
    Run.objects.filter(server=server).update(state="interrupted", wanted=False, closed_at=NOW)
    assert end_activations(NOW) == 0

    set_ending(activation, Ending.DRAINED, NOW)
    Run.objects.filter(server=second_server).update(state="finished", closed_at=NOW)
    assert end_activations(NOW) == 1
    assert Activation.objects.get().state == "interrupted"


def test_late_records_turn_well_into_error_and_never_back(run: Run, report: Any) -> None:
    drain(run)
    assert report(closing(run_of(run), 0)).state == "succeeded"

    assert report(recovered(run_of(run), message("ID:9", 2))).state == "succeeded"
    activation = report(protocol(run_of(run)))
    assert (activation.state, activation.late_records, activation.ended_at) == ("failed", 2, LATER)
    assert report(recovered(run_of(run))).state == "failed"
    assert StateChange.objects.filter(reason=LATE_RECORDS()).count() == 1


def test_a_late_closing_record_of_a_failed_run_is_an_error(run: Run, report: Any) -> None:
    drain(run)
    Run.objects.update(state="finished", closed_at=NOW)
    end_activations(NOW)

    assert report(closing(run_of(run), 0, state=RunState.FAILED)).state == "failed"


def test_records_that_never_come_make_the_run_lost(run: Run, report: Any) -> None:
    from agents.activations.end import lose_unreachable_runs

    drain(run)
    assert report(closing(run_of(run), 3)).ended_at is None
    much_later = LATER + timedelta(seconds=61)
    make_alive(run.server, now=much_later)
    lose_unreachable_runs(much_later)
    end_activations(much_later)

    assert (Run.objects.get().state, Activation.objects.get().state) == ("lost", "failed")


def test_followers_are_told_once_after_the_commit(
    run: Run, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(
        hooks.activation_ended,
        "_implementations",
        [lambda activation, now: told.append((activation.state, str(now)))],
    )
    drain(run)
    Run.objects.update(state="finished", closed_at=NOW)
    with django_capture_on_commit_callbacks(execute=True):
        assert end_activations(LATER) == 1
        assert end_activations(LATER) == 0
        assert not told

    assert told == [("succeeded", str(LATER))]


def test_looking_for_ends_costs_the_same_with_many_that_go_on(pool: Pool, server: Server) -> None:
    make_alive(server, now=NOW)
    for number in range(20):
        setting = make_setting(pool, f"delayed-{number}", timing="DELAYED", enabled=True)
        start_activation(setting, Trigger.PERSON, None, NOW)

    with CaptureQueriesContext(connection) as queries:
        assert end_activations(NOW) == 0
    assert len(queries) <= 2
