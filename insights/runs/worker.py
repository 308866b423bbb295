"""The runner: plan, application, load, each in the open and each to be ended at any instruction. What the
application is told is one file, without a secret.

Killed before the load nothing of it shows but its row, which a look at dead runs ends; killed in the load
the database undoes it; killed after it the run is over. What the application wrote into the archive is
committed there by itself and found by the next run.
"""

import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.models import LaunchSetting, Spread
from console.database.storage import database_bytes
from console.processes import last_heartbeat
from console.reasons import NO_REASON, Reason
from insights.models import PipelineRun, PipelineState
from insights.reasons import PIPELINE_BROKE, SIGNALLED, STAGES_FAILED
from insights.runs import loader
from insights.runs.folder import JOBS, RunFolder
from insights.runs.loader import load, read_report
from insights.runs.progress import Stage, stage_of
from insights.runs.spark import RunCancelled, RunFailed, is_local, submit
from insights.runs.start import Hold, RunLost, claim_run

Plan = dict[str, Any]


def plan_of(run: PipelineRun, folder: RunFolder, now: datetime) -> Plan:
    """Plans blocks of the archive as rows, then writes what was planned where the application reads it."""
    plan: Plan = {
        "run": str(run.pk),
        "now": now.isoformat(),
        "zone": settings.TIME_ZONE,
        "jobs": run.jobs or list(JOBS),
        "since": run.since.isoformat() if run.since else None,
        "until": run.until.isoformat() if run.until else None,
        "settings": _settings(),
        "retention": _retention(),
        "database_bytes": database_bytes(),
        "results": str(folder.results) if is_local(run.master) else f"{_archive_url()}/results/{run.pk}",
        "results_local": str(folder.results),
        "progress": str(folder.progress),
        "report": str(folder.report),
    }
    plan |= loader.archive_plan(run, now)
    _write(folder.plan, plan)
    return plan


def _archive_url() -> str:
    return str(settings.MA_ARCHIVE_URL).rstrip("/")


def _settings() -> list[dict[str, Any]]:
    rows = LaunchSetting.objects.order_by("key").iterator(chunk_size=1000)
    return [
        {
            "key": row.key,
            "n_days": settings.MA_RETENTION_DAYS if row.retention_days is None else row.retention_days,
            "breaker_m": row.breaker_m,
            "breaker_mode": "many" if row.spread == Spread.MANY else "any",
            "server_mode": row.spread,
            "count_once": row.count_once,
            "enabled": row.enabled,
        }
        for row in rows
    ]


def _retention() -> dict[str, Any]:
    last = last_heartbeat("retention")
    return {
        "days": settings.MA_RETENTION_DAYS,
        "silent_days": settings.MA_RETENTION_SILENT_DAYS or None,
        "last_run_at": last.isoformat() if last else None,
    }


def _write(path: Path, plan: Plan) -> None:
    aside = path.with_suffix(".aside")
    aside.write_text(json.dumps(plan, ensure_ascii=False, indent=1), encoding="utf-8")
    aside.rename(path)


def is_whole(plan: Plan) -> bool:
    """Returns whether a run of this plan looks at all there is, with every job."""
    return not plan["since"] and not plan["until"] and set(plan["jobs"]) == set(JOBS)


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
            log.warning("pipeline run taken over", reason=str(error))
        except RunCancelled:
            _end(hold, PipelineState.CANCELLED, NO_REASON)
        except RunFailed as error:
            _end(hold, PipelineState.FAILED, error.why)
        except Exception as error:
            log.exception("pipeline run failed", run=str(run))
            _end(hold, PipelineState.FAILED, PIPELINE_BROKE(type=type(error).__name__, text=str(error)))
        except BaseException:
            _end(hold, PipelineState.FAILED, SIGNALLED())
            raise
        finally:
            folder.forget_results()
    found = PipelineRun.objects.get(pk=run)
    log.info("pipeline run ended", run=str(run), state=found.state, problem=str(found.problem))
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
