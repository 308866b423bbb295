"""What a pre-flight tells: who goes, who is left out and why, what to think about first."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlq.models import Action, LetterState
from dlq.replay.preflight import rules
from dlq.replay.preflight.rules import (
    CODES,
    Letter,
    Policy,
    PreflightResult,
    ReplayTarget,
    Warning,
    Way,
    judge,
)

GOOD = Letter(1, LetterState.DEAD, 10, "node-1", "orders", "v1:a", "ID:1", 1, "1.0", False)
PLACE = ReplayTarget("orders", "orders", consumers=1, servers=1, versions=frozenset({"1.1"}))
BACK = Policy(Action.GIVE_BACK, node_id="node-1")


def flight(
    *letters: Letter,
    policy: Policy = BACK,
    place: ReplayTarget = PLACE,
    total: int | None = None,
    ladder: bool = False,
    way: Way | None = None,
) -> PreflightResult:
    why = [(letter, policy.why_not(letter)) for letter in letters]
    return judge(why, policy, place, total=total, way=way or Way(ladder))


def codes(found: PreflightResult) -> list[tuple[str, int, int]]:
    return [(warning.code, warning.n, warning.of) for warning in found.warnings]


@pytest.mark.parametrize(
    ("letter", "policy", "why"),
    [
        (GOOD, BACK, ""),
        (GOOD._replace(state=LetterState.GONE), BACK, "gone"),
        (GOOD._replace(state=LetterState.GIVEN_BACK, outstanding=True), BACK, "gone"),
        (GOOD._replace(number=-7), BACK, "no_id"),
        (GOOD._replace(node_id="node-2"), BACK, "other_broker"),
        (GOOD._replace(node_id="node-2"), replace(BACK, node_id=""), ""),
        (GOOD._replace(outstanding=True), BACK, "outstanding"),
        (GOOD, replace(BACK, muted_fingerprints=frozenset({"v1:a"})), "muted"),
        (GOOD._replace(fingerprint=""), replace(BACK, muted_fingerprints=frozenset({"v1:a"})), ""),
        (GOOD, replace(BACK, muted_messages=frozenset({"ID:1"})), "muted"),
        (GOOD, replace(BACK, muted_all=True), "muted"),
        (GOOD, replace(BACK, action=Action.DISCARD, muted_all=True), ""),
        (GOOD, replace(BACK, one=True, muted_all=True), ""),
        (GOOD, replace(BACK, returns={("orders", "ID:1"): 6}), "given_back_often"),
        (GOOD, replace(BACK, returns={("orders", "ID:1"): 5}), ""),
        (GOOD, replace(BACK, action=Action.REDIRECT, returns={("orders", "ID:1"): 6}), ""),
        (GOOD, replace(BACK, action=Action.PUT_BACK, copied=frozenset({1})), "edited_copy_sent"),
        (GOOD, replace(BACK, action=Action.PUT_BACK, copied=frozenset({2})), ""),
        (GOOD, replace(BACK, action=Action.DISCARD, copied=frozenset({1})), ""),
    ],
)
def test_a_letter_is_left_out_for_one_reason(letter: Letter, policy: Policy, why: str) -> None:
    assert policy.why_not(letter) == why


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (PLACE, []),
        (replace(PLACE, enabled=False, consumers=0), [("disabled", 0, 0)]),
        (replace(PLACE, enabled=False, tripped=True, consumers=0), [("tripped", 0, 0)]),
        (replace(PLACE, enabled=False, tripped=True, consumers=2), [("tripped", 0, 0), ("stopping", 2, 0)]),
        (replace(PLACE, enabled=False, consumers=1), [("disabled", 0, 0), ("stopping", 1, 0)]),
        (replace(PLACE, enabled=False, consumers=None), [("disabled", 0, 0), ("stopping_unknown", 0, 0)]),
        (replace(PLACE, consumers=0), [("no_consumer", 0, 0)]),
        (replace(PLACE, consumers=None), []),
        (replace(PLACE, servers=0), []),
        (replace(PLACE, consumers=None, servers=0), [("no_consumer", 0, 0)]),
        (replace(PLACE, versions=frozenset({"1.0"})), [("same_version", 1, 2)]),
        (replace(PLACE, versions=frozenset({"1.0", "1.1"})), []),
        (replace(PLACE, versions=frozenset({""})), []),  # nothing is known of it
        (replace(PLACE, ordered=True, newer=12), [("ordered", 12, 0)]),
    ],
)
def test_the_place_is_warned_of(place: ReplayTarget, found: list[tuple[str, int, int]]) -> None:
    assert codes(flight(GOOD, GOOD._replace(pk=2, agent_version=""), place=place)) == found


@pytest.mark.parametrize(
    ("place", "way", "found"),
    [
        (PLACE, Way(in_order="behind"), []),
        (replace(PLACE, ordered=True, newer=3), Way(in_order="behind"), [("ordered", 3, 0)]),
        (PLACE, Way(in_order="ahead", hold_minutes=60), [("hold", 60, 0)]),
        (replace(PLACE, newer=3), Way(in_order="ahead", hold_minutes=5), [("hold", 5, 3)]),
        # In their order, so nobody acknowledges that they are out of it.
        (replace(PLACE, ordered=True, newer=3), Way(in_order="ahead", hold_minutes=5), [("hold", 5, 3)]),
        (replace(PLACE, held=True), Way(), [("held_by_another", 0, 0)]),
        (
            replace(PLACE, held=True),
            Way(in_order="ahead", hold_minutes=1),
            [("hold", 1, 0), ("held_by_another", 0, 0)],
        ),
    ],
)
def test_who_goes_ahead_holds_the_subscription_and_who_does_not_is_out_of_an_order(
    place: ReplayTarget, way: Way, found: list[tuple[str, int, int]]
) -> None:
    assert codes(flight(GOOD, place=place, way=way)) == found


def test_what_goes_into_the_bin_holds_nothing() -> None:
    held = replace(PLACE, held=True)
    assert codes(flight(GOOD, policy=Policy(Action.DISCARD), place=held, way=Way(in_order="ahead"))) == []


def test_without_its_subscription_nothing_goes_and_nothing_is_warned_of() -> None:
    found = flight(GOOD, GOOD._replace(pk=2, number=-1), place=replace(PLACE, exists=False, enabled=False))
    assert (found.going, found.skipped, found.warnings) == (0, {"no_subscription": 1, "no_id": 1}, ())


def kinds(*sizes: int, unknown: int = 0) -> list[Letter]:
    """So many letters of each of several fingerprints, and of none."""
    names = [f"v1:{index}" for index, size in enumerate(sizes) for _ in range(size)] + [""] * unknown
    return [GOOD._replace(pk=pk, fingerprint=name) for pk, name in enumerate(names)]


@pytest.mark.parametrize(
    ("letters", "found"),
    [
        (kinds(25), [("ladder_advised", 25, 25)]),
        (kinds(24), []),
        (kinds(25, 24, 1), [("ladder_advised", 25, 50)]),
        (kinds(25, 25), [("ladder_advised", 25, 50)]),
        (kinds(25, 24, 2), []),  # less than half
        (kinds(unknown=40), []),  # nobody knows whether they are of one kind
        (kinds(25, unknown=25), [("ladder_advised", 25, 50)]),
    ],
)
def test_many_of_one_kind_are_better_tried_by_a_ladder(
    letters: list[Letter], found: list[tuple[str, int, int]]
) -> None:
    assert codes(flight(*letters)) == found
    assert codes(flight(*letters, ladder=True)) == []
    assert codes(judge([(letter, "") for letter in letters], BACK, PLACE, total=None)) == found


@pytest.mark.parametrize(
    ("policy", "advised"),
    [
        (BACK, True),
        (replace(BACK, one=True), True),
        (replace(BACK, action=Action.REDIRECT), True),
        (replace(BACK, action=Action.EDIT), True),
        (replace(BACK, action=Action.EDIT, one=True), False),  # one text for one letter
    ],
)
def test_a_ladder_is_advised_to_whoever_can_use_one(policy: Policy, advised: bool) -> None:
    assert codes(flight(*kinds(25), policy=policy)) == [("ladder_advised", 25, 25)] * advised


@pytest.mark.parametrize("action", [Action.GIVE_BACK, Action.REDIRECT, Action.EDIT])
def test_whatever_comes_before_an_agent_is_warned_of_its_place(action: Action) -> None:
    place = replace(PLACE, enabled=False, consumers=0, ordered=True, versions=frozenset({"1.0"}))
    same = (
        [("same_version", 1, 1)] if action == Action.GIVE_BACK else []
    )  # elsewhere, or another text: no repetition
    assert codes(flight(GOOD, policy=replace(BACK, action=action), place=place)) == [
        ("disabled", 0, 0),
        *same,
        ("ordered", 0, 0),
    ]


def test_a_large_number_is_typed() -> None:
    found = flight(*(GOOD._replace(pk=pk) for pk in range(1001)))
    assert (found.going, found.typed) == (1001, True)
    assert not flight(*(GOOD._replace(pk=pk) for pk in range(1000))).typed


def test_where_more_were_not_looked_at_the_number_is_typed() -> None:
    assert flight(GOOD, total=2).typed and not flight(GOOD._replace(number=-1), total=2).typed


def test_some_letters_are_named_the_newest_first() -> None:
    going, stay = kinds(21), [GOOD._replace(pk=pk, number=-1) for pk in range(100, 121)]
    found = flight(*going, *stay, ladder=True)
    assert (found.first, found.examples) == (tuple(range(20)), {"no_id": tuple(range(100, 120))})


def test_what_was_counted_before_may_be_less_than_what_is_looked_at_now() -> None:
    found = flight(GOOD, GOOD._replace(pk=2), total=1)
    assert (found.total, found.going, found.about) == (2, 2, True)
    assert flight(total=7) == PreflightResult(seen=0, total=7, going=0, about=True)


def test_of_a_place_that_nothing_is_known_of_nothing_is_expected() -> None:
    assert ReplayTarget("q") == ReplayTarget(
        "q", "", True, True, False, None, 0, frozenset(), False, None, (), False
    )
    assert codes(flight(GOOD, place=ReplayTarget("q"))) == [("no_consumer", 0, 0)]
    assert Warning("ordered") == Warning("ordered", n=0, of=0)


def test_every_warning_has_its_word_for_acknowledging() -> None:
    assert CODES == (
        "other_destination", "disabled", "tripped", "stopping", "stopping_unknown", "no_consumer",
        "same_version", "ordered", "hold", "held_by_another", "ladder_advised", "muted", "given_back_often",
        "edited_copy_sent",
    )  # fmt: skip


def test_what_one_person_names_alone_is_warned_of_instead_of_left_out() -> None:
    policy = replace(BACK, one=True, muted_all=True)
    found = flight(GOOD, policy=policy)
    assert (found.going, codes(found)) == (1, [("muted", 1, 1)])
    assert found.missing(()) and not found.missing(["muted", "disabled"])


def test_what_goes_into_the_bin_is_not_judged_by_where_it_came_from() -> None:
    off = replace(PLACE, enabled=False, ordered=True)
    assert codes(flight(GOOD, policy=Policy(Action.DISCARD), place=off)) == []


def test_of_more_than_were_looked_at_no_number_is_guessed() -> None:
    found = flight(GOOD, GOOD._replace(pk=2, number=-1), total=50_000)
    assert (found.about, found.total, found.going, found.seen, found.typed) == (True, 50_000, 1, 2, True)
    assert found.at_most == 50_000


def test_of_those_that_were_all_looked_at_no_more_can_go_than_go() -> None:
    found = flight(GOOD, GOOD._replace(pk=2, number=-1), total=None)
    assert (found.about, found.total, found.going, found.at_most) == (False, 2, 1, 1)


@given(st.lists(st.builds(
    Letter, st.integers(1, 10**9), st.sampled_from(LetterState.values), st.integers(-5, 5),
    st.sampled_from(["node-1", "node-2"]), st.just("orders"), st.sampled_from(["", "v1:a"]),
    st.sampled_from(["", "ID:1"]), st.integers(1, 9), st.sampled_from(["", "1.0"]), st.booleans(),
), max_size=30))  # fmt: skip
def test_every_letter_either_goes_or_is_left_out(letters: list[Letter]) -> None:
    found = flight(*letters, policy=replace(BACK, muted_fingerprints=frozenset({"v1:a"})))
    assert found.going + sum(found.skipped.values()) == found.seen == found.total == len(letters)


def test_while_nobody_knows_the_broker_letters_of_any_go() -> None:
    nodes = ("node-1", "node-2", "mutant")
    assert [Policy(Action.GIVE_BACK).why_not(GOOD._replace(node_id=node)) for node in nodes] == ["", "", ""]


def test_an_id_may_be_0_and_what_never_came_back_did_not_come_back_too_often() -> None:
    assert BACK.why_not(GOOD._replace(number=0)) == ""
    assert replace(BACK, often=0).why_not(GOOD) == ""


def test_what_rows_and_clients_keep_has_the_same_words_for_ever() -> None:
    why = (rules.GONE, rules.HELD, rules.OUTSTANDING, rules.MUTED, rules.OFTEN, rules.COPY_SENT, rules.NO_ID)
    assert why == ("gone", "held", "outstanding", "muted", "given_back_often", "edited_copy_sent", "no_id")
    assert (rules.OTHER_BROKER, rules.NO_SUBSCRIPTION) == ("other_broker", "no_subscription")
