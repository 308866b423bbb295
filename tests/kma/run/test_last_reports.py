"""What is told of a run that has just ended while the MA still wants it: what it said last, also after a
restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.messages import DesiredState, OfferedAgent, RunReport
from contract.records import RunState
from kma.agent_discovery import OfferedAgents
from kma.host.supervisor import RunSupervisor
from tests.kma.fakes import Stage, eventually, message

pytestmark = pytest.mark.process

BAD = {"do": "raise"}
OFFER = OfferedAgents((OfferedAgent("demo.scripted", "message"),))


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[Stage]:
    """Of a run that handles two messages, both badly, and then ends by itself."""
    stage = Stage(tmp_path, [message(BAD), message(BAD)], limit_messages=2, max_attempts=1)
    yield stage
    stage.end()


def keeper_of(stage: Stage) -> RunSupervisor:
    keeper = RunSupervisor(stage.around, lambda: OFFER)
    keeper.want(DesiredState("srv-1", "v", (stage.desired,)))
    keeper.step()
    return keeper


def only(keeper: RunSupervisor) -> RunReport:
    keeper.step()
    (report,) = keeper.reports()
    return report


def test_the_last_counts_of_a_run_that_ended_are_told_while_it_is_wanted(ended: Stage) -> None:
    keeper = keeper_of(ended)
    eventually(lambda: not keeper.alive, "the run's own end")

    after, restarted = only(keeper), only(keeper_of(ended))

    for report in (after, restarted):
        assert (report.state, report.failed) == (RunState.FINISHED, 2)
        assert (report.counts.same_type, report.counts.same, report.counts.any) == ("RuntimeError", 2, 2)
    assert len(ended.records("closing")) == 1


def test_what_a_run_has_counted_is_told_while_it_waits_to_go_on(ended: Stage) -> None:
    """As after a crash, or where the agent is not offered any more."""
    keeper = keeper_of(ended)
    eventually(lambda: len(ended.records("protocol")) == 2, "two failures")
    eventually(lambda: not keeper.alive, "the run's own end")
    with ended.file.transaction() as connection:
        connection.execute("UPDATE runs SET closed = 0")

    later = RunSupervisor(ended.around, lambda: OfferedAgents(()))
    later.want(DesiredState("srv-1", "v", (ended.desired,)))

    report = only(later)
    assert (report.state, report.counts.any) == (RunState.FAILED, 2)
