"""When a ladder goes on, waits or stops: of the breaker only what was reported after the outcomes of the
step."""

from datetime import UTC, datetime, timedelta

import pytest

from dlq.replay.rules.ladder import (
    Decision,
    Next,
    Outcomes,
    Streak,
    Surroundings,
    breaker_moved,
    next_step,
    position_in_ladder,
    step_size,
    unheard,
)

KNOWN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AFTER = KNOWN + timedelta(seconds=1.5)
GOOD = Outcomes(handled=5)
GO = Next(Decision.GO, "")


def test_each_step_is_five_times_as_large_as_the_one_before() -> None:
    assert [step_size(step) for step in range(5)] == [1, 5, 25, 125, 625]


def test_the_next_letter_fills_its_step_before_another_begins() -> None:
    """Steps of 1, 5 and 25 letters: where the next one goes, and how many the step takes still."""
    expected = (
        [(0, 1)]
        + [(1, room) for room in range(5, 0, -1)]
        + [(2, room) for room in range(25, 0, -1)]
        + [(3, 125)]
    )
    assert [position_in_ladder(planned) for planned in range(32)] == expected


def test_each_letter_that_was_moved_has_one_outcome_or_none_yet() -> None:
    assert Outcomes(handled=1, failed=10, open=100, unknown=1000).moved == 1111
    assert Outcomes() == Outcomes(handled=0, failed=0, open=0, unknown=0)


@pytest.mark.parametrize(
    ("handled", "bad", "percent", "stops"),
    [
        (9, 1, 10, False),
        (8, 1, 10, True),
        (895, 100, 10, True),
        (0, 1, 100, False),
        (5, 0, 0, False),
        (999, 1, 0, True),
    ],
)
def test_a_ladder_stops_above_its_percentage_of_the_letters_of_a_step(
    handled: int, bad: int, percent: int, stops: bool
) -> None:
    """Of what nobody has heard of nobody can say that it went well: it counts as failed, under a word of its
    own."""
    failing, unknown = Outcomes(handled=handled, failed=bad), Outcomes(handled=handled, unknown=bad)
    assert next_step(failing, percent, Surroundings()) == (Next(Decision.STOP, "failing") if stops else GO)
    assert next_step(unknown, percent, Surroundings()) == (Next(Decision.STOP, "unknown") if stops else GO)


def test_failed_and_unknown_letters_add_up() -> None:
    assert next_step(Outcomes(handled=8, failed=1, unknown=1), 10, Surroundings()) == Next(
        Decision.STOP, "unknown"
    )


@pytest.mark.parametrize(
    ("streak", "moved"),
    [
        (Streak(1, 7, AFTER), False),
        (Streak(1, 9, AFTER), True),
        (Streak(1, 8, AFTER), False),
        (Streak(1, 100, KNOWN), False),  # said before the outcomes were here
        (Streak(1, 100, KNOWN + timedelta(seconds=1)), False),  # it may have been on its way
        (Streak(1, 100, None), False),
        (Streak(2, 2, AFTER), True),  # it began after the step
        (Streak(2, 1, AFTER), False),
        (Streak(2, 4, AFTER, began=4), False),  # with what the run before it had counted
        (Streak(2, 6, AFTER, began=4), True),
    ],
)
def test_only_what_a_run_counted_since_the_step_began_and_said_after_its_outcomes_moves(
    streak: Streak, moved: bool
) -> None:
    assert breaker_moved({1: 7}, [streak], KNOWN) is moved


def test_one_run_that_fails_is_enough_though_another_one_failed_more_before() -> None:
    assert breaker_moved({1: 9, 2: 0}, [Streak(1, 9, AFTER), Streak(2, 2, AFTER)], KNOWN)


@pytest.mark.parametrize(
    ("heard_at", "now", "waits"),
    [
        (KNOWN, AFTER, True),
        (None, AFTER, True),
        (AFTER, AFTER, False),
        (KNOWN, KNOWN + timedelta(seconds=9.5), True),
        (KNOWN, KNOWN + timedelta(seconds=10), False),
    ],
)
def test_a_step_waits_for_a_heartbeat_for_seconds_only(
    heard_at: datetime | None, now: datetime, waits: bool
) -> None:
    assert unheard([Streak(1, 0, heard_at)], KNOWN, now) is waits
    assert unheard([], KNOWN, now) is False


@pytest.mark.parametrize(
    ("outcomes", "around", "found"),
    [
        (GOOD, Surroundings(), GO),
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
