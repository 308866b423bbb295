"""Asking for dead letters to be moved: the scope is frozen in one transaction, a worker does the rest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from console.audit.log import Person, record
from console.audit.models import AuditResult
from console.jobs.worker import start
from console.operations.refusals import Refused, WronglyAsked
from contract.text import storable
from dlq.models import UNFINISHED_JOBS, Action, DeadLetter, ItemState, JobState, LetterState, ReplayJob, Scope
from dlq.models.replay import DELIVERING, route
from dlq.replay.preflight.rules import PreflightResult
from dlq.replay.scopes import LISTED, SHOWN_IDS, freeze_list, frozen
from dlq.search.filter import query_for_all

# -- how a job goes about its dead letters: how fast, when, and whether step by step -------------------------


LEAST_PER_SECOND, MOST_PER_SECOND = 0.001, 1_000_000.0


@dataclass(frozen=True, slots=True)
class Options:
    """`per_second` 0: as fast as the broker. `window_from` and `window_until`: local times of day, both or
    neither; the window may span midnight. `ladder`: 1, 5, 25, … dead letters, and it stops by itself when
    more than `ladder_percent` of a step fail again. `edit_rule` is what an edit does to each dead letter."""

    per_second: float = 0.0
    window_from: time | None = None
    window_until: time | None = None
    ladder: bool = False
    ladder_percent: int = 10
    edit_rule: dict[str, Any] = field(default_factory=dict)

    def problem(self) -> str:
        """Returns what is wrong with them, for people; empty: nothing."""
        # What is no number is neither.
        if not (self.per_second == 0 or LEAST_PER_SECOND <= self.per_second <= MOST_PER_SECOND):
            return _("Letters a second: 0 (as fast as possible), or a number from 0.001 to 1,000,000.")
        if (self.window_from is None) != (self.window_until is None):
            return _("Give both ends of the run window, or none.")
        if self.window_from is not None and self.window_from == self.window_until:
            return _("The run window has no length.")
        if not 0 <= self.ladder_percent <= 100:
            return _("The ladder stops above a percentage from 0 to 100.")
        return ""

    def columns(self) -> dict[str, Any]:
        """Those of a ReplayJob."""
        return {
            "per_second": self.per_second,
            "window_from": self.window_from,
            "window_until": self.window_until,
            "ladder": self.ladder,
            "ladder_percent": self.ladder_percent,
            "edit_rule": self.edit_rule,
        }


# Ids in one request of a person; a filter has no such bound.
LARGEST_SELECTION = 5000
# What a second person may have to approve.
APPROVED = (Action.GIVE_BACK, Action.REDIRECT, Action.DISCARD, Action.EDIT)
# Of the audit; a refused attempt has the same.
CODES = {
    Action.GIVE_BACK: "dead_letters.replay",
    Action.REDIRECT: "dead_letters.redirect",
    Action.DISCARD: "dead_letters.discard",
    Action.PUT_BACK: "dead_letters.restore",
    Action.EDIT: "dead_letters.edit",
}
EDIT_OF_ONE = "dead_letter.edit"  # by hand, without a rule
# What belongs to a job, in its transaction.
Store = Callable[[ReplayJob], None]


def code_of(action: str, options: Options) -> str:
    return EDIT_OF_ONE if action == Action.EDIT and not options.edit_rule else CODES[Action(action)]


def create_job(
    setting: LaunchSetting,
    *,
    action: str,
    scope: str,
    by: Person,
    now: datetime,
    letters: Iterable[int] | None = None,
    query: str = "",
    reason: str = "",
    target: LaunchSetting | None = None,
    options: Options | None = None,
    acknowledged: Sequence[str] = (),
    judged: PreflightResult | None = None,
    store: Store | None = None,
    detail: Mapping[str, Any] | None = None,
) -> ReplayJob:
    """A job on dead letters of `setting`: `letters` for the scopes one and selection (those that cannot go
    are left out, each with why), `query` for group and matching, `target` for a redirect. Raises
    Refused.

    Whether this person may, and whether every warning was acknowledged, is asked before: here it is only
    written down. `judged` says how many dead letters it will be; None: as many as there are. `store` is
    called in the transaction of the job, `detail` goes into its audit.
    """
    wanted = options or Options()
    check_question(setting, action, scope, wanted, target)
    ids = sorted(set(letters or ()))
    if scope in LISTED and not ids:
        raise Refused("nothing_to_give_back", _("No letter is named."))
    try:
        with transaction.atomic():
            job = _create(setting, action, scope, wanted, by, now, query, reason, target, acknowledged)
            _ask_a_second_person(job, _freeze(job, ids, now, judged))
            _record_created(job, by, now, ids, code_of(action, wanted), detail or {})
            if store is not None:
                store(job)
    except IntegrityError as error:
        raise _running_already(setting) from error
    if job.state == JobState.PLANNED:
        transaction.on_commit(lambda: start(job), robust=True)
    return job


# -- what is refused -----------------------------------------------------------------------------------------


def check_question(
    setting: LaunchSetting, action: str, scope: str, options: Options, target: LaunchSetting | None
) -> None:
    """Refuses what no state of the dead letters would allow; the pre-flight asks the same. Raises Refused."""
    if action not in Action.values or scope not in Scope.values:
        raise WronglyAsked("not_understood", _("There is no such action or scope."))
    if problem := options.problem():
        raise WronglyAsked("bad_options", problem)
    if options.ladder and action not in DELIVERING:
        raise WronglyAsked(
            "bad_options", _("A ladder needs letters of which agents say what becomes of them.")
        )
    if action != Action.REDIRECT:
        return
    if target is None or target.pk == setting.pk:
        raise WronglyAsked("no_target", _("Name another setting that gets the letters."))
    if target.destination_id is None or target.destination_id != setting.destination_id:
        raise Refused(
            "other_destination", _("Letters are redirected to a setting of the same destination only.")
        )


def _not_all(letters: Sequence[int]) -> Refused:
    return Refused(
        "outstanding",
        _("Some letters are given back already, or are gone."),
        _("Look at the list again and leave them out."),
        letters=list(letters),
    )


def _running_already(setting: LaunchSetting) -> Refused:
    running = ReplayJob.objects.filter(
        setting_key=setting.key, scope=Scope.ALL, state__in=UNFINISHED_JOBS
    ).first()
    return Refused(
        "already_running",
        _("All letters of this setting are being given back already."),
        _("Wait for that replay to end."),
        replay=str(running.pk) if running else "",
    )


# -- the rows ------------------------------------------------------------------------------------------------


def _create(
    setting: LaunchSetting,
    action: str,
    scope: str,
    options: Options,
    by: Person,
    now: datetime,
    query: str,
    reason: str,
    target: LaunchSetting | None,
    acknowledged: Sequence[str],
) -> ReplayJob:
    way = route(action, setting.key, target.key if target else "")
    gets = {Action.REDIRECT: target.key if target else "", Action.GIVE_BACK: setting.key}.get(
        Action(action), ""
    )
    return ReplayJob.objects.create(
        setting=setting,
        setting_key=setting.key,
        action=action,
        source_queue=way.source,
        target_queue=way.target,
        target_key=gets,
        scope=scope,
        query=query,
        reason=storable(reason),
        by=by if isinstance(by, User) else None,
        state=JobState.PLANNED,
        created_at=now,
        acknowledged=sorted(set(acknowledged)),
        **options.columns(),
    )


def _freeze(job: ReplayJob, ids: Sequence[int], now: datetime, judged: PreflightResult | None) -> int:
    """Returns how many dead letters go at most."""
    dead = DeadLetter.objects.filter(queue=job.source_queue, state=LetterState.DEAD)
    job.letters_up_to = dead.aggregate(last=Max("pk"))["last"] or 0
    if job.scope in LISTED:
        freeze_list(job, ids, now)
        job.refresh_from_db(fields=["counts", "skipped"])
        most = job.total = int(job.counts.get(ItemState.PLANNED, 0))
        if not job.total:
            shown = list(job.items.order_by("letter").values_list("letter", flat=True)[:SHOWN_IDS])
            raise _not_all(shown)
    elif judged is not None:
        job.total, most = judged.going, judged.at_most
    else:
        most = job.total = frozen(job).order_by().count()
        if not job.total:
            raise Refused("nothing_to_give_back", _("There is no dead letter of this setting to give back."))
    job.save(update_fields=["letters_up_to", "total"])
    return most


def second_above(action: str, most: int) -> int:
    """The limit of the site above which another person approves so many dead letters; 0: nobody has to."""
    limit: int = settings.MA_SECOND_PERSON_ABOVE
    return limit if limit and most > limit and action in APPROVED else 0


def _ask_a_second_person(job: ReplayJob, most: int) -> None:
    if second_above(job.action, most):
        job.state, job.needs_second = JobState.AWAITING, True
        job.save(update_fields=["state", "needs_second"])


def _record_created(
    job: ReplayJob, by: Person, now: datetime, ids: Sequence[int], code: str, more: Mapping[str, Any]
) -> None:
    detail: dict[str, Any] = {"acknowledged": job.acknowledged, **more}
    if ids:
        detail["letters"] = list(ids[:SHOWN_IDS])
    audit(job, code, by=by, now=now, reason=job.reason, detail=detail, counts={"letters": job.total})


def audit(
    job: ReplayJob,
    action: str,
    *,
    by: Person,
    now: datetime,
    reason: str = "",
    counts: dict[str, int] | None = None,
    result: AuditResult = AuditResult.DONE,
    detail: dict[str, Any] | None = None,
) -> None:
    details = {**details_of(job), **(detail or {})}
    about = about_job(job)
    record(action, by=by, now=now, reason=reason, counts=counts, result=result, detail=details, **about)


def about_job(job: ReplayJob) -> dict[str, Any]:
    """Names it in the audit."""
    only = job.items.values_list("letter", flat=True).first() if job.scope == Scope.ONE else None
    return {
        "target": f"replay:{job.pk}",
        "operation": job.pk,
        "setting_key": job.setting_key,
        "letter": only,
        "scope": job.scope,
    }


def details_of(job: ReplayJob) -> dict[str, Any]:
    """Returns for every entry about it what its name does not say."""
    query = query_for_all(job.query, job.setting_key)
    return {"from": job.source_queue, "to": job.target_queue, "query": query}
