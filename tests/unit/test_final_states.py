"""When an activation ends by itself, and as what."""

import pytest

from agents.services.final_states import RunFact, final_state, own_ending
from failures.unresolved import still_failing

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
        ("standalone", "DELAYED", [FINISHED], "finished"),
        ("standalone", "DELAYED", [FAILED], "finished"),
        ("standalone", "ASAP", [FINISHED], "finished"),
        ("standalone", "ASAP", [FINISHED, RUNNING], None),
    ],
)
def test_an_activation_ends_by_itself(kind: str, timing: str, runs: list[RunFact], ending: str | None) -> None:
    assert own_ending(kind, timing, runs) == ending


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
