"""When an alert opens, is repeated and closes, as tables; and what holds whatever is observed, by
hypothesis."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.rules import (
    AlertDecision,
    AlertStep,
    Phase,
    State,
    Thresholds,
    closed_by_person,
    decide_alert,
    snoozed,
)

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LIMITS = Thresholds(80.0, 60.0, open_after=2 * MINUTE, close_after=3 * MINUTE)

CALM = State()


def told(
    *values: float | None, state: State = CALM, limits: Thresholds = LIMITS
) -> list[tuple[int, AlertStep]]:
    """(minute, step) of what is decided where one value comes each minute."""
    steps = []
    for minute, value in enumerate(values):
        decision = decide_alert(state, value, AT + minute * MINUTE, limits)
        state = decision.state
        if decision.step:
            steps.append((minute, decision.step))
    return steps


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ((10, 10, 10), []),
        ((80, 80, 80), [(2, AlertStep.OPENED)]),
        ((79.9, 79.9, 79.9), []),
        ((90, 90, 70, 90, 90), []),
        ((90, 90, 90, 70, 61, 70, 70, 70), [(2, AlertStep.OPENED)]),
        ((90, 90, 90, 59, 59, 59), [(2, AlertStep.OPENED)]),
        ((90, 90, 90, 59, 59, 59, 59), [(2, AlertStep.OPENED), (6, AlertStep.CLOSED)]),
        ((90, 90, 90, 59, 59, 60, 59, 59, 59), [(2, AlertStep.OPENED)]),
        ((90, 90, 90, None, None, None, None, None), [(2, AlertStep.OPENED)]),
        ((None, None, None, None), []),
        ((90, None, 90), [(2, AlertStep.OPENED)]),
    ],
)
def test_it_opens_at_the_upper_bound_and_closes_below_the_lower_one(
    values: tuple[float | None, ...], steps: list[tuple[int, AlertStep]]
) -> None:
    assert told(*values) == steps


def test_without_a_time_to_wait_the_first_value_opens() -> None:
    assert told(1, limits=Thresholds(1, 1)) == [(0, AlertStep.OPENED)]
    assert told(1, 0, limits=Thresholds(1, 1)) == [(0, AlertStep.OPENED), (1, AlertStep.CLOSED)]


def test_reminders_come_after_growing_pauses() -> None:
    state, at, reminded = State(), AT, []
    for _ in range(80 * 60):
        decision = decide_alert(state, 90, at, LIMITS)
        state, at = decision.state, at + MINUTE
        if decision.step is AlertStep.REPEATED:
            reminded.append(at)
    pauses = [later - earlier for earlier, later in pairwise(reminded)]
    hour = timedelta(hours=1)
    assert reminded[0] - AT == hour + 3 * MINUTE, "an hour after it opened"
    assert pauses == [4 * hour, 24 * hour, 24 * hour, 24 * hour]
    assert told(*[90] * 300, limits=replace(LIMITS, reminders=())) == [(2, AlertStep.OPENED)]


def test_what_comes_back_at_once_is_the_same_alert_and_not_told_anew() -> None:
    values = [90, 90, 90, 0, 0, 0, 0, 90, 90, 90]
    assert told(*values) == [(2, AlertStep.OPENED), (6, AlertStep.CLOSED), (9, AlertStep.REOPENED)]
    later = [90, 90, 90, 0, 0, 0, 0, *[0] * 15, 90, 90, 90]
    assert told(*later)[2:] == [(24, AlertStep.OPENED)]


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (State(Phase.CLOSED, closed_at=AT - 14.9 * MINUTE, repeats=2), State(Phase.OPEN, repeats=2)),
        (
            State(Phase.CLOSED, closed_at=AT - MINUTE, snoozed_until=AT + MINUTE),
            State(Phase.SNOOZED, snoozed_until=AT + MINUTE),
        ),
        (State(Phase.CLOSED, closed_at=AT - MINUTE, snoozed_until=AT), State(Phase.OPEN, snoozed_until=AT)),
    ],
)
def test_it_goes_on_as_it_was_where_it_closed_by_itself_a_moment_ago(state: State, found: State) -> None:
    since = AT - 2 * MINUTE
    decision = decide_alert(replace(state, above_since=since), 90, AT, LIMITS)
    assert decision == AlertDecision(replace(found, above_since=since), AlertStep.REOPENED)


def test_what_a_person_closed_and_what_comes_back_then_is_another_alert() -> None:
    opened = State(Phase.OPEN, above_since=AT, snoozed_until=AT + MINUTE, repeats=2, repeat_at=AT)
    closed = closed_by_person(opened, AT)
    assert closed == State(
        Phase.CLOSED, above_since=AT, closed_at=AT, by_hand=True, held=True, repeats=2, repeat_at=AT
    )
    gone = replace(closed, held=False, above_since=AT)
    decision = decide_alert(gone, 90, AT + 2 * MINUTE, LIMITS)
    assert (decision.step, decision.is_new) == (AlertStep.OPENED, True)


def test_an_alert_that_opens_has_nothing_of_the_time_before_and_is_due_in_an_hour() -> None:
    state = State(above_since=AT, below_since=None, repeats=7)
    now = AT + 2 * MINUTE
    opened = State(Phase.OPEN, above_since=AT, repeat_at=now + 60 * MINUTE)
    assert decide_alert(state, 90, now, LIMITS) == AlertDecision(opened, AlertStep.OPENED, is_new=False)
    reminded = replace(opened, repeats=1, repeat_at=now + 300 * MINUTE)
    assert decide_alert(opened, 90, now + 60 * MINUTE, LIMITS) == AlertDecision(reminded, AlertStep.REPEATED)


def test_a_snooze_ends_with_a_reminder_and_without_its_time_it_goes_on() -> None:
    asleep = State(Phase.SNOOZED, snoozed_until=AT, above_since=AT, repeat_at=AT - MINUTE)
    awake = State(Phase.OPEN, above_since=AT, repeats=1, repeat_at=AT + 240 * MINUTE)
    assert decide_alert(asleep, 90, AT, LIMITS) == AlertDecision(awake, AlertStep.REPEATED)
    endless = replace(asleep, snoozed_until=None)
    assert decide_alert(endless, 90, AT, LIMITS) == AlertDecision(endless)


def test_a_snooze_that_ended_while_the_alert_was_closed_brings_no_reminder_early() -> None:
    opened = State(Phase.OPEN, above_since=AT, snoozed_until=AT, repeat_at=AT + 60 * MINUTE)
    assert decide_alert(opened, 90, AT + MINUTE, LIMITS) == AlertDecision(opened)


def test_it_closes_with_the_time_and_nothing_else_changed() -> None:
    opened = State(Phase.OPEN, below_since=AT, repeats=1, repeat_at=AT)
    closed = replace(opened, phase=Phase.CLOSED, closed_at=AT + 3 * MINUTE)
    assert decide_alert(opened, 10, AT + 3 * MINUTE, LIMITS) == AlertDecision(closed, AlertStep.CLOSED)


def test_nothing_is_known_of_what_was_never_seen() -> None:
    assert (
        State(Phase.CALM, None, None, None, by_hand=False, held=False, snoozed_until=None, repeats=0) == CALM
    )
    assert decide_alert(CALM, None, AT, LIMITS) == AlertDecision(CALM, None, is_new=False)


def test_phases_and_steps_have_the_words_that_are_stored() -> None:
    assert [*Phase] == ["calm", "open", "snoozed", "closed"]
    assert [*AlertStep] == ["opened", "repeated", "reopened", "snoozed", "closed"]


def test_a_new_alert_after_a_closed_one_is_another_one() -> None:
    closed = State(
        Phase.CLOSED,
        closed_at=AT - timedelta(minutes=15),
        above_since=AT - 2 * MINUTE,
        repeats=3,
        repeat_at=AT,
    )
    decision = decide_alert(closed, 90, AT, LIMITS)
    assert (decision.step, decision.is_new, decision.state.repeats) == (AlertStep.OPENED, True, 0)


def test_what_is_snoozed_is_not_repeated_and_told_when_the_snooze_is_over() -> None:
    opened = decide_alert(State(above_since=AT - 2 * MINUTE), 90, AT, LIMITS).state
    asleep = snoozed(opened, AT + 180 * MINUTE)
    assert told(*[90] * 200, state=asleep) == [(180, AlertStep.REPEATED)]
    assert told(*[0] * 10, state=asleep) == [(3, AlertStep.CLOSED)]


def test_a_snooze_outlives_a_moment_of_calm() -> None:
    opened = decide_alert(State(above_since=AT - 2 * MINUTE), 90, AT, LIMITS).state
    state = snoozed(opened, AT + 100 * MINUTE)
    for minute, value in enumerate((0, 0, 0, 0, 90, 90, 90)):
        state = decide_alert(state, value, AT + minute * MINUTE, LIMITS).state
    assert (state.phase, state.snoozed_until) == (Phase.SNOOZED, AT + 100 * MINUTE)


def test_what_a_person_closed_stays_closed_until_its_cause_has_gone_once() -> None:
    opened = decide_alert(State(above_since=AT - 2 * MINUTE), 90, AT, LIMITS).state
    closed = closed_by_person(opened, AT)
    assert told(*[90] * 100, state=closed) == []
    assert told(90, 0, 0, 0, 90, 90, 90, state=closed) == []
    # It has gone for the time that closing needs: what comes then is news, however soon.
    assert told(90, 0, 0, 0, 0, 90, 90, 90, state=closed) == [(7, AlertStep.OPENED)]


values = st.one_of(st.none(), st.sampled_from((0.0, 59.9, 60.0, 70.0, 79.9, 80.0, 100.0)))


@given(st.lists(st.tuples(values, st.integers(1, 600)), max_size=60))
def test_whatever_is_observed_it_opens_and_closes_in_turn_and_only_for_a_reason(
    observed: list[tuple[float | None, int]],
) -> None:
    state, now, is_open = State(), AT, False
    high_since: datetime | None = None
    low_since: datetime | None = None
    for value, seconds in observed:
        now += timedelta(seconds=seconds)
        if value is not None:
            high_since = (high_since or now) if value >= LIMITS.upper else None
            low_since = (low_since or now) if value < LIMITS.lower else None
        decision = decide_alert(state, value, now, LIMITS)
        state = decision.state
        if decision.step in (AlertStep.OPENED, AlertStep.REOPENED):
            assert not is_open
            assert high_since is not None and now - high_since >= LIMITS.open_after
            is_open = True
        elif decision.step is AlertStep.CLOSED:
            assert is_open
            assert low_since is not None and now - low_since >= LIMITS.close_after
            is_open = False
        elif decision.step is AlertStep.REPEATED:
            assert is_open
        assert (state.phase is Phase.OPEN) == is_open
        # Nothing is late either.
        assert is_open or high_since is None or now - high_since < LIMITS.open_after
        assert not is_open or low_since is None or now - low_since < LIMITS.close_after


@given(st.lists(st.sampled_from((60.0, 65.0, 79.9)), max_size=40), st.booleans())
def test_between_the_bounds_nothing_flaps(observed: list[float], begins_open: bool) -> None:
    state = State(Phase.OPEN) if begins_open else State()
    assert told(*observed, state=state) == []
