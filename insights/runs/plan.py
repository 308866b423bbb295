"""Describes what a run is told: one file, without a secret."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.models import LaunchSetting, Spread
from console.database.storage import database_bytes
from console.processes import last_heartbeat
from insights.models import PipelineRun
from insights.runs import loader
from insights.runs.folder import JOBS, RunFolder
from insights.runs.spark import is_local

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
