"""Index and jobs against a simple model, whatever happens in which order, wherever a process dies.

A history is a row of steps by chance: messages die (with and without an id, of equal content), the feed
brings letters late, twice and out of order, or passes them over because they are too many, walks and sweeps
go on while all else happens, people give back, redirect, discard and put back, by name, by filter and all,
pause, resume, cancel, approve and refuse, workers die before a statement or around a call of the broker,
calls and answers get lost, the broker restarts and counts anew, letters expire or are taken by strangers,
KMAs report in any order and twice, messages die again. In between nothing may be said that is not true; when
all has come to rest, everything that happened is known.

A seed is a history: what fails, fails again with it. MA_TEST_HISTORIES=N tries N of them,
MA_TEST_FIRST_HISTORY=S from S on.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from console.operations.operation import Operation, perform
from console.operations.refusals import Refused
from dlq import tasks
from dlq.models import (
    UNFINISHED_JOBS,
    Action,
    DeadLetter,
    ItemState,
    JobState,
    LetterState,
    ReplayItem,
    ReplayJob,
    Scope,
)
from dlq.models.replay import TO_A_SUBSCRIPTION
from dlq.outcomes.settlement import PATIENCE, end_overdue
from dlq.replay import counts
from dlq.replay.counts import LEFT, OUTCOMES
from dlq.replay.operations import ApproveReplay, CancelReplay, PauseReplay, RefuseReplay, ResumeReplay
from dlq.replay.requests import Options
from dlq.replay.scopes import LISTED
from tests.dlq.dying import NONE, Threads, Trouble
from tests.dlq.jobs import begun, run_replay
from tests.dlq.letter_world import BIN, KEYS, LOOKED_AFTER, Death, World

HISTORIES = int(os.environ.get("MA_TEST_HISTORIES", "40"))
FIRST = int(os.environ.get("MA_TEST_FIRST_HISTORY", "0"))
STEPS = 40
VERBS: tuple[type[Operation[ReplayJob]], ...] = (
    PauseReplay,
    *[ResumeReplay] * 2,
    CancelReplay,
    *[ApproveReplay] * 2,
    RefuseReplay,
)
# What filters look for: some messages, and all that are equal.
WORDS = ("m1", "m2", "m3", "equal")
# So few letters at a time that a history has many pieces; and nobody waits.
SMALL = {
    "dlq.index.feed.PAUSE": 0.0,
    "dlq.replay.worker.agreement.APART": 0.0,
    "dlq.replay.rules.slices.RANGE_SLICE": 3,
    "dlq.replay.rules.slices.SLICE": 2,
    "dlq.replay.rules.slices.NAMED_SLICE": 4,
    "dlq.replay.worker.planner.IN_ORDER": 6,
    "dlq.replay.worker.planner.BY_ROWS": 6,
    "dlq.index.walk.PAGE": 3,
}
FILTERED = (Scope.MATCHING, Scope.GROUP)
# Rounds in which everybody does all that there is to do. A ladder takes one for each of its steps.
MOST_ROUNDS = 40


class History:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World()
        self.told: list[str] = []
        self._number = 0

    def happen(self) -> None:
        weights = {
            self.messages_die: 3, self.a_kma_takes: 4, self.reports_arrive: 2, self.the_feed_brings: 4,
            self.the_feed_brings_again: 1, self.a_stranger_takes_a_letter: 1, self.a_job_is_asked_for: 5,
            self.somebody_thinks_again: 2, self.a_worker_works: 10, self.a_walk_goes_on: 4,
            self.the_sweep_looks: 2,
            self.the_feed_is_drained: 1, self.the_broker_restarts: 1,
        }  # fmt: skip
        self.messages_die()
        self.the_feed_brings()
        for step in self.chance.choices(list(weights), list(weights.values()), k=STEPS):
            self.told.append(step.__name__)
            step()
            self.check()
        self.come_to_rest()
        self.check()
        self.everything_is_known()

    def _trouble(self, instructions: int, calls: int) -> Trouble:
        """None, or a process that dies, or a call that gets lost, within about so many."""
        kind = self.chance.choice(("none", "death", "death", "unheard", "lost"))
        if kind == "none":
            return NONE
        if kind == "death":
            return Trouble(death=self.chance.randint(1, instructions))
        return Trouble(**{kind: self.chance.randint(1, calls)})

    def _some(self, things: list[Any]) -> list[Any]:
        """Some of them, in any order."""
        return self.chance.sample(things, self.chance.randint(0, len(things)))

    # -- messages --------------------------------------------------------------------------------------------

    def messages_die(self) -> None:
        key = self.chance.choice(KEYS)
        for _ in range(self.chance.randint(1, 5)):
            self._number += 1
            self.world.publish(key, f"m{self._number}", strong=True)
        for _ in range(self.chance.randint(0, 3)):
            self.world.publish(key, f"equal to others of {key}", strong=False)
        for _ in range(self.world.waiting(key)):
            self.world.kma_takes(key, "dead")

    def a_kma_takes(self) -> None:
        key, result = self.chance.choice(KEYS), self.chance.choice(("handled", "failed", "dead"))
        for _ in range(min(self.chance.randint(1, 4), self.world.waiting(key))):
            self.world.kma_takes(key, result)

    def reports_arrive(self) -> None:
        chosen = self._some(self.world.reports)
        for _ in range(self.chance.randint(1, 2)):
            self.world.reports_arrive(chosen, self._trouble(12, 1))

    def the_feed_brings(self) -> None:
        self.world.arrive_at_feed()
        self.world.feed(self._some(list(self.world.unfed.items())), self._trouble(40, 3))

    def the_feed_brings_again(self) -> None:
        """What was accepted long ago: an accept that the broker did not hear before it died."""
        again = self.chance.sample(self.world.fed, min(5, len(self.world.fed)))
        self.world.feed([(-number, each) for number, each in enumerate(again, start=1)])

    def the_feed_is_drained(self) -> None:
        """There are too many: letters that lie in queues of their own are passed over, the sweep looks for
        them."""
        self.world.arrive_at_feed()
        with patch("dlq.index.feed.MOST_UNREAD", 2):
            self.world.feed(list(self.world.unfed.items()), self._trouble(30, 3))

    def the_broker_restarts(self) -> None:
        self.world.restarts()

    def a_stranger_takes_a_letter(self) -> None:
        queue = f"DLQ.{self.chance.choice(KEYS)}"
        if lying := len(self.world.store.queues[queue].ready):
            self.world.stranger_takes(queue, self.chance.randrange(lying))

    # -- people ----------------------------------------------------------------------------------------------

    def a_job_is_asked_for(self) -> None:
        key = self.chance.choice(KEYS)
        action = self.chance.choice(
            (*[Action.GIVE_BACK] * 4, Action.REDIRECT, Action.DISCARD, Action.PUT_BACK)
        )
        scope = self.chance.choice((Scope.ALL, Scope.SELECTION, Scope.ONE, Scope.MATCHING, Scope.GROUP))
        options = Options(per_second=self.chance.choice((0, 0, 5000)), ladder=self.chance.random() < 0.2)
        lying = DeadLetter.objects.filter(queue=BIN if action == Action.PUT_BACK else f"DLQ.{key}")
        letters = self._some(list(lying.values_list("pk", flat=True))) if scope in LISTED else []
        letters = letters[:1] if scope == Scope.ONE and letters else letters
        query = f"text={self.chance.choice(WORDS)}" if scope in FILTERED else ""
        other = next(each for each in KEYS if each != key)
        target = self.world.settings[other] if action == Action.REDIRECT else None
        setting = self.world.settings[key]
        self._ask(
            lambda: begun(
                setting, action=action, scope=scope, letters=letters, query=query, target=target,
                options=options,
                by=self.world.asker, now=timezone.now(),
            )
        )  # fmt: skip

    def somebody_thinks_again(self) -> None:
        jobs = list(ReplayJob.objects.filter(state__in=UNFINISHED_JOBS).order_by("created_at", "pk"))
        if jobs:
            verb, job = self.chance.choice(VERBS), self.chance.choice(jobs)
            self._ask(lambda: perform(verb, job, self.world.other))

    def _ask(self, ask: Callable[[], Any]) -> None:
        """A process of the site; it may die too."""

        def work() -> None:
            with suppress(Refused):
                ask()

        self.world.process(work, self._trouble(25, 1))

    # -- workers ---------------------------------------------------------------------------------------------

    def a_worker_works(self) -> None:
        if jobs := self.world.jobs_to_do():
            job = self.chance.choice(jobs)
            self.world.process(lambda: run_replay(job), self._trouble(120, 12))

    def a_walk_goes_on(self) -> None:
        if self.world.walks and self.chance.random() < 0.8:
            walk = self.chance.choice(self.world.walks)
            self.world.walk_on(walk, self.chance.randint(1, 10), self._trouble(40, 2))
        else:
            self.world.begin_walk(self.chance.choice(LOOKED_AFTER), self._trouble(10, 2))

    def the_sweep_looks(self) -> None:
        self.world.sweep(self.chance.randint(1, 30), self._trouble(80, 4))

    # -- what always holds -----------------------------------------------------------------------------------

    def check(self) -> None:
        truth = self.world.truth
        assert self.world.labels_at_the_broker() == truth.published - truth.ended, "each message in one place"
        for state, told in _told().items():
            if state == ItemState.GIVEN_BACK:
                assert told <= truth.moved.keys(), "said to be moved, and was not"
            elif state in (ItemState.TAKEN_ELSEWHERE, ItemState.NOT_FOUND):
                assert not told & truth.moved.keys(), "said not to be moved, and was"
        held = ReplayItem.objects.filter(state__in=[ItemState.PLANNED, ItemState.GIVEN_BACK])
        assert len(set(held.values_list("letter", flat=True))) == held.count(), (
            "one outstanding replay per letter"
        )
        for job in ReplayJob.objects.all():
            self._check_job(job)

    def _check_job(self, job: ReplayJob) -> None:
        states = Counter(job.items.values_list("state", flat=True))
        outcomes = Counter(job.items.filter(state__in=LEFT).values_list("outcome", flat=True))
        counted = {name: number for name, number in job.counts.items() if number and name in ItemState.values}
        left_out = counted.pop(ItemState.SKIPPED, 0)
        if job.planned_at is not None:
            assert left_out == sum(job.skipped.values()), "why letters were left out, of each"
            # What a scope that is no list leaves out is counted only.
            assert states.pop(ItemState.SKIPPED, 0) in ((left_out,) if job.scope in LISTED else (0,))
            assert counted == states, "the counts of a job are its letters"
        if job.state not in UNFINISHED_JOBS and job.finished_at is not None:
            assert not states[ItemState.PLANNED], "a job that is over left something undone"
            told = {name: job.counts.get(name, 0) for name in OUTCOMES}
            assert told == {name: outcomes[name] for name in told}, "its outcomes are those of its letters"
        if job.scope in FILTERED:
            word = job.query.partition("=")[2]
            bodies = job.items.values_list("letter__content__body_text", flat=True)
            assert all(word in body.split() for body in bodies), "only what the filter finds"

    # -- the end ---------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Nobody dies any more: people decide, workers end their jobs, KMAs handle what comes back."""
        for _ in range(MOST_ROUNDS):
            self.world.bring_everything()
            for job in ReplayJob.objects.filter(state__in=[JobState.AWAITING, JobState.PAUSED]):
                verb = ApproveReplay if job.state == JobState.AWAITING else ResumeReplay
                perform(verb, job, self.world.other)
            for job_id in self.world.jobs_to_do():
                run_replay(job_id)
            if not self.world.jobs_to_do():
                break
            for key in KEYS:
                for _ in range(self.world.waiting(key)):
                    self.world.kma_takes(key, "handled")
        assert not ReplayJob.objects.filter(state__in=UNFINISHED_JOBS).exists(), (
            "a job does not come to its end"
        )
        self.world.bring_everything()
        self.world.walks.clear()
        for queue in LOOKED_AFTER:
            self.world.begin_walk(queue)
            self.world.walk_on(self.world.walks[0], 1_000_000)
        assert not self.world.walks

    def everything_is_known(self) -> None:
        truth = self.world.truth
        moved = set(_deaths(ReplayItem.objects.filter(state=ItemState.GIVEN_BACK)))
        open_ = {
            death: item for item, death in _with_items(ReplayItem.objects.filter(state=ItemState.UNCONFIRMED))
        }
        # Of equal messages it is known how many went, not which ones.
        assert len(moved) + len(open_) >= len(truth.moved) >= len(moved), (
            "each move is told once, and no other"
        )
        strong = {death for death in truth.moved if self._is_strong(death)}
        assert strong <= moved | open_.keys(), "each move is told"
        assert not {death for death in strong & open_.keys() if truth.moved[death] in KEYS}, (
            "what was reported is told"
        )
        for queue in LOOKED_AFTER:
            dead = DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD)
            indexed = Counter(dead.values_list("queue", "orig_message_id"))
            assert indexed == Counter(self.world.lying(queue)), "the index is the broker"
        happened = Counter((one.death[0], *_fate(one.label, one.outcome)) for one in truth.returned)
        items = ReplayItem.objects.filter(state=ItemState.GIVEN_BACK, job__action__in=TO_A_SUBSCRIPTION)
        rows = items.values_list("letter__queue", "letter__content__body_text", "outcome")
        told = Counter((queue, *_fate(label, outcome)) for queue, label, outcome in rows)
        assert told - happened == Counter(), "nothing is told that did not happen"
        missing = happened - told
        assert {label for _, label, _ in missing if not label.startswith("equal")} == set(), (
            "what happened is told"
        )
        self.nobody_waits_longer_than_an_hour()

    def nobody_waits_longer_than_an_hour(self) -> None:
        list(end_overdue(timezone.now() + PATIENCE))
        for job in ReplayJob.objects.exclude(finished_at=None):
            assert (counts.waiting(job), job.outcomes_ended_at is None) == (0, False)
            self._check_job(job)

    def _is_strong(self, death: Death) -> bool:
        letters = DeadLetter.objects.filter(queue=death[0], orig_message_id=death[1], message_key_weak=False)
        return letters.exists()


def _fate(label: str, outcome: str) -> tuple[str, str]:
    """Of equal messages nobody can tell whether the one that failed died, or a new one that never came
    back."""
    again = outcome in ("failed_again", "dead_again")
    return label, "again" if label.startswith("equal") and again else outcome


def _told() -> dict[str, set[Death]]:
    """What is said of each letter that nothing else is equal to, by state."""
    found: dict[str, set[Death]] = defaultdict(set)
    strong = ReplayItem.objects.filter(letter__message_key_weak=False)
    for state, queue, number in strong.values_list("state", "letter__queue", "letter__orig_message_id"):
        found[state].add((queue, number))
    return found


def _deaths(items: QuerySet[ReplayItem]) -> list[Death]:
    return [death for _, death in _with_items(items)]


def _with_items(items: QuerySet[ReplayItem]) -> list[tuple[int, Death]]:
    rows = items.values_list("pk", "letter__queue", "letter__orig_message_id")
    return [(pk, (queue, number)) for pk, queue, number in rows]


@contextmanager
def _undone_afterwards() -> Iterator[None]:
    """Each history begins with an empty database, and never waits for a disk."""
    whole = transaction.atomic()
    whole._from_testcase = True  # type: ignore[attr-defined]  # it is no transaction of the product
    with whole:
        yield
        transaction.set_rollback(True)


@pytest.mark.process  # as dear: many histories
@pytest.mark.django_db
def test_whatever_happens_nothing_is_lost_doubled_or_said_wrongly(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.MA_SECOND_PERSON_ABOVE = 8
    for name, value in SMALL.items():
        monkeypatch.setattr(name, value)
    for seed in range(FIRST, FIRST + HISTORIES):
        with _undone_afterwards():
            history = History(seed)
            monkeypatch.setattr(tasks, "letter_queues", lambda world=history.world: world.queues)
            monkeypatch.setattr("console.jobs.engine.send", history.world.asked_to_run)
            monkeypatch.setattr("dlq.replay.worker.mover.ThreadPoolExecutor", Threads(history.chance))
            try:
                history.happen()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, after {history.told}: {error}") from error
