"""What people do to a job that is there, with their rights: pause, resume, cancel, approve, refuse."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from agents.services.rights import may, missing
from console.audit.log import Person, attempt
from dlq import rights
from dlq.asking import RIGHTS, NotAllowed
from dlq.models import ReplayJob
from dlq.replay import control

APPROVE = "dlq.approve"
DECISIONS = ("approve", "refuse")
_ACTS: dict[str, Callable[..., None]] = {
    "pause": control.pause,
    "resume": control.resume,
    "cancel": control.cancel,
    "approve": control.approve,
    "refuse": control.refuse,
}
ACTS = tuple(_ACTS)
# Those that take a reason.
WITH_REASON = ("cancel", "refuse")


def act(
    what: str,
    job: ReplayJob,
    *,
    by: Person,
    now: datetime,
    reason: str = "",
    acknowledged: Collection[str] = (),
) -> None:
    """`what`: one of ACTS; `acknowledged` is for resume. Raises ReplayRefused (NotAllowed without the right),
    after an entry in the audit."""
    with attempt(f"replay_{what}", by=by, target=f"replay:{job.pk}", setting_key=job.setting_key):
        if why := why_may_not(by, what, job):
            raise NotAllowed("permission_denied", why, _("Ask an administrator for the permission."))
        more: dict[str, Any] = {"reason": reason} if what in WITH_REASON else {}
        if what == "resume":
            more = {"acknowledged": acknowledged}
        _ACTS[what](job, by=by, now=now, **more)


def why_may_not(by: Any, what: str, job: ReplayJob) -> str:
    """For people, empty where this person may. Who may begin such a job may stop it, whoever began it."""
    text = _("You may not do that. Ask for the permission “%(permission)s”.")
    if what in DECISIONS:
        allowed = by.has_perm(APPROVE) and _may_see(by, job)
        return "" if allowed else text % {"permission": _("Can approve what another person asks for")}
    if job.setting is None:
        named = _("Can give dead letters back to their setting")
        return "" if by.has_perm("dlq.give_back") else text % {"permission": named}
    right = RIGHTS[job.action]
    return "" if may(by, right, job.setting) else missing(right, job.setting.pool.name)


def _may_see(by: Any, job: ReplayJob) -> bool:
    return by.has_perm("dlq.view_replayjob") or (job.setting is not None and may(by, rights.SEE, job.setting))
