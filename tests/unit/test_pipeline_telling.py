"""What the terminal says of a run of the pipeline."""

from insights.models import PipelineRun, PipelineState
from insights.runs.progress import run_lines

NOTHING_NEW = "no new data: data of the last 10 minutes is left for the next run"


def of(*states: str, state: PipelineState = PipelineState.DONE) -> list[str]:
    stages = [{"stage": f"job {n}", "state": each} for n, each in enumerate(states)]
    return run_lines(PipelineRun(state=state, stages=stages))


def test_a_run_that_found_nothing_says_why() -> None:
    assert of("skipped", "skipped")[-1] == NOTHING_NEW


def test_a_run_that_did_anything_or_did_not_end_does_not() -> None:
    assert NOTHING_NEW not in of("done", "skipped")
    assert NOTHING_NEW not in of("skipped", state=PipelineState.CANCELLED)
    assert NOTHING_NEW not in of()
