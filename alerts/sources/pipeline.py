"""Alerts where the pipeline fails, where it is late, and where its archive is damaged."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from alerts.kinds import AlertKind, Observation
from alerts.models import Severity
from alerts.rules import Thresholds
from console.ui.amounts import duration, number
from console.ui.page import link
from insights.archive.report import damage
from insights.runs.queries import standing

FAILED, LATE, DAMAGED = "failed", "late", "damaged"


def troubles(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Nothing where it is switched off. `value`: hours since it failed, or since the last that ended well,
    and 1."""
    found = standing(now)
    if found.off:
        return
    if found.failed and found.last is not None:
        run = found.last
        hours = (now - (run.ended_at or now)).total_seconds() / 3600
        yield Observation(FAILED, 1.0 + hours, facts={"why": FAILED, "run": str(run.pk), "state": run.state})
    if found.late_since is not None:
        hours = (now - found.late_since).total_seconds() / 3600
        last = str(found.last.pk) if found.last is not None else ""
        yield Observation(LATE, 1.0 + hours, facts={"why": LATE, "run": last})


def _says(facts: Mapping[str, Any], value: float) -> str:
    if facts["why"] != FAILED:
        text = _("No pipeline run has succeeded for %(time)s.")
        return text % {"time": duration(round(3600 * (value - 1)))}
    if facts["state"] == "partial":
        return _("The last pipeline run partly failed.")
    return _("The last pipeline run failed.")


PIPELINE = AlertKind(
    name="pipeline_failed",
    label=gettext_lazy("Pipeline failed or late"),
    severity=Severity.WARNING,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("hours since the failure or the last successful run, plus 1"),
    says=_says,
    measure=lambda value: number(value - 1, 1) if value >= 1 else "",
    what_to_do=gettext_lazy(
        "The run page shows the stage, its error and the log. If the pipeline cannot run "
        "here, the Insights page shows why. Fix the cause, then start a run: ./ma manage "
        "pipeline run. Nothing is lost: the next run processes the missed data. Protocols "
        "that are not archived yet are kept, so the database grows."
    ),
    url=lambda facts: link("pipeline_run", facts["run"]) if facts["run"] else link("insights"),
    observe=troubles,
)


def damaged(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """`value`: blocks."""
    found = damage()
    if found is not None:
        yield Observation(DAMAGED, float(found.blocks))


def _says_damaged(facts: Mapping[str, Any], value: float) -> str:
    count = round(value)
    text = ngettext("%(n)s archive block is damaged.", "%(n)s archive blocks are damaged.", count)
    return text % {"n": number(count)}


ARCHIVE = AlertKind(
    name="archive_damaged",
    label=gettext_lazy("Archive damaged"),
    severity=Severity.WARNING,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("blocks"),
    says=_says_damaged,
    measure=lambda value: number(round(value)),
    what_to_do=gettext_lazy(
        "The Insights page lists the damaged blocks. The next run rebuilds the blocks whose "
        "data is still complete in the database. Restore the files of the other blocks from a "
        "backup."
    ),
    url=lambda facts: link("insights"),
    observe=damaged,
)

KINDS = (PIPELINE, ARCHIVE)
