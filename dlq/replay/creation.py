"""Makes a job of what a person asks for: the scope is frozen in one transaction, a worker does the rest."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from agents.freezes.held import freeze_refusal
from agents.models import LaunchSetting
from agents.provisioning.topology import REMOVING
from console.audit.log import Person, attempt, record
from console.audit.models import AuditResult
from console.jobs.engine import start
from console.operations.refusals import Refused, WronglyAsked
from console.ui.amounts import number
from contract.typed import storable
from dlq.models import (
    UNFINISHED_JOBS,
    Action,
    DeadLetter,
    HoldState,
    InOrder,
    ItemState,
    JobState,
    LetterState,
    ReplayJob,
    Scope,
)
from dlq.models.replay import AT_LEAST, TO_A_SUBSCRIPTION
from dlq.replay.preflight.rules import GONE, OUTSTANDING, PreflightResult
from dlq.replay.preflight.text import reason, sentence
from dlq.replay.requests import ReplayRequest, check_question, check_request, removed
from dlq.replay.scopes import LISTED, SHOWN_IDS, freeze_list, frozen
from dlq.search.filter import query_for_all

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


def _code_of(asked: ReplayRequest) -> str:
    by_hand = asked.action == Action.EDIT and not asked.options.edit_rule
    return EDIT_OF_ONE if by_hand else CODES[Action(asked.action)]


@contextmanager
def attempted(asked: ReplayRequest, by: Person) -> Iterator[None]:
    """Outside of every transaction, around `check_request` and `run`: what is refused leaves one entry in the
    audit."""
    only = asked.letters[0] if asked.scope == Scope.ONE and asked.letters else None
    key = asked.setting.key
    with attempt(_code_of(asked), by=by, target=f"setting:{key}", setting_key=key, letter=only):
        yield


def begin_replay(asked: ReplayRequest, *, by: Person, now: datetime, store: Store | None = None) -> ReplayJob:
    """Checks it, and begins it. Raises NotAllowed, Refused, after the entry of the audit."""
    with attempted(asked, by):
        return run(asked, check_request(asked, by=by, now=now), by=by, now=now, store=store)


def run(
    asked: ReplayRequest, verdict: PreflightResult, *, by: Person, now: datetime, store: Store | None = None
) -> ReplayJob:
    """The job of what was just checked. Raises Refused: `reason_needed`, `unacknowledged` (`warnings`: their
    codes), and what `create_job` refuses."""
    if asked.action == Action.DISCARD and not asked.reason.strip():
        text = _(
            "The job was not started: discarded messages are later deleted permanently, so a "
            "reason is required. Enter a reason."
        )
        raise WronglyAsked("reason_needed", text)
    _check_going(verdict)
    if warnings := verdict.missing(asked.acknowledged):
        raise Refused(
            "unacknowledged",
            " ".join(sentence(warning) for warning in warnings),
            _("Check the consequences, then acknowledge: %(codes)s.")
            % {"codes": ", ".join(warning.code for warning in warnings)},
            warnings=[warning.code for warning in warnings],
        )
    return create_job(asked, by=by, now=now, judged=verdict, store=store)


def _check_going(verdict: PreflightResult) -> None:
    if verdict.going:
        return
    if not verdict.seen:
        raise Refused(
            "nothing_to_give_back", _("The job was not started: the setting has no messages to move.")
        )
    taken = verdict.skipped.keys() & {OUTSTANDING, GONE}
    why = "; ".join(f"{reason(code)}: {number(count)}" for code, count in verdict.skipped.items())
    raise Refused(
        "outstanding" if taken else "nothing_to_give_back",
        _("The job was not started, because none of these messages can be moved: %(why)s.") % {"why": why},
        letters=sorted(pk for some in verdict.examples.values() for pk in some)[:SHOWN_IDS],
        skipped=verdict.skipped,
    )


def create_job(
    asked: ReplayRequest,
    *,
    by: Person,
    now: datetime,
    judged: PreflightResult | None = None,
    store: Store | None = None,
) -> ReplayJob:
    """A job on dead letters of a setting; of a list those that cannot go are left out, each with why. Raises
    Refused.

    Whether this person may, and whether every warning was acknowledged, is asked before: here it is only
    written down. `judged` says how many dead letters it will be; None: as many as there are. `store` is
    called in the transaction of the job.
    """
    check_question(asked)
    ids = sorted(set(asked.letters)) if asked.scope in LISTED else []
    if asked.scope in LISTED and not ids:
        raise Refused(
            "nothing_to_give_back",
            _("The job was not started: no messages are selected. Select at least one."),
        )
    try:
        with transaction.atomic():
            if asked.target is not None:
                _hold(asked.target)
            _check_not_frozen(asked.receiver, now)
            job = _create(asked, by, now)
            _ask_a_second_person(job, _freeze(job, ids, now, judged))
            detail = {"acknowledged": job.acknowledged, **asked.detail}
            detail |= {"letters": ids[:SHOWN_IDS]} if ids else {}
            counts = {"letters" if job.is_counted else "letters_at_least": job.total}
            audit(job, _code_of(asked), by=by, now=now, reason=job.reason, detail=detail, counts=counts)
            if store is not None:
                store(job)
    except IntegrityError as error:
        raise _running_already(asked.setting) from error
    if job.state == JobState.PLANNED:
        transaction.on_commit(lambda: start(job), robust=True)
    return job


def running_of_all(setting: LaunchSetting) -> ReplayJob | None:
    """The unfinished job on all dead letters of the setting, of which there is one at most."""
    jobs = ReplayJob.objects.filter(setting_key=setting.key, scope=Scope.ALL, state__in=UNFINISHED_JOBS)
    return jobs.first()


def redirect_into(setting: LaunchSetting) -> str | None:
    """Returns why it may not be removed: what moves there at that moment would go with its subscription."""
    jobs = ReplayJob.objects.filter(action=Action.REDIRECT, target_key=setting.key, finished_at=None)
    return _("A job is redirecting messages to this setting.") if jobs.exists() else None


def _hold(target: LaunchSetting) -> None:
    """Call it in the transaction of the job. Of a removal and a redirect at once the second one to have the
    row sees the first. Raises Refused."""
    rows = LaunchSetting.objects.select_for_update(of=("self",), no_key=True).filter(pk=target.pk)
    if list(rows.values_list("wanted_hash", flat=True)) in ([], [REMOVING]):
        raise removed(target)


def _check_not_frozen(receiver: LaunchSetting | None, now: datetime) -> None:
    """Looks under the lock of the setting that gets the messages, for which a freeze waits; jobs that are
    there already go on. Raises Refused."""
    if receiver is None:
        return
    rows = LaunchSetting.objects.select_for_update(no_key=True).filter(pk=receiver.pk)
    if refused := freeze_refusal(list(rows.values_list("pool", flat=True)), now):
        raise refused


def _running_already(setting: LaunchSetting) -> Refused:
    running = running_of_all(setting)
    return Refused(
        "already_running",
        _("The job was not started: another job is already moving all of this setting's messages."),
        _("Wait until that job finishes."),
        replay=str(running.pk) if running else "",
    )


# -- the rows ------------------------------------------------------------------------------------------------


def _create(asked: ReplayRequest, by: Person, now: datetime) -> ReplayJob:
    way, receiver = asked.route, asked.receiver
    gets = receiver.key if receiver is not None and asked.action in TO_A_SUBSCRIPTION else ""
    return ReplayJob.objects.create(
        setting=asked.setting,
        setting_key=asked.setting.key,
        action=asked.action,
        source_queue=way.source,
        target_queue=way.target,
        target_key=gets,
        scope=asked.scope,
        query=asked.query,
        reason=storable(asked.reason),
        by=by if isinstance(by, User) else None,
        state=JobState.PLANNED,
        created_at=now,
        acknowledged=sorted(set(asked.acknowledged)),
        letters_up_to=asked.up_to,
        hold=HoldState.WANTED if asked.options.in_order == InOrder.AHEAD else "",
        **asdict(asked.options),
    )


def _freeze(job: ReplayJob, ids: Sequence[int], now: datetime, judged: PreflightResult | None) -> int:
    """Returns how many dead letters go at most. The scope ends where somebody was shown its end, else now."""
    dead = DeadLetter.objects.filter(queue=job.source_queue, state=LetterState.DEAD)
    newest = dead.aggregate(last=Max("pk"))["last"] or 0
    job.letters_up_to = newest if job.letters_up_to is None else min(newest, job.letters_up_to)
    if job.scope in LISTED:
        freeze_list(job, ids, now)
        job.refresh_from_db(fields=["counts", "skipped"])
        most = job.total = int(job.counts.get(ItemState.PLANNED, 0))
        if not job.total:
            shown = list(job.items.order_by("letter").values_list("letter", flat=True)[:SHOWN_IDS])
            raise Refused(
                "outstanding",
                _(
                    "The job was not started: some messages already belong to another job or are no "
                    "longer in the queue."
                ),
                _("Refresh the list and exclude them."),
                letters=shown,
            )
    elif judged is not None:
        job.total, most = judged.going, judged.at_most
        job.counts = {AT_LEAST: judged.going} if judged.about else {}
    else:
        most = job.total = frozen(job).order_by().count()
        if not job.total:
            raise Refused(
                "nothing_to_give_back",
                _("The job was not started: the setting has no dead letters to replay."),
            )
    job.save(update_fields=["letters_up_to", "total", "counts"])
    return most


def second_above(action: str, most: int) -> int:
    """The limit of the site above which another person approves so many dead letters; 0: nobody has to."""
    limit: int = settings.MA_SECOND_PERSON_ABOVE
    return limit if limit and most > limit and action in APPROVED else 0


def _ask_a_second_person(job: ReplayJob, most: int) -> None:
    if second_above(job.action, most):
        job.state, job.needs_second = JobState.AWAITING, True
        job.save(update_fields=["state", "needs_second"])


# -- entries of the audit about a job ------------------------------------------------------------------------


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
