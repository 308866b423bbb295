"""What retention deletes: the table of cases, and the rule against the sentences of the specification."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retention.rules import ActivationFact, Range, Rule, last_finished, nobodys, none_finished, what_goes

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
N, C = 30 * DAY, 90 * DAY


def activation(
    number: int, days_ago: float, lasted: float | None = 1, *, well: bool | None = None
) -> ActivationFact:
    """Started so many days ago; `lasted`: None where it has not ended."""
    start = NOW - days_ago * DAY
    return ActivationFact(number, start, None if lasted is None else start + lasted * DAY, well)


def gone(activations: list[ActivationFact], of: ActivationFact | None, days_ago: float) -> bool:
    found = what_goes(activations, now=NOW, n=N, c=C)
    return any(each.covers(of, NOW - days_ago * DAY) for each in found)


EARLIER = activation(1, 60, well=False)
WELL = activation(2, 40, well=True)
BAD = activation(2, 40, well=False)
GOING_ON = activation(3, 5, None)
UNKNOWN = None


@pytest.mark.parametrize(
    ("case", "activations", "of", "days_ago", "goes"),
    [
        ("last finished well: its own", [EARLIER, WELL], WELL, 40, True),
        ("last finished well: the youngest of its own", [EARLIER, WELL], WELL, 39, True),
        ("last finished well: of one before it", [EARLIER, WELL], EARLIER, 60, True),
        ("with an error: its own", [EARLIER, BAD], BAD, 40, False),
        ("with an error: older than N before its start", [EARLIER, BAD], EARLIER, 70.001, True),
        ("with an error: exactly N before its start", [EARLIER, BAD], EARLIER, 70, False),
        ("with an error: younger than N before its start", [EARLIER, BAD], EARLIER, 69, False),
        ("one in progress after a good one: its own", [WELL, GOING_ON], GOING_ON, 4, False),
        ("one in progress after a good one: a clock far behind", [WELL, GOING_ON], GOING_ON, 400, False),
        ("one in progress after a good one: of the good one", [WELL, GOING_ON], WELL, 40, True),
        ("one in progress after a bad one: its own", [BAD, GOING_ON], GOING_ON, 4, False),
        ("one in progress after a bad one: of the bad one", [BAD, GOING_ON], BAD, 40, False),
        ("one in progress after a bad one: of one long before", [EARLIER, BAD, GOING_ON], EARLIER, 71, True),
        ("a good one before a bad one is not the last", [activation(1, 60, well=True), BAD], BAD, 40, False),
        ("never finished", [GOING_ON], GOING_ON, 4, False),
        ("never finished: older than C", [activation(1, 120, None)], activation(1, 120, None), 90.001, True),
        ("never finished: exactly C", [activation(1, 120, None)], activation(1, 120, None), 90, False),
        ("ASAP that never ends after a good one long ago", [activation(1, 200, well=True), activation(2, 190,
        None)],
         activation(2, 190, None), 100, True),
        ("ASAP that never ends after a good one, young", [activation(1, 200, well=True), activation(2, 190,
        None)],
         activation(2, 190, None), 89, False),
        ("ASAP that goes on, one finished within C", [BAD, activation(3, 120, None)],
         activation(3, 120, None), 110, False),
        ("one that was overtaken and has not ended", [activation(1, 60, None), WELL],
         activation(1, 60, None), 60, False),
        ("one that was overtaken ended within C", [activation(1, 300, 290), activation(2, 200, well=False)],
         activation(2, 200), 190, False),
        ("one ended exactly C ago", [activation(1, 120, 30, well=False)], UNKNOWN, 100, False),
        ("one ended more than C ago", [activation(1, 120, 29.999, well=False)], UNKNOWN, 100, True),
        ("one that ended after a later one", [activation(1, 60, 59, well=False), WELL],
         activation(1, 60, 59, well=False), 20, True),
        ("nobody can tell how it finished", [activation(2, 40, well=None)], activation(2, 40, well=None), 40,
        False),
        ("an activation that the MA does not know, after a good one", [WELL], UNKNOWN, 60, False),
        ("a setting that never ran", [], UNKNOWN, 89, False),
        ("a setting that never ran: older than C", [], UNKNOWN, 91, True),
    ],
)  # fmt: skip
def test_a_protocol_goes_or_stays(
    case: str, activations: list[ActivationFact], of: ActivationFact | None, days_ago: float, goes: bool
) -> None:
    assert gone(activations, of, days_ago) is goes, case


def test_nothing_goes_by_age_where_c_is_off() -> None:
    assert what_goes([activation(1, 400, None)], now=NOW, n=N, c=None) == ()
    assert nobodys(now=NOW, c=None) == ()


def test_what_nobody_can_place_goes_by_age_alone() -> None:
    assert nobodys(now=NOW, c=C) == (Range(Rule.SILENT, None, NOW - C),)


def test_what_ends_after_the_look_stays_until_the_next_one() -> None:
    [range_] = what_goes([WELL, GOING_ON], now=NOW, n=N, c=C)
    assert range_.covers(WELL, NOW) and not range_.covers(replace(GOING_ON, ended_at=NOW), NOW)


@pytest.mark.parametrize(
    ("activations", "c", "alone"),
    [
        ([], None, True),
        ([GOING_ON], C, True),
        ([activation(1, 120, None)], C, True),
        ([BAD], C, False),
        ([activation(1, 200, well=True), activation(2, 190, None)], C, False),
    ],
)
def test_age_alone_decides_where_none_has_finished(
    activations: list[ActivationFact], c: timedelta | None, alone: bool
) -> None:
    assert none_finished(what_goes(activations, now=NOW, n=N, c=c)) is alone


def test_the_sentences_have_the_words_that_deletions_are_stored_with() -> None:
    assert [rule.value for rule in Rule] == ["well", "error", "silent"]


def test_old_rows_share_a_number_and_are_told_apart_by_their_start() -> None:
    old, new = activation(0, 50, well=True), activation(0, 40, well=False)
    assert last_finished([new, old]) == new


INSTANTS = st.integers(-200, 0).map(lambda days: NOW + days * DAY)


@st.composite
def histories(draw: st.DrawFn) -> list[ActivationFact]:
    """Of one setting, in the order of their numbers; starts grow, ends come in any order or not at all."""
    starts = sorted(draw(st.lists(INSTANTS, max_size=6)))
    facts = []
    for number, start in enumerate(starts, start=1):
        lasted = draw(st.none() | st.integers(0, 200))
        end = None if lasted is None else min(NOW, start + lasted * DAY)
        well = None if end is None else draw(st.booleans())
        facts.append(ActivationFact(number, start, end, well))
    return facts


def by_the_sentences(
    history: list[ActivationFact], of: int | None, at: datetime, n: timedelta, c: timedelta | None
) -> bool:
    """The sentences of the specification, read one by one."""
    last = None
    for index, each in enumerate(history):
        if each.ended_at is not None:
            last = index
    if last is not None and of is not None and of <= last and history[of].ended_at is not None:
        if history[last].well:
            return True
        if history[last].started_at - at > n:
            return True
    finished_lately = any(
        each.ended_at is not None and c is not None and NOW - each.ended_at <= c for each in history
    )
    return c is not None and not finished_lately and NOW - at > c


@given(histories(), st.data(), INSTANTS, st.integers(0, 120), st.none() | st.integers(1, 120))
def test_the_rule_is_what_the_sentences_say(
    history: list[ActivationFact], data: st.DataObject, at: datetime, days: int, silent: int | None
) -> None:
    n, c = days * DAY, None if silent is None else silent * DAY
    of = data.draw(st.none() | st.integers(0, len(history) - 1) if history else st.none())
    found = what_goes(data.draw(st.permutations(history)), now=NOW, n=n, c=c)
    fact = None if of is None else history[of]

    assert any(each.covers(fact, at) for each in found) is by_the_sentences(history, of, at, n, c)


@given(histories(), INSTANTS, st.integers(0, 120))
def test_nothing_of_one_that_goes_on_or_came_later_goes_but_by_age(
    history: list[ActivationFact], at: datetime, days: int
) -> None:
    last = last_finished(history)
    for each in what_goes(history, now=NOW, n=days * DAY, c=None):
        assert last is not None
        for other in history:
            if other.ended_at is None or other.place > last.place:
                assert not each.covers(other, at)


@given(histories(), st.integers(0, 120), st.integers(1, 120))
def test_only_the_last_finished_one_matters_and_the_one_that_ended_last(
    history: list[ActivationFact], days: int, silent: int
) -> None:
    last = last_finished(history)
    latest = max(
        (each for each in history if each.ended_at), key=lambda each: each.ended_at or NOW, default=None
    )
    those = [each for each in (last, latest) if each is not None]

    assert what_goes(history, now=NOW, n=days * DAY, c=silent * DAY) == what_goes(
        those, now=NOW, n=days * DAY, c=silent * DAY
    )


@given(histories(), INSTANTS, st.integers(0, 120), st.integers(0, 60))
def test_a_larger_n_never_deletes_more(
    history: list[ActivationFact], at: datetime, days: int, more: int
) -> None:
    less_kept = what_goes(history, now=NOW, n=days * DAY, c=C)
    more_kept = what_goes(history, now=NOW, n=(days + more) * DAY, c=C)
    for each in history:
        if any(found.covers(each, at) for found in more_kept):
            assert any(found.covers(each, at) for found in less_kept)


@given(histories(), INSTANTS)
def test_turning_well_into_error_never_deletes_more(history: list[ActivationFact], at: datetime) -> None:
    worse = [replace(each, well=False) for each in history]
    for of, each in zip(worse, history, strict=True):
        if any(found.covers(of, at) for found in what_goes(worse, now=NOW, n=N, c=C)):
            assert any(found.covers(each, at) for found in what_goes(history, now=NOW, n=N, c=C))
