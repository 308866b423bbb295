"""Decides how far a run is, from the lines that the application appends to its progress file. Pure, but for
the file."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from insights.archive.planning import LAG
from insights.models import PipelineRun, PipelineState

Stage = dict[str, Any]
STATES = ("running", "done", "failed", "skipped")
ERROR_LENGTH = 1000


class Progress:
    """Stages in their order. A line that is not whole yet is read the next time; one that is no JSON is
    passed over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._stages: dict[str, Stage] = {}

    @property
    def stages(self) -> list[Stage]:
        return list(self._stages.values())

    def poll(self) -> bool:
        """Returns whether there was something new."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                found = file.read()
        except OSError:
            return False
        whole = found[: found.rfind(b"\n") + 1]
        self._offset += len(whole)
        return self._take(whole.splitlines())

    def _take(self, lines: Iterable[bytes]) -> bool:
        changed = False
        for line in lines:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if isinstance(told, dict):
                changed = self._note(told) or changed
        return changed

    def _note(self, told: dict[str, Any]) -> bool:
        names = told.get("stages")
        if isinstance(names, list):
            for name in names:
                self._stages.setdefault(str(name), {"stage": str(name), "state": "waiting"})
            return True
        if told.get("state") not in STATES or "stage" not in told:
            return False
        name = str(told["stage"])
        before = self._stages.get(name, {}).get("share", 0.0)
        self._stages[name] = stage = stage_of(told)
        # Spark tells of more tasks as it goes on: what was done stays done.
        stage["share"] = max(before, min(1.0, stage["done"] / stage["total"]) if stage["total"] else 0.0)
        return True


def stage_of(told: dict[str, Any]) -> Stage:
    """A stage as a report or a line of progress tells it; what is not understood counts as nothing."""
    return {
        "stage": str(told.get("stage", ""))[:100],
        "state": told.get("state") if told.get("state") in STATES else "failed",
        "done": _whole(told.get("done")),
        "total": _whole(told.get("total")),
        "rows": _whole(told.get("rows")),
        "seconds": round(_number(told.get("seconds")), 3),
        "error": str(told.get("error") or "")[:ERROR_LENGTH],
    }


def _whole(value: Any) -> int:
    return max(0, int(_number(value)))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value == value and abs(value) < 1e18 else 0.0


# -- a run as lines for a terminal and as objects for programs -----------------------------------------------
# English: for terminals and logs.


Row = dict[str, Any]
BAR = 30


def of_run(run: PipelineRun) -> Row:
    return {
        "id": str(run.pk),
        "state": run.state,
        "trigger": run.trigger,
        "by": run.asked_by.get_username() if run.asked_by else None,
        "jobs": run.jobs,
        "since": _iso(run.since),
        "until": _iso(run.until),
        "master": run.master,
        "asked_at": _iso(run.asked_at),
        "started_at": _iso(run.started_at),
        "ended_at": _iso(run.ended_at),
        "percent": run.percent,
        "stages": run.stages,
        "data_until": _iso(run.window_until),
        "rows_loaded": run.rows_loaded,
        "memory_peak_bytes": run.memory_peak_bytes,
        "problem": str(run.problem),
    }


def _iso(value: Any) -> str | None:
    return value.isoformat() if value else None


def run_line(run: PipelineRun) -> str:
    """One line: state, bar, the stage at hand."""
    done = BAR * run.percent // 100
    at_hand = next((stage for stage in run.stages if stage.get("state") == "running"), None)
    about = f" {at_hand['stage']}{_part(at_hand)}" if at_hand else ""
    return f"{run.state:<9} [{'#' * done}{'.' * (BAR - done)}] {run.percent:3d} %{about}"


def _part(stage: Row) -> str:
    return f" {stage['done']}/{stage['total']}" if stage.get("total") else ""


def run_lines(run: PipelineRun) -> list[str]:
    """Everything of a run."""
    told = [run_line(run), f"run {run.pk}, requested {run.asked_at:%Y-%m-%d %H:%M:%S}, master {run.master}"]
    for stage in run.stages:
        rows = f"{stage['rows']} rows" if stage.get("rows") else ""
        seconds = f"{stage['seconds']} s" if stage.get("seconds") else ""
        told.append("  " + "  ".join(filter(None, [f"{stage['state']:<8}", stage["stage"], rows, seconds])))
        if stage.get("error"):
            told.append(f"           {stage['error']}")
    if run.problem and not any(stage.get("error") for stage in run.stages):
        told.append(str(run.problem))
    if (
        run.state == PipelineState.DONE
        and run.stages
        and all(one.get("state") == "skipped" for one in run.stages)
    ):
        told.append(f"no new data: data of the last {LAG.seconds // 60} minutes is left for the next run")
    if run.window_until:
        told.append(f"data until {run.window_until:%Y-%m-%d %H:%M:%S}, {run.rows_loaded} result rows")
    return told
