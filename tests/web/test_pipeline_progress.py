"""How far a run is, from what its application writes line by line."""

import json
from pathlib import Path
from typing import Any

import pytest

from insights.models import PipelineRun
from insights.runs.progress import Progress

pytestmark = pytest.mark.both_databases


def write(path: Path, *lines: Any) -> None:
    with path.open("a") as file:
        file.writelines(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)


def percent(progress: Progress) -> int:
    return PipelineRun(state="running", open=True, stages=progress.stages).percent


def test_what_was_done_stays_done_though_there_is_more_to_do_than_was_known(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    progress = Progress(path)
    assert not progress.poll()
    write(path, {"stages": ["a", "b"]}, {"stage": "a", "state": "running", "done": 6, "total": 8})
    assert progress.poll() and percent(progress) == 37

    write(path, {"stage": "a", "state": "running", "done": 7, "total": 70})
    assert progress.poll() and (percent(progress), progress.stages[0]["total"]) == (37, 70)
    write(path, {"stage": "a", "state": "running", "done": 63, "total": 70})
    progress.poll()
    assert percent(progress) == 45
    write(path, {"stage": "a", "state": "done"}, {"stage": "b", "state": "skipped"})
    progress.poll()
    assert percent(progress) == 99  # it is still open


def test_a_line_that_is_not_whole_is_read_later_and_nonsense_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    progress = Progress(path)
    write(path, "no JSON\n", [1], {"stage": "a", "state": "unheard"}, '{"stage": "a", "state": "runn')
    assert not progress.poll()
    write(path, 'ing", "done": -3, "total": "x"}\n')
    assert progress.poll()
    assert progress.stages == [
        {
            "stage": "a",
            "state": "running",
            "done": 0,
            "total": 0,
            "rows": 0,
            "seconds": 0.0,
            "error": "",
            "share": 0.0,
        }
    ]
