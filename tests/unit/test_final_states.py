"""When an activation ends by itself, and as what."""

import pytest

from agents.activations.rules.outcome import RunFact, final_state, finished_well, own_ending, runs_out
from failures.protocols.messages import still_failing

FINISHED = RunFact("finished", wanted=True, closed=True)
FAILED = RunFact("failed", wanted=True, closed=True)
INTERRUPTED = RunFact("interrupted", wanted=False, closed=True)
LOST = RunFact("lost", wanted=False, closed=True)
RUNNING = RunFact("running", wanted=True, closed=False)
SILENT = RunFact("running", wanted=True, closed=False, silent=True)
WITHDRAWN = RunFact("finished", wanted=False, closed=True)


@pytest.mark.parametrize(
    ("kind", "timing", "runs", "ending"),
    [
        ("message", "ASAP", [FINISHED], None),
        ("message", "DELAYED", [], None),
        ("message", "DELAYED", [RUNNING], None),
        ("message", "DELAYED", [FINISHED], "limit"),
        ("message", "DELAYED", [FINISHED, RUNNING], None),
        ("message", "DELAYED", [FINISHED, SILENT], "limit"),
        ("message", "DELAYED", [SILENT], None),
        ("message", "DELAYED", [WITHDRAWN], None),
        ("message", "DELAYED", [INTERRUPTED], None),
        ("message", "DELAYED", [INTERRUPTED, FINISHED], "limit"),
        ("message", "DELAYED", [FAILED, FINISHED], "finished"),
        ("message", "DELAYED", [RunFact("finished", wanted=True, closed=False), FINISHED], None),
        ("message", "DELAYED", [RunFact("finished", wanted=True, closed=False, silent=True)], None),
        ("message", "DELAYED", [RunFact("lost", wanted=True, closed=True)], None),
        ("message", "DELAYED", [FINISHED, RunFact("running", wanted=False, closed=False)], "limit"),
        ("standalone", "DELAYED", [FINISHED], "finished"),
        ("standalone", "DELAYED", [FAILED], "finished"),
        ("standalone", "ASAP", [FINISHED], "finished"),
        ("standalone", "ASAP", [FINISHED, RUNNING], None),
    ],
)
def test_an_activation_ends_by_itself(
    kind: str, timing: str, runs: list[RunFact], ending: str | None
) -> None:
    assert own_ending(kind, timing, runs) == ending


@pytest.mark.parametrize(
    ("kind", "timing", "by_itself"),
    [
        ("message", "ASAP", False),
        ("message", "DELAYED", True),
        ("standalone", "ASAP", True),
        ("standalone", "DELAYED", True),
    ],
)
def test_only_a_message_agent_as_soon_as_possible_runs_until_it_is_stopped(
    kind: str, timing: str, by_itself: bool
) -> None:
    assert runs_out(kind, timing) is by_itself


@pytest.mark.parametrize(
    ("ending", "runs", "raised", "unresolved", "well"),
    [
        ("drained", [FINISHED, WITHDRAWN], False, 0, True),
        ("stopped", [FINISHED], False, 0, True),
        ("waited", [FINISHED], False, 0, False),
        ("drained", [FINISHED, INTERRUPTED], False, 0, False),
        ("drained", [FINISHED, LOST], False, 0, False),
        ("drained", [FINISHED, FAILED], False, 0, False),
        ("finished", [FINISHED], True, 0, False),
        ("drained", [FINISHED], False, 1, False),
        ("stopped", [], False, 0, True),
    ],
)
def test_it_finished_well_where_nothing_of_it_went_wrong(
    ending: str, runs: list[RunFact], raised: bool, unresolved: int, well: bool
) -> None:
    assert finished_well(ending, runs, raised=raised, unresolved=unresolved) is well


@pytest.mark.parametrize(
    ("state", "ending", "runs", "unresolved", "after"),
    [
        ("running", "drained", [WITHDRAWN], 0, "succeeded"),
        ("running", "drained", [WITHDRAWN], 1, "failed"),
        ("running", "drained", [WITHDRAWN, LOST], 0, "failed"),
        ("running", "drained", [WITHDRAWN, INTERRUPTED], 0, "interrupted"),
        ("running", "limit", [WITHDRAWN], 0, "succeeded"),
        ("running", "waited", [WITHDRAWN], 0, "failed"),
        ("running", "finished", [FAILED], 0, "failed"),
        ("running", "stopped", [WITHDRAWN], 3, "stopped"),
        ("stopped", "", [WITHDRAWN, LOST], 3, "stopped"),
        ("interrupted", "", [INTERRUPTED, WITHDRAWN], 3, "interrupted"),
    ],
)
def test_the_final_state(state: str, ending: str, runs: list[RunFact], unresolved: int, after: str) -> None:
    assert final_state(state, ending, runs, unresolved) == after


@pytest.mark.parametrize(
    ("failed", "recovered", "left"),
    [
        ({1: 1}, {2: 1}, 0),
        ({1: 1, 2: 1}, {3: 1}, 0),
        ({1: 3, 2: 2}, {2: 1, 3: 2}, 0),
        ({1: 2}, {2: 1}, 1),
        ({1: 1, 2: 1, 3: 1}, {}, 1),
        ({4: 1}, {}, 1),
        ({2: 1}, {3: 1, 5: 1}, 0),
    ],
)
def test_messages_that_share_a_weak_key_are_counted_attempt_by_attempt(
    failed: dict[int, int], recovered: dict[int, int], left: int
) -> None:
    assert still_failing(failed, recovered) == left
