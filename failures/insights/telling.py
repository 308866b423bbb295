"""A run as lines for a terminal and as objects for programs. English: for terminals and logs."""

from typing import Any

from failures.archive.planning import LAG
from failures.models import PipelineRun, PipelineState

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


def line(run: PipelineRun) -> str:
    """One line: state, bar, the stage at hand."""
    done = BAR * run.percent // 100
    at_hand = next((stage for stage in run.stages if stage.get("state") == "running"), None)
    about = f" {at_hand['stage']}{_part(at_hand)}" if at_hand else ""
    return f"{run.state:<9} [{'#' * done}{'.' * (BAR - done)}] {run.percent:3d} %{about}"


def _part(stage: Row) -> str:
    return f" {stage['done']}/{stage['total']}" if stage.get("total") else ""


def lines(run: PipelineRun) -> list[str]:
    """Everything of a run."""
    told = [line(run), f"run {run.pk}, asked for {run.asked_at:%Y-%m-%d %H:%M:%S}, master {run.master}"]
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
        told.append(f"nothing new: what is younger than {LAG.seconds // 60} minutes is for the next run")
    if run.window_until:
        told.append(f"data until {run.window_until:%Y-%m-%d %H:%M:%S}, {run.rows_loaded} rows of results")
    return told
