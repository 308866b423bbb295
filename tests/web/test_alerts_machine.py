"""Whatever happens in whatever order: what the engine promises always holds.

A hypothesis state machine over the real rows: values rise and fall or are unknown, time passes, people snooze
and close, beats die before the commit, senders die while they send, addresses do not answer. After each step
the promises are looked at.
"""

from collections import Counter
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from agents.models import Pool
from alerts import operations, recording
from alerts.models import Alert, AlertTransition, Notice, NoticeTarget
from alerts.notices import delivery
from alerts.notices.delivery import send_due
from alerts.notices.http import Undelivered
from alerts.rules import SAME
from console.operations.refusals import Refused
from tests.web.alerts import LIMITS, heat
from tests.web.rows import NOW

pytestmark = pytest.mark.both_databases

SUBJECTS = ("oven", "stove")
SECOND = timedelta(seconds=1)
subjects = st.sampled_from(SUBJECTS)


class Killed(BaseException):
    """The process is gone at once."""


class Alerting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._rows = ExitStack()
        self._rows.enter_context(transaction.atomic())
        self.now = NOW
        self.arrived: Counter[tuple[int, int | None]] = Counter()
        self.killed_after: set[tuple[int, int | None]] = set()
        self.looked_up_to = 0
        # Since when each has been at or above the upper bound, and below the lower one, as every beat saw it.
        self.high: dict[str, datetime] = {}
        self.low: dict[str, datetime] = {}

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self._rows.close()

    @initialize()
    def make(self) -> None:
        self.person = User.objects.create_user("somebody")
        pool = Pool.objects.create(name="demo")
        for number in range(2):
            NoticeTarget.objects.create(
                pool=pool, channel="webhook", address=f"http://{number}.example/", secret="s"
            )
        self.oven = self._rows.enter_context(heat(pool))
        self.oven.values = dict.fromkeys(SUBJECTS, 0.0)

    @rule(
        subject=subjects,
        value=st.sampled_from((0.0, 59.0, 60.0, 79.0, 80.0, 95.0, 95.0, None)),
        minutes=st.integers(0, 5),
    )
    def it_changes_and_lasts(self, subject: str, value: float | None, minutes: int) -> None:
        """A beat a minute: five of them open and close what is to."""
        self.oven.values[subject] = value
        self.time_passes_with_beats(60, minutes)

    @rule(subject=subjects)
    def it_closes_and_comes_back_at_once(self, subject: str) -> None:
        for value, minutes in ((95.0, 3), (0.0, 4), (95.0, 3)):
            self.it_changes_and_lasts(subject, value, minutes)

    @rule(subject=subjects)
    def the_source_forgets_it(self, subject: str) -> None:
        self.oven.values.pop(subject, None)

    @rule(seconds=st.sampled_from((1, 30, 150, 600, 1200, 7200)), beats=st.integers(1, 4))
    def time_passes_with_beats(self, seconds: int, beats: int) -> None:
        for _ in range(beats):
            self.now += seconds * SECOND
            self._watch()
            self.oven.look(self.now)

    @rule(at=st.sampled_from(("notify", "add_transition")))
    def a_beat_dies_before_it_commits(self, at: str) -> None:
        self._watch()
        before = self._rows_now()

        def die(*_: Any, **__: Any) -> None:
            raise Killed

        with patch.object(recording, at, die):
            try:
                with transaction.atomic():
                    self.oven.look(self.now)
            except Killed:
                assert self._rows_now() == before
                self.high, self.low = dict(self._before[0]), dict(self._before[1])

    @rule(subject=subjects, minutes=st.sampled_from((1, 30, 300)))
    def a_person_snoozes(self, subject: str, minutes: int) -> None:
        for alert in Alert.objects.filter(subject=subject):
            try:
                operations.snooze(alert, self.now + 60 * minutes * SECOND, self.person, "", self.now)
            except Refused:
                assert alert.state not in ("open", "snoozed")

    @rule(subject=subjects)
    def a_person_closes(self, subject: str) -> None:
        for alert in Alert.objects.filter(subject=subject):
            try:
                operations.close(alert, self.person, "", self.now)
            except Refused:
                assert alert.state not in ("open", "snoozed")

    @rule(
        how=st.sampled_from(("well", "well", "refused", "killed before", "killed after")),
        minutes=st.integers(0, 30),
    )
    def a_sender_sends(self, how: str, minutes: int) -> None:
        self.now += 60 * minutes * SECOND

        def deliver(notice: Notice, now: datetime) -> None:
            told = (notice.transition_id or 0, notice.target_id)
            if how == "refused":
                raise Undelivered("answered 500")
            if how == "killed before":
                raise Killed
            self.arrived[told] += 1
            if how == "killed after":
                self.killed_after.add(told)
                raise Killed

        with (
            patch.object(delivery, "deliver", deliver),
            patch.object(delivery, "lock", _free),
            suppress(Killed),
        ):
            send_due(self.now)

    def _watch(self) -> None:
        """What a beat sees now, remembered as simply as can be."""
        self._before = (dict(self.high), dict(self.low))
        for subject in SUBJECTS:
            value = self.oven.values.get(subject, 0.0)
            if value is None:
                continue
            if value >= LIMITS.upper:
                self.high.setdefault(subject, self.now)
            else:
                self.high.pop(subject, None)
            if value < LIMITS.lower:
                self.low.setdefault(subject, self.now)
            else:
                self.low.pop(subject, None)

    def _rows_now(self) -> tuple[int, int, int]:
        return Alert.objects.count(), AlertTransition.objects.count(), Notice.objects.count()

    @invariant()
    def there_are_never_two_open_alerts_of_one_cause(self) -> None:
        doubled = (
            Alert.objects.exclude(state="closed").values("subject").annotate(n=Count("pk")).filter(n__gt=1)
        )
        assert not doubled

    @invariant()
    def every_transition_has_at_most_one_notice_for_a_target(self) -> None:
        told = Notice.objects.values("transition", "target").annotate(n=Count("pk")).filter(n__gt=1)
        assert not told

    @invariant()
    def each_arrives_at_most_once_but_where_the_sender_died_after_it(self) -> None:
        assert {told for told, times in self.arrived.items() if times > 1} <= self.killed_after

    @invariant()
    def an_alert_is_as_its_last_transition_says(self) -> None:
        states = {"opened": "open", "repeated": "open", "snoozed": "snoozed", "closed": "closed"}
        for alert in Alert.objects.exclude(state="calm"):
            last = alert.transitions.order_by("-pk").first()
            assert last is not None
            if last.step == "reopened":
                assert alert.state in ("open", "snoozed")
            else:
                assert alert.state == states[last.step]

    @invariant()
    def opening_and_closing_alternate(self) -> None:
        for alert in Alert.objects.exclude(state="calm"):
            steps = list(alert.transitions.order_by("pk").values_list("step", flat=True))
            turns = [step for step in steps if step in ("opened", "reopened", "closed")]
            wanted = ["opened", *["closed", "reopened"] * len(turns)]
            assert turns == wanted[: len(turns)]

    @invariant()
    def nothing_opens_or_closes_by_itself_before_its_time(self) -> None:
        """Each is looked at right after the step that made it: later ones of that instant forget what it
        rests on."""
        new = AlertTransition.objects.filter(pk__gt=self.looked_up_to, at=self.now, by=None)
        fresh = list(new.select_related("alert"))
        self.looked_up_to = max(AlertTransition.objects.values_list("pk", flat=True), default=0)
        for row in fresh:
            since = {"opened": self.high, "reopened": self.high, "closed": self.low}.get(row.step)
            needed = LIMITS.close_after if row.step == "closed" else LIMITS.open_after
            if since is not None:
                assert row.alert.subject in since
                assert self.now - since[row.alert.subject] >= needed

    @invariant()
    def no_all_clear_arrives_of_what_came_back_at_once(self) -> None:
        for row in AlertTransition.objects.filter(step="reopened"):
            closing = row.alert.transitions.filter(step="closed", pk__lt=row.pk).order_by("-pk").first()
            assert closing is not None and row.at - closing.at < SAME
            assert all(transition != closing.pk for transition, _target in self.arrived)


class _Free:
    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        """Nothing to give back."""


def _free(*_: object) -> _Free:
    """A process that was killed leaves its lock; here nobody waits until it runs out."""
    return _Free()


@pytest.mark.process  # as dear: many histories
@pytest.mark.django_db(transaction=True)
def test_the_engine_keeps_its_promises_whatever_happens() -> None:
    run_state_machine_as_test(
        Alerting,
        settings=settings(
            max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
