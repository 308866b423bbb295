"""Outcomes of replays, joined anew whenever a fact of a case arrives: a report, a death, or that a dead
letter left."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Max, Q, QuerySet

from console.jobs import crash
from contract.records import ReplayOutcome
from contract.wire import ContractError
from dlq.models import (
    Action,
    DeadLetter,
    ItemState,
    LetterReport,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
    SliceState,
)
from dlq.models.dead_letter import LetterResult
from dlq.models.replay import DELIVERING
from dlq.outcomes import results
from dlq.outcomes.rules import Death, MessageOutcome, Replayed, Report, outcomes_by_item
from dlq.replay import counts
from failures.intake.kinds.record_kind import BatchContext, Item, RecordKind, StoreResult, check_message
from failures.intake.sanitize import fit

Case = tuple[str, str]
ASKED_AT_ONCE = 1000
NEEDED = (
    *(
        "job",
        "job__action",
        "job__target_key",
        "job__finished_at",
        "job__outcomes_ended_at",
        "state",
        "outcome",
    ),
    *("outcome_at", "died_as", "slice", "slice__planned_at", "slice__state", "slice__by_range", "letter"),
    *("letter__setting_key", "letter__message_key", "letter__message_key_weak", "letter__orig_message_id"),
    "letter__chapter",
)


class ReplayOutcomes(RecordKind[ReplayOutcome]):
    """Holds what KMAs say of returned messages, among the records of their spools."""

    contents = (ReplayOutcome,)
    rows = LetterReport.objects.all()
    needs_own_run = True

    def check(self, content: ReplayOutcome) -> None:
        check_message(content.message)
        if content.result not in LetterResult.values:
            raise ContractError("content.result", f"must be one of {', '.join(LetterResult.values)}")

    def columns(self, content: ReplayOutcome) -> dict[str, Any]:
        run, message = content.run, content.message
        return {
            "setting_key": fit(run.setting, 200),
            "message_key": fit(message.key, 255),
            "letter_queue": fit(message.dead_letter_queue, 300),
            "letter_id": message.dead_letter_id,
            "result": content.result,
            "server_name": fit(run.server, 63),
            "activation_uuid": run.activation,
            "attempt": message.attempt,
            "occurred_at": content.occurred_at,
        }

    def store(self, items: Sequence[Item[ReplayOutcome]], batch: BatchContext) -> StoreResult:
        reports = [self.row(item, batch) for item in items if item.content.message.key]
        # Jobs of replays are locked after the runs.
        batch.after_runs.append(partial(reports_arrived, reports, batch.now))
        return StoreResult()


def reports_arrived(reports: Sequence[LetterReport], now: datetime) -> None:
    """Called inside the intake's transaction, once its runs are locked."""
    LetterReport.objects.bulk_create(reports, ignore_conflicts=True)
    settle({(report.setting_key, report.message_key) for report in reports if report.verified}, now)


def settle(
    cases: Collection[Case],
    now: datetime,
    *,
    seen: Mapping[Case, Sequence[Report]] | None = None,
    actions: Sequence[str] = DELIVERING,
    locked: Collection[UUID] | None = None,
) -> None:
    """Writes the outcomes that follow from all facts of the cases. Call it in the transaction that stores a
    fact.

    `seen` are dead letters that were found where a move brought them: a fact of this moment, kept by what it
    confirms. `actions`: of jobs that brought nothing before an agent there are no other facts. `locked`: the
    jobs, where the transaction has locked them already (`lock`)."""
    jobs = lock_cases(cases) if locked is None else locked
    given = _given(cases, actions, jobs)
    if not given:
        return
    concerned = set(given) if tuple(actions) == DELIVERING else set[Case]()
    reports, deaths = _reports(concerned), _deaths(concerned)
    arrived: list[ReplayItem] = []
    changed: list[tuple[ReplayItem, MessageOutcome]] = []
    for case, items in given.items():
        known = [*reports[case], *(seen or {}).get(case, ())]
        found = outcomes_by_item([_as_replayed(item) for item in items], known, deaths[case])
        changed += [(item, found[item.pk]) for item in items if _differs(item, found[item.pk])]
        arrived += [item for item in items if item.state == ItemState.UNCONFIRMED and found[item.pk].arrived]
    # A death that turns out to be another's is free before that one gets it.
    if wrong := [item.pk for item, fate in changed if item.died_as_id not in (None, fate.died_as)]:
        ReplayItem.objects.filter(pk__in=wrong).update(died_as=None)
    told: dict[UUID, Counter[str]] = defaultdict(Counter)
    for item, fate in sorted(changed, key=lambda pair: pair[0].pk):
        outcome = fate.outcome or (Outcome.UNKNOWN.value if item.job.outcomes_ended_at else "")
        told[item.job_id].update({outcome: 1})
        told[item.job_id].subtract({item.outcome: 1})
        ReplayItem.objects.filter(pk=item.pk).update(
            outcome=outcome, outcome_at=fate.at or now, died_as_id=fate.died_as
        )
        if fate.died_as is not None and item.letter.message_key_weak:
            DeadLetter.objects.filter(pk=fate.died_as).update(chapter=item.letter.chapter + 1)
    for job, more in sorted(told.items()):
        counts.add_counts(job, {outcome: more[outcome] for outcome in counts.OUTCOMES})
    _confirm(arrived, now)


def _confirm(items: Sequence[ReplayItem], now: datetime) -> None:
    """These were heard of, so they went; with that it may be clear who took the others of their slices."""
    by_job: dict[UUID, list[ReplayItem]] = defaultdict(list)
    for item in items:
        by_job[item.job_id].append(item)
    for _, arrived in sorted(by_job.items()):
        job = arrived[0].job
        results.confirmed(job, [item.pk for item in arrived], now)
        pieces = {int(item.slice.pk): item.slice for item in arrived if item.slice}
        for _, piece in sorted(pieces.items()):
            # What a move answered last is in the number of a slice before its dead letters are marked.
            if piece.state != SliceState.MOVED and not (piece.by_range and job.finished_at is None):
                results.conclude(job, piece.pk, now)


def lock_cases(cases: Collection[Case], *more: ReplayJob) -> frozenset[UUID]:
    """Locks the jobs that had messages of these cases, and these; call it first in a transaction.

    A job that begins to move such a message a moment later is not among them: nothing that is told now can be
    about its move."""
    items = ReplayItem.objects.filter(letter__message_key__among={key for _, key in cases}) if cases else None
    had = set(items.order_by().values_list("job", flat=True).distinct()) if items is not None else set[UUID]()
    jobs = frozenset(had | {job.pk for job in more})
    if jobs:
        counts.lock(jobs)
    return jobs


def _given(
    cases: Collection[Case], actions: Sequence[str], jobs: Collection[UUID]
) -> dict[Case, list[ReplayItem]]:
    """Items whose dead letter left its queue, or may have: from the moment before the move on.

    They are locked before the facts are read: of two facts that are stored at once, the second sees the
    first. So do their jobs, which come first in the order of locks (`counts.lock`).
    """
    left = Q(state__in=counts.LEFT) | Q(state=ItemState.PLANNED, slice__tries__gt=0)
    items = ReplayItem.objects.filter(left, job__in=list(jobs), job__action__in=actions)
    items = items.filter(letter__message_key__among={key for _, key in cases})
    found: dict[Case, list[ReplayItem]] = defaultdict(list)
    locked = items.select_for_update(of=("self",)).order_by("pk")
    for item in locked.select_related("letter", "slice", "job").only(*NEEDED):
        case = _case_of(item)
        if case in cases:
            found[case].append(item)
    return found


def _case_of(item: ReplayItem) -> Case:
    """Under which it is heard of: a redirected dead letter goes on as one of the setting that got it."""
    return item.job.target_key or item.letter.setting_key, item.letter.message_key


def redirected_to(setting_key: str, message_key: str) -> QuerySet[ReplayItem]:
    """Items by which a message came to this setting from another one, the latest first."""
    items = ReplayItem.objects.filter(
        letter__message_key=message_key,
        job__action=Action.REDIRECT,
        job__target_key=setting_key,
        state__in=counts.LEFT,
    )
    return items.exclude(letter__message_key="").select_related("job__by", "slice", "letter").order_by("-pk")


def cases_of_letters(job: ReplayJob, letters: QuerySet[DeadLetter]) -> set[Case]:
    """Under which they are heard of once the job has moved them."""
    rows = letters.exclude(message_key="").values_list("setting_key", "message_key")
    return {(job.target_key or setting, key) for setting, key in rows}


def cases_of(items: Sequence[int]) -> set[Case]:
    """Reads them in bounded questions: of a job there may be a million."""
    cases: set[Case] = set()
    for start in range(0, len(items), ASKED_AT_ONCE):
        rows = ReplayItem.objects.filter(pk__in=items[start : start + ASKED_AT_ONCE]).exclude(
            letter__message_key=""
        )
        cases.update(_case_of(item) for item in rows.select_related("letter", "job").only(*NEEDED))
    return cases


def _as_replayed(item: ReplayItem) -> Replayed:
    assert item.slice is not None
    letter = item.letter
    return Replayed(
        item=item.pk,
        number=letter.orig_message_id,
        weak=letter.message_key_weak,
        at=item.slice.planned_at,
        died_as=item.died_as_id,
        confirmed=item.state == ItemState.GIVEN_BACK,
    )


def _reports(cases: Collection[Case]) -> dict[Case, list[Report]]:
    found: dict[Case, list[Report]] = defaultdict(list)
    rows = LetterReport.objects.filter(message_key__among={key for _, key in cases}, verified=True)
    for row in rows.only("setting_key", "message_key", "letter_id", "result", "occurred_at"):
        found[row.setting_key, row.message_key].append(
            Report(row.letter_id, row.result == Outcome.HANDLED, row.occurred_at)
        )
    return found


def _deaths(cases: Collection[Case]) -> dict[Case, list[Death]]:
    """What was only moved from one dead-letter queue to another did not die again."""
    found: dict[Case, list[Death]] = defaultdict(list)
    rows = DeadLetter.objects.filter(
        message_key__among={key for _, key in cases}, orig_queue=F("setting_key")
    )
    for row in rows.only("setting_key", "message_key", "orig_message_id", "seen_at"):
        found[row.setting_key, row.message_key].append(Death(row.pk, row.orig_message_id, row.seen_at))
    return found


def _differs(item: ReplayItem, fate: MessageOutcome) -> bool:
    """What is unknown stays so as long as nothing is heard."""
    if (item.outcome, fate.outcome) == (Outcome.UNKNOWN, ""):
        return False
    return (item.outcome, item.died_as_id) != (fate.outcome, fate.died_as)


# -- replayed messages that were processed successfully ------------------------------------------------------
# Asked by whoever decides whether an activation finished well.


def handled_well(activation: UUID, keys: Collection[str]) -> dict[str, int]:
    """{message key: how often} in this activation."""
    reports = LetterReport.objects.filter(
        activation_uuid=activation, message_key__in=keys, result=LetterResult.HANDLED, verified=True
    )
    return dict(reports.order_by().values_list("message_key").annotate(Count("pk")))


# -- outcomes that stay unknown after an hour ----------------------------------------------------------------
# Whoever waits for outcomes waits no longer. Later facts replace them (`settle`). Every row is changed by a
# conditional UPDATE in one transaction with the counts of its job: killed at any point, the next step ends
# the rest.


# From the move of a dead letter on.
PATIENCE = timedelta(hours=1)
AT_ONCE = 1000


def end_overdue(now: datetime) -> Iterator[ReplayJob]:
    """Job by job, the oldest first, of those whose dead letters may wait for outcomes still."""
    jobs = ReplayJob.objects.filter(outcomes_ended_at=None).filter(~Q(started_at=None) | ~Q(finished_at=None))
    for job in jobs.order_by("created_at", "pk").iterator(chunk_size=200):
        while _end_some(job, now):
            pass
        _end_job(job, now)
        yield job


def _end_some(job: ReplayJob, now: datetime) -> bool:
    """Returns whether there may be more."""
    silent = Q(state=ItemState.UNCONFIRMED, released_as=ItemState.UNCONFIRMED)
    if job.action in DELIVERING:
        silent |= Q(state=ItemState.GIVEN_BACK, released_as="")
    before = now - PATIENCE
    moved = Q(slice__moved_at__lte=before) | Q(slice__moved_at=None, state_at__lte=before)
    overdue = ReplayItem.objects.filter(silent, moved, job=job, outcome=Outcome.WAITING)
    with transaction.atomic():
        counts.lock([job.pk])
        found = (
            overdue.select_for_update(of=("self",)).order_by("pk").values_list("pk", "state", "letter__state")
        )
        rows = list(found[:AT_ONCE])
        # It lies in its queue again: whoever had it let go of it.
        back = [
            pk for pk, state, letter in rows if (state, letter) == (ItemState.UNCONFIRMED, LetterState.DEAD)
        ]
        results.not_ours(job, back, now)
        ids = [pk for pk, _, _ in rows if pk not in frozenset(back)]
        ReplayItem.objects.filter(pk__in=ids).update(outcome=Outcome.UNKNOWN, outcome_at=now)
        crash.point("overdue")
        counts.add_counts(job.pk, {Outcome.UNKNOWN: len(ids)})
    return len(rows) == AT_ONCE


def _end_job(job: ReplayJob, now: datetime) -> None:
    """Once it is over and none of its dead letters waits. Whatever is heard later is told all the same."""
    waiting = ReplayItem.objects.filter(job=job, state__in=counts.LEFT, outcome=Outcome.WAITING)
    if job.action not in DELIVERING:
        waiting = waiting.filter(state=ItemState.UNCONFIRMED)
    if not waiting.exists():
        ReplayJob.objects.filter(~Q(finished_at=None), pk=job.pk).update(outcomes_ended_at=now)


# -- when messages died: attempts of before count no more for one that was replayed --------------------------


def deaths(setting_key: str, message_keys: Collection[str]) -> Mapping[str, datetime]:
    """Without moves to another dead-letter queue, as `_deaths`."""
    letters = DeadLetter.objects.filter(setting_key=setting_key, message_key__in=message_keys)
    died = letters.filter(orig_queue=F("setting_key")).order_by()
    return dict(died.values_list("message_key").annotate(Max("seen_at")))
