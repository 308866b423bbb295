"""When a ladder goes on, waits or stops: of the breaker only what was reported after the outcomes of the step."""

from datetime import UTC, datetime, timedelta

import pytest

from dlq.replay.ladder import (
    BREAKER_MOVES,
    HEARTBEAT_PATIENCE,
    ON_ITS_WAY,
    Decision,
    Next,
    Outcomes,
    Streak,
    Surroundings,
    breaker_moved,
    next_step,
    unheard,
)

KNOWN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AFTER = KNOWN + ON_ITS_WAY + timedelta(seconds=1)
GOOD = Outcomes(handled=5)


@pytest.mark.parametrize(
    ("streak", "moved"),
    [
        (Streak(1, 7, AFTER), False),
        (Streak(1, 7 + BREAKER_MOVES, AFTER), True),
        (Streak(1, 7 + BREAKER_MOVES - 1, AFTER), False),
        (Streak(1, 100, KNOWN), False),  # said before the outcomes were here
        (Streak(1, 100, KNOWN + ON_ITS_WAY), False),  # it may have been on its way
        (Streak(1, 100, None), False),
        (Streak(2, BREAKER_MOVES, AFTER), True),  # it began after the step
        (Streak(2, 4, AFTER, began=4), False),  # with what the run before it had counted
        (Streak(2, 4 + BREAKER_MOVES, AFTER, began=4), True),
    ],
)
def test_only_what_a_run_counted_since_the_step_began_and_said_after_its_outcomes_moves(
    streak: Streak, moved: bool
) -> None:
    assert breaker_moved({1: 7}, [streak], KNOWN) is moved


def test_one_run_that_fails_is_enough_though_another_one_failed_more_before() -> None:
    assert breaker_moved({1: 9, 2: 0}, [Streak(1, 9, AFTER), Streak(2, BREAKER_MOVES, AFTER)], KNOWN)


@pytest.mark.parametrize(
    ("heard_at", "now", "waits"),
    [
        (KNOWN, AFTER, True),
        (None, AFTER, True),
        (AFTER, AFTER, False),
        (KNOWN, KNOWN + HEARTBEAT_PATIENCE, False),
    ],
)
def test_a_step_waits_for_a_heartbeat_for_seconds_only(heard_at: datetime | None, now: datetime, waits: bool) -> None:
    assert unheard([Streak(1, 0, heard_at)], KNOWN, now) is waits
    assert unheard([], KNOWN, now) is False


@pytest.mark.parametrize(
    ("outcomes", "around", "found"),
    [
        (GOOD, Surroundings(), Next(Decision.GO)),
        (GOOD, Surroundings(tripped=True, unheard=True), Next(Decision.STOP, "tripped")),
        (GOOD, Surroundings(disabled=True, unheard=True), Next(Decision.STOP, "disabled")),
        (Outcomes(handled=4, failed=1), Surroundings(unheard=True), Next(Decision.STOP, "failing")),
        (Outcomes(handled=4, open=1), Surroundings(breaker_moved=True), Next(Decision.WAIT, "outcomes")),
        (GOOD, Surroundings(unheard=True), Next(Decision.WAIT, "heartbeat")),
        (GOOD, Surroundings(breaker_moved=True, unheard=True), Next(Decision.STOP, "breaker")),
    ],
)
def test_what_stops_a_ladder_comes_before_what_it_waits_for(
    outcomes: Outcomes, around: Surroundings, found: Next
) -> None:
    assert next_step(outcomes, 10, around) == found
