"""Why an open job moves nothing now, as a code, also where no worker wrote one down. Pure."""

from datetime import datetime

from dlq.models import OPEN_JOBS, ReplayJob
from dlq.replay.leases import WINDING_UP

QUEUED, WALKING, RETRY = "queued", "walking", "retry"


def is_walking(job: ReplayJob, now: datetime) -> bool:
    """Without its lease the worker is dead, and its walk with it."""
    return job.walking_since is not None and _is_held(job, now)


def reason_to_wait(job: ReplayJob, now: datetime) -> str:
    """Empty while its messages move, and where no worker is to take it up: it is over, paused, or not
    approved yet."""
    if job.state not in OPEN_JOBS and not (job.state in WINDING_UP and job.finished_at is None):
        return ""
    if is_walking(job, now):
        return WALKING
    if job.wait_reason:
        return job.wait_reason
    if not _is_held(job, now):
        return QUEUED
    # A worker that begins empties it; whoever let go of the job for some seconds wrote it.
    return RETRY if job.problem and job.state in OPEN_JOBS else ""


def _is_held(job: ReplayJob, now: datetime) -> bool:
    return job.lease_until is not None and job.lease_until > now
