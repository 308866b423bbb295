"""Describes who applies retention: one at a time, step by step, each gone on with where the one before it
stopped or was killed.

The row of the run is the truth. A step takes it as any job is taken (`console.jobs.engine`); every chunk that
it deletes renews its lease in the same transaction and is rolled back where somebody else has the run by
now. Killed before the commit nothing is gone and nothing counted, after it both are.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Sum
from django.utils import timezone

from console.processes import record_heartbeat
from console.reasons import Reason
from retention.models import RetentionFigure, RetentionRun, RetentionState
from retention.rules import Range

# So long runs are told of; each one that ends forgets a few older ones.
KEPT = timedelta(days=90)
FORGOTTEN = 20

# Of what is counted: the key of its setting, and what lets it go where that is not its age alone.
Counted = tuple[str, Range | None]


class LeaseLost(Exception):
    """Another one works on it: what was begun is rolled back, and this step ends."""


class Claim:
    """One worker's hold on the run."""

    def __init__(self, run: RetentionRun) -> None:
        self.run = run

    def hold(self, **values: Any) -> None:
        """Renews inside the transaction of what it does. Raises LeaseLost."""
        if not self.run.renew(timezone.now(), **values):
            raise LeaseLost(f"run {self.run.pk} of retention was taken over")

    @transaction.atomic
    def move(self, part: int, position: int) -> None:
        """Marks what is before that as done."""
        self.hold(part=part, position=position)
        self.run.part, self.run.position = part, position

    def count(
        self,
        what: str,
        deleted: int,
        setting_key: str = "",
        of: Range | None = None,
        kept: Mapping[str, int] = {},
    ) -> None:
        """Counts inside the transaction that deletes, as its last step: with it goes everything where the run
        was lost."""
        self.hold(deleted=F("deleted") + deleted)
        if not deleted and not kept:
            return
        now, rule = timezone.now(), of.rule.value if of else ""
        figures = RetentionFigure.objects.filter(run=self.run, what=what, setting_key=setting_key, rule=rule)
        if not figures.update(deleted=F("deleted") + deleted, until=now):
            RetentionFigure.objects.create(
                run=self.run, what=what, setting_key=setting_key, rule=rule, deleted=deleted, since=now,
                until=now,
                before=of.before if of else None,
            )  # fmt: skip
        if kept:
            figure = figures.get()
            for reason, number in kept.items():
                figure.kept_for[reason] = figure.kept_for.get(reason, 0) + number
            figure.save(update_fields=["kept_for"])

    def count_many(self, what: str, deleted: Mapping[Counted, int]) -> None:
        """The same of several settings, in as few statements as of one."""
        self.hold(deleted=F("deleted") + sum(deleted.values()))
        now = timezone.now()
        known = RetentionFigure.objects.filter(
            run=self.run, what=what, setting_key__in={key for key, _ in deleted}
        )
        before = {(each.setting_key, each.rule): each.deleted for each in known}
        rules = {of: of.rule.value if of else "" for _key, of in deleted}
        # Nobody else writes them: the run is held.
        RetentionFigure.objects.bulk_create(
            [
                RetentionFigure(
                    run=self.run, what=what, setting_key=key, rule=rules[of],
                    before=of.before if of else None,
                    deleted=before.get((key, rules[of]), 0) + number, since=now, until=now,
                )
                for (key, of), number in deleted.items()
            ],
            update_conflicts=True,
            unique_fields=["run", "what", "setting_key", "rule"],
            update_fields=["deleted", "until"],
        )  # fmt: skip

    @transaction.atomic
    def note_problem(self, problem: Reason) -> None:
        self.hold(problem=problem)
        self.run.problem = problem

    @transaction.atomic
    def end(self, now: datetime) -> None:
        state = RetentionState.FAILED if self.run.problem else RetentionState.DONE
        if not self.run.end(state=state, ended_at=now):
            raise LeaseLost(f"run {self.run.pk} of retention was taken over")
        old = RetentionRun.objects.filter(pk__lt=self.run.pk, started_at__lt=now - KEPT).order_by("pk")
        RetentionRun.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:FORGOTTEN])).delete()


def open_run(now: datetime, *, every: timedelta) -> RetentionRun | None:
    """The run that is open, else a new one if the last began at least `every` ago; else None."""
    return RetentionRun.objects.filter(state=RetentionState.RUNNING).first() or _begin(now, every)


def _begin(now: datetime, every: timedelta) -> RetentionRun | None:
    """Of two at once one begins it, and both answer it."""
    last = RetentionRun.objects.order_by("-id").first()
    if last is not None and last.started_at > now - every:
        return None
    try:
        with transaction.atomic():
            # The plan of the pipeline says when retention ran last.
            record_heartbeat("retention", now)
            return RetentionRun.objects.create(started_at=now)
    except IntegrityError:
        return RetentionRun.objects.filter(state=RetentionState.RUNNING).first()


def deleted_by_kind(runs: Collection[RetentionRun]) -> dict[int, dict[str, int]]:
    """{run: {what: how many it deleted}}, one query; of a run that deleted nothing there is no entry."""
    figures = RetentionFigure.objects.filter(run__in=runs, deleted__gt=0).order_by("what")
    found: dict[int, dict[str, int]] = {}
    for run, what, count in figures.values_list("run", "what").annotate(Sum("deleted")):
        found.setdefault(run, {})[what] = count
    return found
