"""Who may look at a replay, and who may do something about it."""

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from agents.services.rights import may
from dlq import rights
from dlq.job_actions import why_may_not
from dlq.models import ReplayJob

VIEW = "dlq.view_replayjob"


def job_for(request: HttpRequest, pk: UUID) -> ReplayJob:
    """404 for none, 403 for one of letters that this person may not see."""
    jobs = ReplayJob.objects.select_related("by", "setting__pool", "approved_by", "paused_by")
    job = get_object_or_404(jobs, pk=pk)
    seen = job.setting is not None and may(request.user, rights.SEE, job.setting)
    if not request.user.has_perm(VIEW) and not seen:
        raise PermissionDenied
    return job


def why_not_decide(user: Any, job: ReplayJob) -> str:
    """Empty where this person may approve or refuse it."""
    if why := why_may_not(user, "approve", job):
        return why
    return _("Another person than the one who asked has to decide.") if job.by_id == user.pk else ""
