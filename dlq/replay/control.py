"""What people do to a job that is there: pause, resume, cancel, approve, refuse. Each is one conditional
UPDATE.

The worker looks between two slices: what is on its way is finished and checked, and stays where it went. Who
may do which of these is asked before.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.utils.translation import gettext as _

from console.audit.log import Person
from console.jobs.worker import start
from contract.text import storable
from dlq.models import OPEN_JOBS, UNFINISHED_JOBS, JobState, ReplayJob
from dlq.reasons import REFUSED_BY
from dlq.replay.jobs import audit
from dlq.replay.refusal import ReplayRefused
from dlq.replay.stopping import STOPPING


def pause(job: ReplayJob, *, by: Person, now: datetime) -> None:
    """Raises ReplayRefused when the job is not one that runs."""
    _change(
        job,
        "replay_paused",
        OPEN_JOBS,
        by,
        now,
        state=JobState.PAUSED,
        paused_by=_person(by),
        paused_at=now,
        pause_reason={},
    )


def resume(job: ReplayJob, *, by: Person, now: datetime, acknowledged: Collection[str] = ()) -> None:
    """With STOPPING acknowledged it goes on although consumers of a disabled setting are open; without it
    waits for them again. Raises ReplayRefused when the job is not paused."""
    more: dict[str, Any] = {"goes_on_all_the_same": True} if STOPPING in acknowledged else {}
    detail = {"acknowledged": sorted(acknowledged)} if acknowledged else None
    _change(
        job, "replay_resumed", [JobState.PAUSED], by, now, detail=detail, state=JobState.PLANNED,
        paused_by=None,
        paused_at=None, pause_reason={}, stopping_since=None, lease_until=_at_once(), **more,
    )  # fmt: skip
    start(job)


def cancel(job: ReplayJob, *, by: Person, now: datetime, reason: str = "") -> None:
    """What was not moved stays where it lies. `finished_at` is set when a worker has told apart what was
    moved.

    Raises ReplayRefused when the job is over."""
    _change(
        job, "replay_cancelled", UNFINISHED_JOBS, by, now, reason, state=JobState.CANCELLED,
        lease_until=_at_once()
    )  # fmt: skip
    start(job)


def approve(job: ReplayJob, *, by: Person, now: datetime) -> None:
    """The second person's yes. Raises ReplayRefused: never by who asked, and only while it is waited for."""
    _refuse_the_asker(job, by)
    _change(
        job, "replay_approved", [JobState.AWAITING], by, now,
        state=JobState.PLANNED, approved_by=_person(by), approved_at=now,
    )  # fmt: skip
    start(job)


def refuse(job: ReplayJob, *, by: Person, now: datetime, reason: str = "") -> None:
    """The second person's no: nothing was moved. Raises ReplayRefused."""
    _refuse_the_asker(job, by)
    problem = REFUSED_BY(person=str(_person(by)))
    _change(
        job, "replay_refused", [JobState.AWAITING], by, now, reason, state=JobState.CANCELLED, problem=problem
    )
    start(job)


def _refuse_the_asker(job: ReplayJob, by: Person) -> None:
    person = _person(by)
    if person is None or person.pk == job.by_id:
        raise ReplayRefused("own_request", _("Another person than the one who asked has to decide."))


def _change(
    job: ReplayJob,
    what: str,
    states: Iterable[str],
    by: Person,
    now: datetime,
    reason: str = "",
    detail: dict[str, Any] | None = None,
    **columns: Any,
) -> None:
    with transaction.atomic():
        if not ReplayJob.objects.filter(pk=job.pk, state__in=list(states)).update(**columns):
            job.refresh_from_db()
            raise ReplayRefused(
                "other_state",
                _("That is not possible: the job is %(state)s.") % {"state": job.get_state_display()},
                state=job.state,
            )
        audit(job, what, by=by, now=now, reason=storable(reason), detail=detail)
    job.refresh_from_db()


def _at_once() -> Case:
    """A job that only waits (for a time, for outcomes) waits no longer; one at work keeps its worker."""
    return Case(When(~Q(wait_reason=""), then=Value(None)), default=F("lease_until"))


def _person(by: Person) -> User | None:
    return by if isinstance(by, User) else None
