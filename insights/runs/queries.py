"""Describes what is shown of the pipeline: which runs there were, how old what they found is, and all of it
from one and the same load."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from insights.archive.readiness import readiness
from insights.archive.report import Damage, damage
from insights.models import LOADED_RUNS, ArchiveBlock, InsightTable, PipelineRun, PipelineState

T = TypeVar("T")

# What was found longer ago is called old: a night was left out. Pages, health and doctor say so, nobody is
# alerted.
OLD = timedelta(hours=36)
# Once there are blocks, so long without a run that ended well is an alert: retention waits for the archive.
LATE = timedelta(days=3)
TRIES = 5


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """`open`: the run that goes on. `last`: the one that ended last. `loaded`: the last that found something.
    `says`: why none can run here; empty: it can. `damage`: what of the archive cannot be read, where there is
    such. `late_since`: the end of the last whole run that ended well, or the first block of all, where that
    is too long ago; None: it is in time, or nothing was ever archived."""

    open: PipelineRun | None
    last: PipelineRun | None
    loaded: PipelineRun | None
    off: bool
    says: str
    old: bool
    damage: Damage | None
    late_since: datetime | None

    @property
    def failed(self) -> bool:
        """The last one that ended did not do all it should; one that a person cancelled is no failure."""
        return self.last is not None and self.last.state in FAILURES


FAILURES = (PipelineState.FAILED, PipelineState.PARTIAL, PipelineState.DEAD)


def late_since(last_good: datetime | None, first_block: datetime | None, *, now: datetime) -> datetime | None:
    """Since when no run has ended well, where that is longer than LATE. `first_block`: when it was planned;
    None: nothing was ever archived, so nothing waits for a run."""
    if first_block is None:
        return None
    since = last_good or first_block
    return since if now - since > LATE else None


def standing(now: datetime) -> PipelineStatus:
    runs = PipelineRun.objects.select_related("asked_by").order_by("-asked_at", "-pk")
    loaded, ready = runs.filter(state__in=LOADED_RUNS).first(), readiness()
    return PipelineStatus(
        open=runs.filter(open=True).first(),
        last=runs.filter(open=None).first(),
        loaded=loaded,
        off=ready.off,
        says=ready.says,
        old=loaded is not None and loaded.ended_at is not None and now - loaded.ended_at > OLD,
        damage=damage(),
        late_since=None if ready.off else late_since(_last_good(), _first_block(), now=now),
    )


def _last_good() -> datetime | None:
    """A run of some jobs, or of a range, does not do a night's work."""
    whole = PipelineRun.objects.filter(state=PipelineState.DONE, jobs=[], since=None, until=None)
    return whole.order_by("-asked_at", "-pk").values_list("ended_at", flat=True).first()


def _first_block() -> datetime | None:
    return ArchiveBlock.objects.order_by("pk").values_list("planned_at", flat=True).first()


def consistent(read: Callable[[], T]) -> T:
    """Returns what `read` answers, read again where a run was loaded while it read: several questions to a
    database see several states of it."""
    before = _mark()
    for _each in range(TRIES):
        found = read()
        after = _mark()
        if after == before:
            break
        before = after
    return found


def _mark() -> set[tuple[object, ...]]:
    return set(InsightTable.objects.values_list("name", "run_id", "computed_at"))


def computed() -> dict[str, InsightTable]:
    """Returns them by name of the table."""
    return {table.name: table for table in InsightTable.objects.all()}
