"""Asking for letters to be given back: the scope is frozen in one transaction, a worker does the rest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.looking import send
from contract.properties import dead_letter_queue
from contract.text import storable
from dlq.auditing import Person, record
from dlq.models import AuditResult, DeadLetter, ItemState, JobState, LetterState, ReplayItem, ReplayJob, Scope
from dlq.models.replay import OPEN_JOBS

LARGEST_SELECTION = 5000
RUN_TASK = "dlq.run_replay"
TASK_EXPIRES = 60.0
SHOWN_IDS = 20


class ReplayRefused(Exception):
    """Nothing was planned. `code` is a stable word, `more` says which letters."""

    def __init__(self, code: str, reason: str, what_to_do: str = "", **more: Any) -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do, self.more = code, reason, what_to_do, more


def replayable(setting: LaunchSetting) -> QuerySet[DeadLetter]:
    """Letters of the setting's queue that can be given back: dead, not on their way, with an id to move them by."""
    # Asked letter by letter: a page that counts up to a bound never reads every item there ever was.
    outstanding = ReplayItem.objects.filter(letter=OuterRef("pk"), state__in=[ItemState.PLANNED, ItemState.GIVEN_BACK])
    letters = DeadLetter.objects.filter(
        queue=dead_letter_queue(setting.key), state=LetterState.DEAD, orig_message_id__gte=0
    )
    return letters.filter(~Exists(outstanding))


def give_back_all(setting: LaunchSetting, *, by: Person, reason: str = "", now: datetime) -> ReplayJob:
    """Every letter of the setting that is in the index now. Raises ReplayRefused."""
    last = replayable(setting).aggregate(last=Max("pk"))["last"]
    if last is None:
        raise ReplayRefused("nothing_to_give_back", _("There is no dead letter of this setting to give back."))
    try:
        with transaction.atomic():
            job = _create(setting, Scope.ALL, by=by, reason=reason, now=now, letters_up_to=last)
            job.total = replayable(setting).filter(pk__lte=last).count()
            job.save(update_fields=["total"])
            _begin(job, by, now)
    except IntegrityError as error:
        running = ReplayJob.objects.filter(setting_key=setting.key, scope=Scope.ALL, state__in=OPEN_JOBS).first()
        raise ReplayRefused(
            "already_running",
            _("All letters of this setting are being given back already."),
            _("Wait for that replay to end."),
            replay=str(running.pk) if running else "",
        ) from error
    return job


def give_back_letters(
    setting: LaunchSetting, letters: Sequence[int], *, by: Person, reason: str = "", now: datetime
) -> ReplayJob:
    """These letters, all or none. Raises ReplayRefused."""
    ids = sorted(set(letters))
    if not ids:
        raise ReplayRefused("nothing_to_give_back", _("No letter is named."))
    if len(ids) > LARGEST_SELECTION:
        raise ReplayRefused(
            "too_many", _("At most %(n)s letters at a time.") % {"n": LARGEST_SELECTION}, limit=LARGEST_SELECTION
        )
    try:
        with transaction.atomic():
            _check_letters(setting, ids)
            scope = Scope.ONE if len(ids) == 1 else Scope.SELECTION
            job = _create(setting, scope, by=by, reason=reason, now=now, total=len(ids))
            ReplayItem.objects.bulk_create([ReplayItem(job=job, letter_id=pk, state_at=now) for pk in ids])
            _begin(job, by, now, letters=ids[:SHOWN_IDS])
    except IntegrityError as error:
        raise ReplayRefused(
            "outstanding", _("Somebody is giving some of these letters back at this moment."), _("Look again.")
        ) from error
    return job


def _check_letters(setting: LaunchSetting, ids: Sequence[int]) -> None:
    found = dict(DeadLetter.objects.filter(pk__in=ids).values_list("pk", "queue"))
    queue = dead_letter_queue(setting.key)
    if foreign := [pk for pk in ids if found.get(pk) != queue]:
        raise ReplayRefused(
            "not_of_setting",
            _("Some letters are not dead letters of this setting."),
            _("Choose from the dead letters of one setting."),
            letters=foreign[:SHOWN_IDS],
        )
    possible = set(replayable(setting).filter(pk__in=ids).values_list("pk", flat=True))
    if impossible := [pk for pk in ids if pk not in possible]:
        raise ReplayRefused(
            "outstanding",
            _("Some letters are given back already, or are gone."),
            _("Look at the list again and leave them out."),
            letters=impossible[:SHOWN_IDS],
        )


def _create(setting: LaunchSetting, scope: Scope, *, by: Person, reason: str, now: datetime, **more: Any) -> ReplayJob:
    person = by if isinstance(by, User) else None
    return ReplayJob.objects.create(
        setting=setting,
        setting_key=setting.key,
        scope=scope,
        reason=storable(reason),
        by=person,
        state=JobState.PLANNED,
        created_at=now,
        **more,
    )


def _begin(job: ReplayJob, by: Person, now: datetime, **detail: Any) -> None:
    audit(job, "give_back", by=by, now=now, scope=job.scope, letters_in_all=job.total, reason=job.reason, **detail)
    transaction.on_commit(lambda: start(job), robust=True)


def start(job: ReplayJob) -> None:
    """Best effort: beat finds a job that nobody works on."""
    send(RUN_TASK, str(job.pk), expires=TASK_EXPIRES)


def audit(job: ReplayJob, action: str, *, by: Person, now: datetime, **detail: Any) -> None:
    """An entry of this job. `counts` and `result` are columns, the rest is detail."""
    record(
        action,
        by=by,
        now=now,
        target=f"replay:{job.pk}",
        operation=job.pk,
        setting_key=job.setting_key,
        scope=job.scope,
        reason=job.reason,
        counts=detail.get("counts"),
        result=detail.pop("result", AuditResult.DONE),
        detail={"setting": job.setting_key, **detail},
    )
