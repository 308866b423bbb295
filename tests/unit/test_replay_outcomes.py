"""What became of returned letters, whatever order the facts come in."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlq.outcomes.rules import Death, MessageOutcome, Replayed, Report, outcomes_by_item

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def back(
    item: int,
    number: int,
    minute: float,
    *,
    weak: bool = False,
    died_as: int | None = None,
    confirmed: bool = True,
) -> Replayed:
    return Replayed(item, number, weak, at(minute), died_as, confirmed)


def outcome(found: dict[int, MessageOutcome]) -> dict[int, str]:
    return {item: fate.outcome for item, fate in found.items()}


def test_without_a_fact_everything_waits() -> None:
    assert outcomes_by_item([back(1, 10, 0)], [], []) == {1: MessageOutcome()}


def test_handled_after_failures_is_handled() -> None:
    reports = [Report(11, False, at(1)), Report(11, False, at(2)), Report(11, True, at(3))]
    assert outcomes_by_item([back(1, 10, 0)], reports, []) == {
        1: MessageOutcome("handled", at(3), arrived=True)
    }


def test_a_failure_is_an_outcome_until_more_is_known() -> None:
    given_back, failure = [back(1, 10, 0)], [Report(11, False, at(1))]
    assert outcomes_by_item(given_back, failure, []) == {
        1: MessageOutcome("failed_again", at(1), arrived=True)
    }
    dead = outcomes_by_item(given_back, failure, [Death(7, 20, at(2))])
    assert dead == {1: MessageOutcome("dead_again", at(2), died_as=7, arrived=True)}


def test_a_death_that_the_kma_did_not_report_yet_counts() -> None:
    assert outcome(outcomes_by_item([back(1, 10, 0)], [], [Death(7, 20, at(2))])) == {1: "dead_again"}


def test_the_letter_itself_and_deaths_of_before_are_no_deaths_again() -> None:
    deaths = [Death(1, 10, at(-5)), Death(2, 15, at(-1))]
    assert outcome(outcomes_by_item([back(1, 10, 0)], [], deaths)) == {1: ""}


def test_each_replay_of_one_message_has_its_own_story() -> None:
    """Dead 10 → given back → dead 20 → given back → handled; then a late report of the first return."""
    given_back = [back(1, 10, 0), back(2, 20, 10)]
    deaths = [Death(100, 10, at(-1)), Death(101, 20, at(5))]
    reports = [Report(21, True, at(12)), Report(11, False, at(4))]
    assert outcomes_by_item(given_back, reports, deaths) == {
        1: MessageOutcome("dead_again", at(5), died_as=101, arrived=True),
        2: MessageOutcome("handled", at(12), arrived=True),
    }


def test_a_late_report_of_the_first_return_says_nothing_of_the_second() -> None:
    given_back = [back(1, 10, 0), back(2, 20, 10)]
    deaths = [Death(101, 20, at(5))]
    assert outcome(outcomes_by_item(given_back, [Report(11, False, at(4))], deaths)) == {
        1: "dead_again",
        2: "",
    }


def test_a_report_without_a_letter_id_is_of_the_newest_return_before_it() -> None:
    given_back = [back(1, 10, 0), back(2, 20, 60)]
    assert outcome(outcomes_by_item(given_back, [Report(None, True, at(70))], [])) == {1: "", 2: "handled"}
    assert outcome(outcomes_by_item(given_back, [Report(None, True, at(20))], [])) == {1: "handled", 2: ""}


def test_equal_messages_count_as_many_as_there_are_the_oldest_first() -> None:
    given_back = [back(n, 10 + n, 0, weak=True) for n in range(4)]
    reports = [Report(50, True, at(1)), Report(51, True, at(1)), Report(52, False, at(1))]
    found = outcome(outcomes_by_item(given_back, reports, [Death(9, 60, at(2))]))
    assert found == {0: "handled", 1: "handled", 2: "dead_again", 3: ""}


def test_an_equal_message_that_dies_for_the_first_time_is_no_death_of_a_returned_one() -> None:
    assert outcome(outcomes_by_item([back(1, 10, 0, weak=True)], [], [Death(9, 60, at(2))])) == {1: ""}


def test_a_death_that_was_joined_stays_joined() -> None:
    given_back = [back(1, 10, 0, weak=True, died_as=9), back(2, 11, 0, weak=True)]
    reports = [Report(50, False, at(1)), Report(51, False, at(1))]
    found = outcomes_by_item(given_back, reports, [Death(9, 60, at(2)), Death(8, 61, at(3))])
    assert {item: fate.died_as for item, fate in found.items()} == {1: 9, 2: 8}


def test_of_equal_messages_one_that_was_handled_is_not_the_one_that_died() -> None:
    """Both failed, one died, and which one is known when the other is handled."""
    given_back = [back(1, 10, 0, weak=True, died_as=9), back(2, 11, 0, weak=True)]
    reports = [Report(50, False, at(1)), Report(51, False, at(1)), Report(50, True, at(3))]
    found = outcomes_by_item(given_back, reports, [Death(9, 60, at(2))])
    assert (outcome(found), found[2].died_as) == ({1: "handled", 2: "dead_again"}, 9)


def test_what_was_only_seen_arrived_and_has_no_outcome() -> None:
    assert outcomes_by_item([back(1, 10, 0)], [Report(11, None, at(1))], []) == {
        1: MessageOutcome(arrived=True)
    }


@pytest.mark.parametrize(("minute", "found"), [(-5, "handled"), (-5.5, ""), (-4.5, "handled")])
def test_a_clock_that_is_five_minutes_behind_is_believed(minute: float, found: str) -> None:
    assert outcome(outcomes_by_item([back(1, 10, 0)], [Report(None, True, at(minute))], [])) == {1: found}


def test_a_report_under_the_id_from_before_a_death_is_of_the_return_before_it() -> None:
    """The message had the id 20 when it died again: what is reported of 20 happened to the first return."""
    given_back = [back(1, 10, 0), back(2, 20, 10)]
    assert outcome(outcomes_by_item(given_back, [Report(20, False, at(4))], [])) == {1: "failed_again", 2: ""}


def test_reports_without_an_id_are_of_one_message_each() -> None:
    equal = [back(1, 10, 0, weak=True), back(2, 11, 0, weak=True)]
    reports = [Report(None, True, at(1)), Report(None, True, at(2))]
    assert {item: fate.at for item, fate in outcomes_by_item(equal, reports, []).items()} == {
        1: at(1),
        2: at(2),
    }


@pytest.mark.parametrize(
    ("first", "second", "handled"), [(True, True, 1), (False, True, 2), (False, False, 1)]
)
def test_of_equal_messages_the_oldest_that_certainly_left_was_meant(
    first: bool, second: bool, handled: int
) -> None:
    equal = [back(1, 10, 0, weak=True, confirmed=first), back(2, 11, 0, weak=True, confirmed=second)]
    found = outcome(outcomes_by_item(equal, [Report(50, True, at(1))], []))
    assert found == {1: "", 2: ""} | {handled: "handled"}


def test_a_letter_that_was_taken_left_certainly_unless_said_otherwise() -> None:
    assert Replayed(1, 10, weak=True, at=at(0)) == back(1, 10, 0, weak=True, confirmed=True)


def test_a_death_that_was_joined_stays_joined_though_its_letter_was_handled_or_returned_since() -> None:
    """Where an id names the message nobody took it for another."""
    death = Death(7, 20, at(2))
    assert outcome(outcomes_by_item([back(1, 10, 0, died_as=7)], [Report(11, True, at(1))], [death])) == {
        1: "dead_again"
    }
    later = [back(1, 10, 0, died_as=7), back(2, 19, 1)]
    assert outcome(outcomes_by_item(later, [], [death])) == {1: "dead_again", 2: ""}


def test_a_return_dies_once() -> None:
    deaths = [Death(7, 20, at(2)), Death(8, 30, at(3))]
    assert outcomes_by_item([back(1, 10, 0)], [], deaths)[1].died_as == 7
    assert outcome(outcomes_by_item([back(1, 10, 0, died_as=9)], [], deaths)) == {1: ""}, (
        "its death is known already"
    )


@pytest.mark.parametrize(
    ("number", "minute", "dies"),
    [
        (20, 0, True),  # at the instant of the return
        (11, 5, True),
        (10, 5, False),  # the very death that it was returned from
        (9, 5, False),
        (20, -0.01, False),
    ],
)
def test_a_return_dies_later_and_under_a_larger_id(number: int, minute: float, dies: bool) -> None:
    found = outcome(outcomes_by_item([back(1, 10, 0)], [], [Death(7, number, at(minute))]))
    assert found == {1: "dead_again" if dies else ""}


def test_a_death_under_an_id_below_that_of_the_return_was_before_it() -> None:
    reports = [Report(25, False, at(1))]
    assert outcome(outcomes_by_item([back(1, 10, 0)], reports, [Death(7, 22, at(2))])) == {1: "failed_again"}
    assert outcome(outcomes_by_item([back(1, 10, 0)], reports, [Death(7, 26, at(2))])) == {1: "dead_again"}


def test_of_equal_messages_one_that_failed_and_was_handled_then_did_not_die() -> None:
    reports = [Report(50, False, at(1)), Report(50, True, at(2))]
    assert outcome(outcomes_by_item([back(1, 10, 0, weak=True)], reports, [Death(9, 60, at(3))])) == {
        1: "handled"
    }


kinds = st.sampled_from(["handled", "failed", "dead"])
facts = st.lists(st.tuples(kinds, st.integers(1, 6)), max_size=6, unique_by=lambda fact: fact[1])


@given(facts, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_in_which_facts_arrive_changes_nothing(
    chosen: list[tuple[str, int]], weak: bool, random: Random
) -> None:
    given_back = [back(n, 10 * n, 0, weak=weak) for n in range(1, 4)]
    reports = [Report(10 * n + 5, kind == "handled", at(n)) for kind, n in chosen if kind != "dead"]
    deaths = [Death(n, 10 * n + 7, at(n)) for kind, n in chosen if kind == "dead"]
    expected = outcomes_by_item(given_back, reports, deaths)
    for mixed in (given_back, reports, deaths):
        random.shuffle(mixed)
    assert outcomes_by_item(given_back, reports, deaths) == expected
    joined = [fate.died_as for fate in expected.values() if fate.died_as is not None]
    assert len(joined) == len(set(joined))
