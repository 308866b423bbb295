"""Index and jobs against a simple model, whatever happens in which order, wherever a process dies.

A history is a row of steps by chance: messages die (with and without an id, of equal content), the feed brings letters
late, twice and out of order, people give back, workers die before a statement or around a call of the broker, calls and
answers get lost, strangers take letters away, KMAs report in any order and twice, messages die again. In between
nothing may be said that is not true; when all has come to rest, everything that happened must be known.

A seed is a history: what fails, fails again with it. MA_TEST_HISTORIES=N tries N of them.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from dlq import tasks
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem, ReplayJob
from dlq.models.replay import OPEN_JOBS, UNFINISHED_JOBS
from dlq.replay.jobs import ReplayRefused, give_back_all, give_back_letters
from tests.dlq.letter_world import KEYS, NONE, Death, Trouble, World

HISTORIES = int(os.environ.get("MA_TEST_HISTORIES", "40"))
STEPS = 40


class History:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World()
        self.told: list[str] = []
        self._number = 0

    def happen(self) -> None:
        weights = {
            self.messages_die: 3, self.a_kma_takes: 4, self.reports_arrive: 2, self.the_feed_brings: 4,
            self.the_feed_brings_again: 1, self.a_stranger_takes_a_letter: 1, self.all_are_given_back: 2,
            self.some_are_given_back: 2, self.a_worker_works: 9,
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

    # -- messages -----------------------------------------------------------------------------------------------------

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

    def a_stranger_takes_a_letter(self) -> None:
        queue = f"DLQ.{self.chance.choice(KEYS)}"
        if lying := len(self.world.store.queues[queue].ready):
            self.world.stranger_takes(queue, self.chance.randrange(lying))

    # -- people -------------------------------------------------------------------------------------------------------

    def all_are_given_back(self) -> None:
        setting = self.world.settings[self.chance.choice(KEYS)]
        self._ask(lambda: give_back_all(setting, by=None, now=timezone.now()))

    def some_are_given_back(self) -> None:
        key = self.chance.choice(KEYS)
        dead = list(DeadLetter.objects.filter(queue=f"DLQ.{key}", state=LetterState.DEAD).values_list("pk", flat=True))
        chosen = self._some(dead)
        self._ask(lambda: give_back_letters(self.world.settings[key], chosen, by=None, now=timezone.now()))

    def _ask(self, ask: Callable[[], Any]) -> None:
        """A process of the site; it may die too."""

        def work() -> None:
            with suppress(ReplayRefused):
                ask()

        self.world.process(work, self._trouble(25, 1))

    # -- workers ------------------------------------------------------------------------------------------------------

    def a_worker_works(self) -> None:
        jobs = list(ReplayJob.objects.filter(state__in=OPEN_JOBS).order_by("created_at", "pk"))
        if jobs:
            job = self.chance.choice(jobs)
            self._end_leases()
            self.world.process(lambda: tasks.run_replay(str(job.pk)), self._trouble(90, 12))

    def _end_leases(self) -> None:
        past = timezone.now() - timedelta(seconds=1)
        ReplayJob.objects.filter(lease_until__gt=past).update(lease_until=past)

    # -- what always holds --------------------------------------------------------------------------------------------

    def check(self) -> None:
        truth = self.world.truth
        assert self.world.labels_at_the_broker() == truth.published - truth.ended, "each message in one place"
        for death in _given_back():
            assert death in truth.moved or death in truth.taken, "said to be given back, and was not"
        held = ReplayItem.objects.filter(state__in=[ItemState.PLANNED, ItemState.GIVEN_BACK])
        assert len(set(held.values_list("letter", flat=True))) == held.count(), "one outstanding replay per letter"
        for job in ReplayJob.objects.exclude(state__in=UNFINISHED_JOBS):
            assert not job.items.filter(state=ItemState.PLANNED).exists(), "a job that is over left something undone"
            assert job.total == job.items.count()

    # -- the end ------------------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Nobody dies any more: workers end their jobs, the feed and the reports bring what is left."""
        self.world.arrive_at_feed()
        self.world.feed(list(self.world.unfed.items()))
        for job in ReplayJob.objects.filter(state__in=OPEN_JOBS):
            self._end_leases()
            tasks.run_replay(str(job.pk))
        assert not ReplayJob.objects.filter(state__in=OPEN_JOBS).exists()
        self.world.reports_arrive(self.world.reports)
        assert not self.world.unfed and not self.world.reports

    def everything_is_known(self) -> None:
        truth = self.world.truth
        told = Counter(_given_back())
        # Which of the letters of a slice a stranger took in the moment before its move, nobody can tell.
        told.subtract(death for death in truth.taken if death in told and death not in truth.moved)
        assert +told == Counter(truth.moved.keys()), "each move is told once, and no other"
        for key in KEYS:
            queue = f"DLQ.{key}"
            dead = DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD)
            indexed = set(dead.values_list("queue", "orig_message_id"))
            lying = set(self.world.lying(queue))
            assert lying <= indexed <= lying | truth.taken, "the index is the broker"
        happened = Counter((one.death[0], *_fate(one.label, one.outcome)) for one in truth.returned)
        items = ReplayItem.objects.filter(state=ItemState.GIVEN_BACK)
        items = items.exclude(letter__in=[pk for pk, death in _deaths(items) if death not in truth.moved])
        rows = items.values_list("letter__queue", "letter__body_text", "outcome")
        assert Counter((queue, *_fate(label, outcome)) for queue, label, outcome in rows) == happened


def _fate(label: str, outcome: str) -> tuple[str, str]:
    """Of equal messages nobody can tell whether the one that failed died, or a new one that never came back."""
    again = outcome in ("failed_again", "dead_again")
    return label, "again" if label.startswith("equal") and again else outcome


def _given_back() -> list[Death]:
    return [death for _, death in _deaths(ReplayItem.objects.filter(state=ItemState.GIVEN_BACK))]


def _deaths(items: QuerySet[ReplayItem]) -> list[tuple[int, Death]]:
    """With the row of each letter."""
    rows = items.values_list("letter", "letter__queue", "letter__orig_message_id")
    return [(pk, (queue, number)) for pk, queue, number in rows]


@contextmanager
def _undone_afterwards() -> Iterator[None]:
    """Each history begins with an empty database, and never waits for a disk."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_whatever_happens_nothing_is_lost_doubled_or_said_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlq.replay.jobs.send", lambda *_, **__: True)
    monkeypatch.setattr("dlq.feed.PAUSE", 0.0)
    for seed in range(HISTORIES):
        with _undone_afterwards():
            history = History(seed)
            monkeypatch.setattr(tasks, "letter_queues", lambda world=history.world: world.queues)
            try:
                history.happen()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, after {history.told}: {error}") from error
