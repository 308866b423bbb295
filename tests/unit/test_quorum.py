"""When what was interrupted switches a setting off."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.breaker.rules import Other, QuorumFacts, Rule, decide_quorum, live

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LONG_AGO, JUST_NOW = NOW - timedelta(seconds=60), NOW - timedelta(seconds=59.5)
NAMES = st.lists(st.sampled_from(["srv-1", "srv-2", "srv-3", "srv-4"]), unique=True).map(tuple)


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        (QuorumFacts(many=False), Rule.NOTHING),
        (QuorumFacts(many=False, interrupted=("a",), live=("b",)), Rule.ANY),
        (QuorumFacts(many=True, interrupted=("a",), live=("b",)), Rule.NOT_ENOUGH),
        (QuorumFacts(many=True, interrupted=("a", "b"), live=("c",)), Rule.TWO_SERVERS),
        (QuorumFacts(many=True, interrupted=("a",)), Rule.ALL_THERE_ARE),
        (QuorumFacts(many=True, interrupted=("a",), heard=False), Rule.NOT_ENOUGH),
        (QuorumFacts(many=True, trial=True, interrupted=("a",), live=("b", "c")), Rule.TRIAL),
        (QuorumFacts(many=True, trial=True, live=("b",)), Rule.NOTHING),
    ],
)
def test_the_rule(facts: QuorumFacts, rule: Rule) -> None:
    decided = decide_quorum(facts)
    assert (decided.rule, decided.trips) == (rule, rule not in (Rule.NOTHING, Rule.NOT_ENOUGH))


def test_a_server_that_is_named_twice_is_one() -> None:
    assert not decide_quorum(QuorumFacts(many=True, interrupted=("a", "a"), live=("b",))).trips


def test_the_explanation_says_who_and_how_many_it_takes() -> None:
    decided = decide_quorum(QuorumFacts(many=True, interrupted=("b",), live=("c", "a")))
    assert decided.as_json() == {"needed": 2, "interrupted": ["b"], "live": ["a", "c"], "rule": "not_enough"}


@pytest.mark.parametrize(("many", "trial", "needed"), [(True, False, 2), (True, True, 1), (False, False, 1)])
def test_only_a_pool_whose_servers_work_at_once_needs_two_that_give_up(
    many: bool, trial: bool, needed: int
) -> None:
    assert decide_quorum(QuorumFacts(many, trial, interrupted=("b",))).needed == needed


def test_the_words_of_the_rule_are_those_that_are_stored_with_a_trip() -> None:
    assert [rule.value for rule in Rule] == [
        "nothing",
        "any",
        "trial",
        "two_servers",
        "all_there_are",
        "not_enough",
    ]


@given(st.booleans(), st.booleans(), NAMES, NAMES, st.booleans())
def test_one_more_that_gives_up_never_keeps_a_setting_on(
    many: bool, trial: bool, interrupted: tuple[str, ...], live: tuple[str, ...], heard: bool
) -> None:
    before = QuorumFacts(many, trial, interrupted, live, heard)
    for name in live:
        after = QuorumFacts(
            many, trial, (*interrupted, name), tuple(other for other in live if other != name), heard
        )
        assert decide_quorum(after).trips >= decide_quorum(before).trips


@given(st.booleans(), st.booleans(), NAMES, NAMES, st.booleans())
def test_many_is_switched_off_by_two_servers_or_by_all_there_are(
    many: bool, trial: bool, interrupted: tuple[str, ...], others: tuple[str, ...], heard: bool
) -> None:
    live = tuple(name for name in others if name not in interrupted)
    alone = bool(interrupted) and not live and heard
    one_is_enough = bool(interrupted) and (trial or not many)
    found = decide_quorum(QuorumFacts(many, trial, interrupted, live, heard))
    assert found.trips is (one_is_enough or len(interrupted) >= 2 or alone)


@pytest.mark.parametrize(
    ("other", "given_up_at", "counts"),
    [
        (Other("b", JUST_NOW, runs=True), LONG_AGO, True),
        (Other("b", JUST_NOW), LONG_AGO, True),  # in service: it is given a run, or has ended its own
        (Other("b", LONG_AGO, runs=True), JUST_NOW, False),
        (Other("b", None), JUST_NOW, False),
        (
            Other("b", NOW, runs=True, off_duty=True, duty_since=LONG_AGO),
            LONG_AGO,
            True,
        ),  # cordoned: it goes on
        (Other("b", NOW, off_duty=True, duty_since=LONG_AGO), JUST_NOW, False),
        (Other("b", NOW, off_duty=True), JUST_NOW, False),  # nobody knows since when
        (Other("b", NOW, off_duty=True, duty_since=JUST_NOW), LONG_AGO, True),
        (Other("b", NOW, offers=False, runs=True), LONG_AGO, False),
        (Other("b", NOW, offers=False), JUST_NOW, True),
        (Other("b", NOW, in_pool=False, runs=True), LONG_AGO, False),
        (Other("b", NOW, in_pool=False), JUST_NOW, True),
        (Other("b", NOW, in_pool=False), None, True),
    ],
)
def test_who_counts_as_another_live_server(other: Other, given_up_at: datetime | None, counts: bool) -> None:
    assert live([other], given_up_at, NOW) == (("b",) if counts else ())
