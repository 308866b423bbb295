"""Describes what people do with a replay that is there: pause, resume, release what it holds, cancel,
approve, refuse. Each is one conditional UPDATE, with its entry in the audit.

The worker looks between two slices: what is on its way is finished and checked, and stays where it went.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from agents.freezes.held import freeze_refusal
from agents.models import LaunchSetting
from agents.pools.rights import check_anywhere, may, settings_for, why_not
from console.jobs.engine import start
from console.operations.inputs import REASON, ChoicesInput, Input
from console.operations.operation import Act, Done, ModelPermission, Operation, Permission, Question, Resource
from console.operations.refusals import Refused
from console.ui.amounts import number
from console.ui.page import Text
from dlq import rights
from dlq.models import OPEN_JOBS, UNFINISHED_JOBS, Action, HoldState, JobState, ReplayJob
from dlq.models.replay import DELIVERING
from dlq.reasons import REFUSED_BY
from dlq.replay.counts import STOPPING
from dlq.replay.creation import about_job, details_of
from dlq.rights import SEE_REPLAYS

# How far a hold is while its end can be brought forward.
RELEASABLE = (HoldState.WANTED, HoldState.HELD)
SEES_REPLAYS = ModelPermission(SEE_REPLAYS, _("Can view replay"))
APPROVES = ModelPermission("dlq.approve", _("Can approve requests of other users"))
GIVES_BACK = ModelPermission("dlq.give_back", _("Can replay dead letters"))


def jobs_for(user: Any) -> QuerySet[ReplayJob]:
    """Those that this person may see. Raises PermissionDenied where there is nothing to see at all."""
    jobs = _jobs()
    if user.has_perm(SEE_REPLAYS):
        return jobs
    check_anywhere(user, rights.SEE)
    return jobs.filter(setting_key__in=settings_for(user, rights.SEE).values("key"))


def _jobs() -> QuerySet[ReplayJob]:
    return ReplayJob.objects.select_related("by", "approved_by", "paused_by", "setting__pool")


REPLAY_JOBS = Resource(
    name="replay",
    rows=_jobs,
    key="pk",
    route="replays/<uuid:pk>/",
    view="",
    list_page="replays",
    title=_("Replays"),
    setting_key=lambda job: job.setting_key,
    label=lambda job: str(job.pk)[:8],
    visible=jobs_for,
)


def title(job: ReplayJob) -> str:
    """Returns what it does, and the begin of its id."""
    words = {
        Action.GIVE_BACK: gettext("Replay %(id)s"),
        Action.REDIRECT: gettext("Redirect %(id)s"),
        Action.DISCARD: gettext("Discard %(id)s"),
        Action.PUT_BACK: gettext("Restore from trash %(id)s"),
        Action.EDIT: gettext("Edit and replay %(id)s"),
    }
    return words[Action(job.action)] % {"id": str(job.pk)[:8]}


@dataclass(frozen=True, slots=True)
class _OfItsAction:
    """Who may begin such a job may stop it, whoever began it. `moves`: messages move by it, so the right is
    asked for at both ends of a redirect that leaves the destination."""

    moves: bool = False

    def why_not(self, user: Any, job: ReplayJob) -> str:
        if why := _why_not_see(user, job):
            return why
        if job.setting is None:
            return GIVES_BACK.why_not(user, job)
        if self.moves and (why := _why_not_elsewhere(user, job)):
            return why
        return why_not(user, rights.right_of(job.action, elsewhere=_elsewhere(job) is not None), job.setting)


@dataclass(frozen=True, slots=True)
class _Approves:
    moves: bool = False

    def why_not(self, user: Any, job: ReplayJob) -> str:
        why = _why_not_see(user, job) or APPROVES.why_not(user, job)
        return why or (_why_not_elsewhere(user, job) if self.moves else "")


def _elsewhere(job: ReplayJob) -> LaunchSetting | None:
    """The setting of another destination that gets them; None: they stay within theirs, or it is gone."""
    if job.action != Action.REDIRECT or job.setting is None:
        return None
    others = LaunchSetting.objects.exclude(destination=job.setting.destination_id).select_related("pool")
    return others.filter(key=job.target_key).first()


def _why_not_elsewhere(user: Any, job: ReplayJob) -> str:
    target = _elsewhere(job)
    if target is None or job.setting is None:
        return ""
    ends = (job.setting, target)
    return next(filter(None, (why_not(user, rights.REDIRECT_ELSEWHERE, end) for end in ends)), "")


def _why_not_see(user: Any, job: ReplayJob) -> str:
    if job.setting is not None and may(user, rights.SEE, job.setting):
        return ""
    return SEES_REPLAYS.why_not(user, job)


class _ActsOnReplay(Operation[ReplayJob]):
    """`states`: those in which it can be done. `begins`: a worker starts on the job after it."""

    begins: ClassVar[bool] = False
    on = REPLAY_JOBS
    permission: ClassVar[Permission] = _OfItsAction()
    inputs: ClassVar[dict[str, Input]] = {"reason": REASON}
    states: ClassVar[tuple[JobState, ...]]

    def offered(self, job: ReplayJob) -> bool:
        return job.state in self.states

    def refusal(self, job: ReplayJob, now: datetime) -> Refused | None:
        if job.state not in self.states:
            return _other_state(job)
        return frozen_refusal(job, now) if self.begins else None

    def about(self, job: ReplayJob) -> dict[str, Any]:
        return {**super().about(job), **about_job(job)}

    def detail(self, job: ReplayJob) -> dict[str, Any]:
        return details_of(job)

    def change(self, job: ReplayJob, act: Act, columns: dict[str, Any]) -> None:
        """Raises Refused where it is in another state by now."""
        with transaction.atomic():
            if self.begins and (refused := frozen_refusal(job, act.now, lock=True)):
                raise refused
            rows = ReplayJob.objects.filter(self.possible(act.now), pk=job.pk, state__in=self.states)
            changed = rows.update(**columns)
            job.refresh_from_db()
            if not changed:
                raise self.refusal(job, act.now) or _other_state(job)
            act.record()

    def possible(self, now: datetime) -> Q:
        """Returns what its row has to be beside its state."""
        return Q()


class PauseReplay(_ActsOnReplay):
    """Pauses the replay after the current slice."""

    code, label, icon, quiet, immediate = "replay.pause", _("Pause"), "pause", True, True
    states = OPEN_JOBS

    def refusal(self, job: ReplayJob, now: datetime) -> Refused | None:
        ending = job.state in self.states and job.hold == HoldState.ENDING
        return _being_released() if ending else super().refusal(job, now)

    def possible(self, now: datetime) -> Q:
        # The runs take from a subscription that is paused still: a worker has to end that.
        return ~Q(hold=HoldState.ENDING)

    def run(self, job: ReplayJob, act: Act, **inputs: Any) -> Done:
        paused = {"state": JobState.PAUSED, "paused_by": act.by, "paused_at": act.now, "pause_reason": {}}
        self.change(job, act, paused)
        return Done(_("The job is pausing: it stops when the messages in progress have been moved."))


class ResumeReplay(_ActsOnReplay):
    """Resumes a replay. For a disabled setting it waits for open consumers again, unless `stopping` is
    acknowledged."""

    code, label, icon, immediate, begins = "replay.resume", _("Resume"), "play", True, True
    permission = _OfItsAction(moves=True)
    inputs = {
        "reason": REASON,
        "acknowledge": ChoicesInput(_("Resume despite open consumers"), [(STOPPING, STOPPING)]),
    }
    states = (JobState.PAUSED,)

    def asked_for(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        known = sorted(inputs["acknowledge"])
        return {"acknowledged": known} if known else {}

    def run(self, job: ReplayJob, act: Act, *, acknowledge: list[str], **inputs: Any) -> Done:
        columns: dict[str, Any] = {
            "state": JobState.PLANNED, "paused_by": None, "paused_at": None, "pause_reason": {},
            "stopping_since": None, "lease_until": _at_once(),
        }  # fmt: skip
        if STOPPING in acknowledge:
            columns["goes_on_all_the_same"] = True
        self.change(job, act, columns)
        start(job)
        return Done(_("The job is resuming."))


class ReleaseReplay(_ActsOnReplay):
    """Ends the hold of a subscription early: it delivers again, unprocessed messages go behind the waiting
    ones, and messages not moved yet stay."""

    code, label, icon, tone = "replay.release", _("Release the subscription"), "play", "danger"
    states = (*OPEN_JOBS, JobState.PAUSED)

    def offered(self, job: ReplayJob) -> bool:
        return super().offered(job) and job.held_at is not None and job.hold in RELEASABLE

    def refusal(self, job: ReplayJob, now: datetime) -> Refused | None:
        if refused := super().refusal(job, now):
            return refused
        if job.held_at is None or job.hold not in (*RELEASABLE, HoldState.ENDING):
            return Refused(
                "nothing_held", gettext("Cannot release: this replay is not holding a subscription.")
            )
        if job.hold == HoldState.ENDING or (job.hold_until or now) <= now:
            return _being_released()
        return None

    def possible(self, now: datetime) -> Q:
        return Q(hold__in=RELEASABLE, hold_until__gt=now)

    def question(self, job: ReplayJob, by: Any, **named: Any) -> Question:
        return Question(
            gettext("Release the subscription of %(key)s?") % {"key": job.target_key},
            [
                _(
                    "Delivery resumes. Unprocessed messages of this replay are placed after the waiting "
                    "messages."
                ),
                _("Messages not moved yet stay in the DLQ, and the replay stops."),
            ],
            button=_("Release"),
        )

    def run(self, job: ReplayJob, act: Act, **inputs: Any) -> Done:
        self.change(job, act, {"hold_until": act.now, "lease_until": _at_once()})
        start(job)
        return Done(_("The subscription is being released."))


def _being_released() -> Refused:
    return Refused("ending", gettext("The subscription is already being released."))


class CancelReplay(_ActsOnReplay):
    """Cancels the replay; messages not moved yet stay. `finished_at` is set when a worker has resolved the
    final state."""

    code, label, icon, tone = "replay.cancel", pgettext_lazy("a job", "Cancel"), "off", "danger"
    states = UNFINISHED_JOBS

    def question(self, job: ReplayJob, by: Any, **named: Any) -> Question:
        return Question(
            gettext("Cancel: %(job)s?") % {"job": title(job)},
            [
                _("Messages not moved yet stay in their queue. Messages already moved are not moved back."),
                _("This cannot be undone."),
            ],
            {"go_back": True},  # beside "Cancel the job" a "Cancel" would be either
            button=_("Cancel the job"),
        )

    def run(self, job: ReplayJob, act: Act, **inputs: Any) -> Done:
        self.change(job, act, {"state": JobState.CANCELLED, "lease_until": _at_once()})
        start(job)
        return Done(_("The job has been cancelled."))


class _Decides(_ActsOnReplay):
    """A decision of the second person, who must not be the requester."""

    permission = _Approves()
    states = (JobState.AWAITING,)
    asks: ClassVar[Text]
    explained: ClassVar[Text]

    def refusal_to(self, by: Any, job: ReplayJob, now: datetime) -> Refused | None:
        if by is None or by.pk == job.by_id:
            return Refused(
                "own_request", gettext("The requester cannot approve or reject the job. Ask another user.")
            )
        return self.refusal(job, now)

    def question(self, job: ReplayJob, by: Any, **named: Any) -> Question:
        asks = str(self.asks) % {"job": title(job)}
        return Question(asks, [*_asked_for(job), self.explained])

    def decide(self, job: ReplayJob, act: Act, columns: dict[str, Any]) -> None:
        if refused := self.refusal_to(act.by, job, act.now):
            raise refused
        self.change(job, act, columns)
        start(job)


class ApproveReplay(_Decides):
    """Approves the replay as the second person; a worker starts it."""

    code, label, icon, begins = "replay.approve", _("Approve"), "ok", True
    permission = _Approves(moves=True)
    asks = _("Approve: %(job)s?")
    explained = _(
        "The job starts as soon as you approve it. The audit log records both you and the requester."
    )

    def hidden(self, job: ReplayJob) -> frozenset[str]:
        return frozenset(self.inputs)

    def run(self, job: ReplayJob, act: Act, **inputs: Any) -> Done:
        self.decide(job, act, {"state": JobState.PLANNED, "approved_by": act.by, "approved_at": act.now})
        return Done(_("The job has been approved and is starting."))


class RefuseReplay(_Decides):
    """Rejects the replay as the second person; nothing is moved."""

    code, label, icon, tone = "replay.refuse", _("Reject"), "bad", "danger"
    asks = _("Reject: %(job)s?")
    explained = _("No messages will be moved. The requester sees who rejected the job, and why.")

    def run(self, job: ReplayJob, act: Act, **inputs: Any) -> Done:
        self.decide(job, act, {"state": JobState.CANCELLED, "problem": REFUSED_BY(person=str(act.by))})
        return Done(_("The job has been rejected."))


# In the order of their buttons.
ON_REPLAYS: tuple[type[Operation[Any]], ...] = (
    ApproveReplay,
    RefuseReplay,
    PauseReplay,
    ResumeReplay,
    ReleaseReplay,
    CancelReplay,
)


def frozen_refusal(job: ReplayJob, now: datetime, *, lock: bool = False) -> Refused | None:
    """Returns why no worker starts on it now, or None: new starts of the setting that gets its messages are
    frozen. `lock`: of its row, for which a freeze waits."""
    if job.action not in DELIVERING:
        return None
    rows = LaunchSetting.objects.filter(key=job.target_key or job.setting_key)
    pools = list((rows.select_for_update(no_key=True) if lock else rows).values_list("pool", flat=True))
    return freeze_refusal(pools, now) if pools else None


def _other_state(job: ReplayJob) -> Refused:
    text = gettext("Not possible: the state of the job is “%(state)s”.") % {"state": job.get_state_display()}
    return Refused("other_state", text, state=job.state)


def _asked_for(job: ReplayJob) -> list[Text]:
    text = gettext(
        "Requested by %(name)s. Action: %(action)s. Selection: %(scope)s. Setting: %(key)s. Messages: %(n)s."
    )
    facts = {
        "name": job.by.get_username() if job.by else gettext("unknown user"),
        "action": job.get_action_display(),
        "scope": job.get_scope_display(),
        "key": job.setting_key,
        "n": number(job.total) + ("" if job.is_counted else "+"),
    }
    return [text % facts, *([gettext("“%(text)s”") % {"text": job.reason}] if job.reason else [])]


def _at_once() -> Case:
    """A job that only waits (for a time, for outcomes) waits no longer; one at work keeps its worker."""
    return Case(When(~Q(wait_reason=""), then=Value(None)), default=F("lease_until"))
