"""Whether an activation finished well is stored with its end, whatever its state, and only late records
change it."""

from datetime import timedelta
from typing import Any

import pytest

from agents.activations.end import end_activations, set_ending
from agents.activations.operations import start_activation
from agents.models import Activation, Ending, LaunchSetting, OfferedAgent, Pool, Run, Server, Trigger
from agents.settings.enable import disable_setting, enable_setting
from console.reasons import said
from contract.records import Content, RunState
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol, RecoveredMessage
from tests.web.reports import Spool, closing, message, protocol, recovered, run_of
from tests.web.rows import NOW, make_alive, make_setting

pytestmark = pytest.mark.both_databases

LATER = NOW + timedelta(seconds=1)


@pytest.fixture
def report(server: Server, django_capture_on_commit_callbacks: Any) -> Any:
    make_alive(server, now=NOW)
    spool = Spool()

    def send(*contents: Content) -> Activation:
        with django_capture_on_commit_callbacks(execute=True):
            accept_batch(server, spool.batch(*contents), LATER)
        return Activation.objects.get()

    return send


@pytest.fixture
def asap(pool: Pool, report: Any) -> Run:
    """Of a setting that a person has just switched off."""
    setting = make_setting(pool)
    activation = enable_setting(setting, None, NOW)
    assert activation is not None
    disable_setting(setting, None, said("enough"), NOW)
    return activation.runs.get()


def standalone(pool: Pool) -> Run:
    OfferedAgent.objects.update(kind="standalone")
    setting = make_setting(pool, kind="standalone", timing="DELAYED")
    LaunchSetting.objects.update(enabled=True)
    return start_activation(setting, Trigger.PERSON, None, NOW).runs.get()


def test_nothing_is_said_before_the_end(asap: Run) -> None:
    assert Activation.objects.get().well is None


def test_one_that_a_person_switched_off_may_finish_well(asap: Run, report: Any) -> None:
    activation = report(protocol(run_of(asap)), recovered(run_of(asap)), closing(run_of(asap), 2))

    assert (activation.state, activation.well) == ("stopped", True)


def test_one_that_a_person_switched_off_with_a_failure_open_is_with_an_error(asap: Run, report: Any) -> None:
    activation = report(protocol(run_of(asap)), closing(run_of(asap), 1))

    assert (activation.state, activation.well) == ("stopped", False)


@pytest.mark.parametrize("state", [RunState.INTERRUPTED, RunState.FAILED])
def test_a_run_that_was_given_up_is_an_error(asap: Run, report: Any, state: RunState) -> None:
    assert report(closing(run_of(asap), 0, state=state)).well is False


def test_a_lost_run_is_an_error(asap: Run) -> None:
    Run.objects.update(state="lost", closed_at=NOW)
    end_activations(NOW)

    assert Activation.objects.get().well is False


def test_delayed_messages_that_did_not_come_are_an_error(pool: Pool, report: Any) -> None:
    setting = make_setting(pool, timing="DELAYED")
    LaunchSetting.objects.update(enabled=True)
    run = start_activation(setting, Trigger.PERSON, None, NOW).runs.get()
    set_ending(run.activation, Ending.WAITED, NOW)

    assert report(closing(run_of(run), 0)).well is False


@pytest.mark.parametrize("temporary", [False, True])
def test_a_standalone_agent_that_raised_is_an_error_though_it_ended(
    pool: Pool, report: Any, temporary: bool
) -> None:
    run = standalone(pool)
    raised = protocol(run_of(run), message(key=""), temporary=temporary, counted=not temporary)

    assert report(raised, closing(run_of(run), 1)).well is False


def test_a_standalone_agent_that_returned_finished_well(pool: Pool, report: Any) -> None:
    run = standalone(pool)

    assert report(closing(run_of(run), 0)).well is True


def test_it_outlives_the_protocols_and_late_records_only_turn_it_into_an_error(
    asap: Run, report: Any
) -> None:
    report(protocol(run_of(asap)), recovered(run_of(asap)), closing(run_of(asap), 2))
    FailureProtocol.objects.all().delete()
    RecoveredMessage.objects.all().delete()

    assert report(recovered(run_of(asap), message("ID:7", 2))).well is True
    activation = report(protocol(run_of(asap), message("ID:8")))
    assert (activation.state, activation.well) == ("stopped", False)
    assert report(recovered(run_of(asap), message("ID:8", 2))).well is False


def test_a_late_temporary_failure_changes_nothing(asap: Run, report: Any) -> None:
    report(closing(run_of(asap), 0))
    temporary = protocol(run_of(asap), outcome="temporary", temporary=True, counted=False)

    assert report(temporary).well is True


def test_a_late_exception_of_a_standalone_agent_is_an_error(pool: Pool, report: Any) -> None:
    run = standalone(pool)
    report(closing(run_of(run), 0))
    late = protocol(run_of(run), message(key=""), outcome="temporary", temporary=True, counted=False)
    activation = report(late)

    assert (activation.state, activation.well) == ("failed", False)


def test_one_of_which_nobody_can_tell_any_more_ends_with_an_error(asap: Run, report: Any) -> None:
    Activation.objects.update(well=False)

    assert report(closing(run_of(asap), 0)).well is False
