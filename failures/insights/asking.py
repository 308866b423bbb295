"""A run is asked for by writing its row; whoever comes first starts the process that works on it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from failures.insights.jobs import unknown
from failures.insights.readiness import readiness
from failures.models import PipelineRun, PipelineState, PipelineTrigger


class RunRefused(Exception):
    """It is not begun, and the text says why; `code` is stable: off, missing, unknown_job, empty_span,
    open."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def ask(
    trigger: PipelineTrigger,
    now: datetime,
    *,
    by: Any = None,
    jobs: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    master: str = "",
) -> PipelineRun:
    """The new run, waiting. No jobs: all of them. Raises RunRefused."""
    ready = readiness()
    if not ready.ready:
        raise RunRefused("off" if ready.off else "missing", ready.says)
    if wrong := unknown(jobs):
        raise RunRefused(
            "unknown_job", _("There is no job of this name: %(names)s.") % {"names": ", ".join(wrong)}
        )
    if since and until and since >= until:
        raise RunRefused("empty_span", _("The span is empty: its begin must lie before its end."))
    try:
        with transaction.atomic():
            return PipelineRun.objects.create(
                trigger=trigger, asked_at=now, asked_by=by, jobs=list(dict.fromkeys(jobs)), since=since,
                until=until,
                master=master or settings.MA_PIPELINE_MASTER,
            )  # fmt: skip
    except IntegrityError as error:
        raise RunRefused("open", _("Another run goes on; there is one at a time.")) from error


def cancel(run: PipelineRun, now: datetime, *, by: str) -> bool:
    """Whether it was open. One that nobody has begun is over at once; else its runner ends it within seconds,
    and where that one is gone the next look at dead runs does."""
    asked = {"cancel_asked_at": now, "cancel_asked_by": by[:150]}
    mine = PipelineRun.objects.filter(pk=run.pk)
    waiting = mine.filter(state=PipelineState.WAITING)
    if waiting.update(state=PipelineState.CANCELLED, open=None, ended_at=now, **asked):
        return True
    return bool(mine.filter(state=PipelineState.RUNNING).update(**asked))
