"""What an application is told to do: plan.json. It holds no secrets."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


class PlanError(Exception):
    """The plan cannot be done as it is; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`blocks` are to be archived, `verify` compared with the database. `new_blocks`: by kind the numbers of
    those that no run has computed yet; `anew`: these are all there are, and what was summed up before is
    void. `since`, `until`: what occurred, or ended, in between is computed again. `results` is where Spark
    writes, `results_local` a folder of this machine, which may be the same."""

    run: str
    now: datetime
    archive: str
    results: str
    results_local: Path
    progress: Path
    source: Mapping[str, Any] | None = None
    blocks: Sequence[Mapping[str, Any]] = ()
    verify: Sequence[Mapping[str, Any]] = ()
    new_blocks: Mapping[str, Sequence[int]] = field(default_factory=dict)
    anew: bool = False
    jobs: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    zone: str = "UTC"
    settings: Sequence[Mapping[str, Any]] = ()
    retention: Mapping[str, Any] = field(default_factory=dict)
    database_bytes: int = 0
    archive_bytes: int | None = None
    report: Path | None = None


def read(path: Path) -> Plan:
    """Raises PlanError."""
    try:
        told = json.loads(path.read_text("utf-8"))
        known = {name: told[name] for name in Plan.__slots__ if told.get(name) is not None}
        results = known["results"]
        known["results_local"] = Path(known.get("results_local") or results.removeprefix("file://"))
        known["progress"] = Path(known.get("progress") or path.with_name("progress.jsonl"))
        if "report" in known:
            known["report"] = Path(known["report"])
        for name in ("now", "since", "until"):
            if name in known:
                known[name] = instant(known[name])
        plan = Plan(**known)
        ZoneInfo(plan.zone)
    except ZoneInfoNotFoundError as error:
        raise PlanError(f"unknown time zone {told.get('zone')!r}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanError(f"{path} is not a plan: {type(error).__name__}: {error}") from error
    if plan.since and plan.until and plan.since >= plan.until:
        raise PlanError(f"since ({plan.since}) must be before until ({plan.until})")
    return plan


def instant(text: str) -> datetime:
    """Aware. Raises ValueError."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return found
