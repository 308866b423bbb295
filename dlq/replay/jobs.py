"""Asking for letters to be moved: the scope is frozen in one transaction, a worker does the rest."""

from collections.abc import Iterable, Sequence
from datetime import datetime
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
from contract.text import storable
from dlq.finding.told import query_for_all
from dlq.models import UNFINISHED_JOBS, Action, DeadLetter, ItemState, JobState, LetterState, ReplayJob, Scope
from dlq.models.replay import DELIVERING
from dlq.preflight import skipping
from dlq.replay.options import Options
from dlq.replay.refusal import ReplayRefused
from dlq.replay.routes import route
from dlq.replay.scopes import LISTED, SHOWN_IDS, freeze_list, frozen, matching, replayable

__all__ = [
    "LARGEST_SELECTION",
    "Options",
    "ReplayRefused",
    "check_question",
    "create_job",
    "give_back_all",
    "give_back_letters",
    "replayable",
]

# Ids in one request of a person; a filter has no such bound.
LARGEST_SELECTION = 5000
# A scope that is no list is counted so far before it is planned.
COUNTED = 10_000
# What a second person may have to approve.
APPROVED = (Action.GIVE_BACK, Action.REDIRECT, Action.DISCARD, Action.EDIT)


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
) -> ReplayJob:
    """A job on dead letters of `setting`: `letters` for the scopes one and selection (those that cannot go
    are left out, each with why), `query` for group and matching, `target` for a redirect. Raises
    ReplayRefused.

    Whether this person may, and whether every warning was acknowledged, is asked before: here it is only
    written down.
    """
    wanted = options or Options()
    check_question(setting, action, scope, wanted, target)
    ids = sorted(set(letters or ()))
    if scope in LISTED and not ids:
        raise ReplayRefused("nothing_to_give_back", _("No letter is named."))
    try:
        with transaction.atomic():
            job = _create(setting, action, scope, wanted, by, now, query, reason, target, acknowledged)
            _freeze(job, ids, now)
            _ask_a_second_person(job)
            _tell(job, by, now, ids)
    except IntegrityError as error:
        raise _running_already(setting) from error
    if job.state == JobState.PLANNED:
        transaction.on_commit(lambda: start(job), robust=True)
    return job


def give_back_all(setting: LaunchSetting, *, by: Person, reason: str = "", now: datetime) -> ReplayJob:
    """Every letter of the setting that is in the index now. Raises ReplayRefused."""
    return create_job(setting, action=Action.GIVE_BACK, scope=Scope.ALL, by=by, now=now, reason=reason)


def give_back_letters(
    setting: LaunchSetting, letters: Sequence[int], *, by: Person, reason: str = "", now: datetime
) -> ReplayJob:
    """These letters, all or none. Raises ReplayRefused."""
    ids = sorted(set(letters))
    if len(ids) > LARGEST_SELECTION:
        raise ReplayRefused(
            "too_many",
            _("At most %(n)s letters at a time.") % {"n": LARGEST_SELECTION},
            limit=LARGEST_SELECTION,
        )
    scope = Scope.ONE if len(ids) == 1 else Scope.SELECTION
    with transaction.atomic():
        job = create_job(
            setting, action=Action.GIVE_BACK, scope=scope, letters=ids, by=by, now=now, reason=reason
        )
        left_out = job.items.filter(state=ItemState.SKIPPED).order_by("letter")
        if impossible := list(left_out.values_list("letter", flat=True)[:SHOWN_IDS]):
            raise _not_all(impossible)
    return job


# -- what is refused -----------------------------------------------------------------------------------------


def check_question(
    setting: LaunchSetting, action: str, scope: str, options: Options, target: LaunchSetting | None
) -> None:
    """Refuses what no state of the letters would allow; the pre-flight asks the same. Raises
    ReplayRefused."""
    if action not in Action.values or scope not in Scope.values:
        raise ReplayRefused("not_understood", _("There is no such action or scope."))
    if problem := options.problem():
        raise ReplayRefused("bad_options", problem)
    if options.ladder and action not in DELIVERING:
        raise ReplayRefused(
            "bad_options", _("A ladder needs letters of which agents say what becomes of them.")
        )
    if action != Action.REDIRECT:
        return
    if target is None or target.pk == setting.pk:
        raise ReplayRefused("no_target", _("Name another setting that gets the letters."))
    if target.destination_id is None or target.destination_id != setting.destination_id:
        raise ReplayRefused(
            "other_destination", _("Letters are redirected to a setting of the same destination only.")
        )


def _not_all(letters: Sequence[int]) -> ReplayRefused:
    return ReplayRefused(
        "outstanding",
        _("Some letters are given back already, or are gone."),
        _("Look at the list again and leave them out."),
        letters=list(letters),
    )


def _running_already(setting: LaunchSetting) -> ReplayRefused:
    running = ReplayJob.objects.filter(
        setting_key=setting.key, scope=Scope.ALL, state__in=UNFINISHED_JOBS
    ).first()
    return ReplayRefused(
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


def _freeze(job: ReplayJob, ids: Sequence[int], now: datetime) -> None:
    dead = DeadLetter.objects.filter(queue=job.source_queue, state=LetterState.DEAD)
    job.letters_up_to = dead.aggregate(last=Max("pk"))["last"] or 0
    if job.scope in LISTED:
        freeze_list(job, ids, now)
        job.refresh_from_db(fields=["counts", "skipped"])
        job.total = job.counts.get(ItemState.PLANNED, 0)
        if not job.total:
            shown = list(job.items.order_by("letter").values_list("letter", flat=True)[:SHOWN_IDS])
            raise _not_all(shown)
    else:
        rows = matching(job.action, job.setting_key, job.scope, job.query, job.by)
        if not rows.exists():
            raise ReplayRefused(
                "nothing_to_give_back", _("There is no dead letter of this setting to give back.")
            )
        job.total = _about(job, now)
    job.save(update_fields=["letters_up_to", "total"])


def _about(job: ReplayJob, now: datetime) -> int:
    """How many letters it will be: exactly up to COUNTED, without those that are left out; and then all that
    the index holds, or COUNTED. Planning tells the number in the end."""
    rows = frozen(job).order_by()
    letters = skipping.read(rows[: COUNTED + 1])
    if len(letters) <= COUNTED:
        policy = skipping.policy_for(job.setting_key, job.action, now=now)
        return sum(1 for _letter, why in skipping.judged(letters, policy) if not why)
    bound = max(COUNTED, settings.MA_SECOND_PERSON_ABOVE) + 1
    counted = rows[:bound].count()
    return rows.count() if counted == bound and job.scope == Scope.ALL else counted


def _ask_a_second_person(job: ReplayJob) -> None:
    limit = settings.MA_SECOND_PERSON_ABOVE
    if limit and job.total > limit and job.action in APPROVED:
        job.state, job.needs_second = JobState.AWAITING, True
        job.save(update_fields=["state", "needs_second"])


def _tell(job: ReplayJob, by: Person, now: datetime, ids: Sequence[int]) -> None:
    detail: dict[str, Any] = {"acknowledged": job.acknowledged}
    if ids:
        detail["letters"] = list(ids[:SHOWN_IDS])
    audit(job, job.action, by=by, now=now, reason=job.reason, detail=detail, counts={"letters": job.total})


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
    only = job.items.values_list("letter", flat=True).first() if job.scope == Scope.ONE else None
    record(
        action,
        by=by,
        now=now,
        target=f"replay:{job.pk}",
        operation=job.pk,
        setting_key=job.setting_key,
        letter=only,
        scope=job.scope,
        reason=reason,
        counts=counts,
        result=result,
        detail={
            "from": job.source_queue,
            "to": job.target_queue,
            "query": query_for_all(job.query, job.setting_key),
            **(detail or {}),
        },
    )
