"""The runner: plan, application, load, each in the open and each to be ended at any instruction.

Killed before the load nothing of it shows but its row, which a look at dead runs ends; killed in the load the
database undoes it; killed after it the run is over. What the application wrote into the archive is committed
there by itself and found by the next run.
"""

from contextlib import suppress
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from console.reasons import NO_REASON, Reason
from insights.models import PipelineRun, PipelineState
from insights.reasons import PIPELINE_BROKE, SIGNALLED, STAGES_FAILED
from insights.runs import loader
from insights.runs.claim import Hold, RunLost, claim_run
from insights.runs.folder import RunFolder
from insights.runs.loader import load, read_report
from insights.runs.plan import Plan, is_whole, plan_of
from insights.runs.progress import Stage, stage_of
from insights.runs.spark import RunCancelled, RunFailed, submit

log = structlog.get_logger(__name__)


def work_on_run(run: UUID) -> PipelineRun | None:
    """The run as it is after this; None where somebody else has it. Raises what nobody foresaw, the run has
    ended."""
    hold = claim_run(run, timezone.now())
    if hold is None:
        return None
    folder = RunFolder(hold.run)
    with hold:
        try:
            _work(hold, folder)
        except RunLost as error:
            log.warning("the run of the pipeline was taken over", reason=str(error))
        except RunCancelled:
            _end(hold, PipelineState.CANCELLED, NO_REASON)
        except RunFailed as error:
            _end(hold, PipelineState.FAILED, error.why)
        except Exception as error:
            log.exception("the run of the pipeline failed", run=str(run))
            _end(hold, PipelineState.FAILED, PIPELINE_BROKE(type=type(error).__name__, text=str(error)))
        except BaseException:
            _end(hold, PipelineState.FAILED, SIGNALLED())
            raise
        finally:
            folder.forget_results()
    found = PipelineRun.objects.get(pk=run)
    log.info("run of the pipeline ended", run=str(run), state=found.state, problem=str(found.problem))
    return found


def _end(hold: Hold, state: PipelineState, problem: Reason) -> None:
    with suppress(RunLost):
        hold.end(state, problem)


def _work(hold: Hold, folder: RunFolder) -> None:
    folder.make()
    plan = plan_of(hold.run, folder, timezone.now())
    submitted = submit(hold, folder)
    report = read_report(folder.report, hold.run)
    stages = [stage_of(stage) for stage in report["stages"] if isinstance(stage, dict)]
    failed = [stage for stage in stages if stage["state"] == "failed"]
    if failed and len(failed) == len(stages):
        raise RunFailed(_failure_reason(failed))
    _load(hold, folder, plan, report, stages, failed)
    log.info("loaded", run=str(hold.run.pk), peak=submitted.peak)


@transaction.atomic
def _load(
    hold: Hold,
    folder: RunFolder,
    plan: Plan,
    report: dict[str, Any],
    stages: list[Stage],
    failed: list[Stage],
) -> None:
    now, window = timezone.now(), report.get("window") or {}
    until = _instant(window.get("until"))
    archived = {"quarantined": report.get("quarantined") or (), **(report.get("archive") or {})}
    seen = {
        "new_blocks": report.get("computed", plan["new_blocks"]),
        "anew_requests": plan.get("anew_requests", ()),
    }
    loader.take_archive_report(archived, seen, hold.run, now, computed=is_whole(plan) and not failed)
    rows = load(report["results"], folder.results, hold.run, now, until)
    hold.end(
        PipelineState.PARTIAL if failed else PipelineState.DONE, _failure_reason(failed), stages=stages,
        rows_loaded=rows,
        window_from=_instant(window.get("from")), window_until=until, versions=report.get("versions") or {},
    )  # fmt: skip


def _failure_reason(failed: list[Stage]) -> Reason:
    errors = "\n".join(f"{stage['stage']}: {stage['error']}" for stage in failed)
    return STAGES_FAILED(errors=errors) if failed else NO_REASON


def _instant(text: Any) -> Any:
    return parse_datetime(text) if isinstance(text, str) else None
