"""What another limit would have done is what the breaker itself does, fed with one outcome after the other."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from contract.breaker import Counts, TripReason, count, trips
from contract.outcomes import Outcome
from failures.tally import Failure, Tally, Verdict, story
from failures.what_if import Stored, what_if

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ONE, TWO = UUID(int=1), UUID(int=2)


def failure(number: int, kind: str = "KeyError", **facts: object) -> Failure:
    return Failure(id=UUID(int=number), at=START + timedelta(seconds=number), exception_type=kind, **facts)  # type: ignore[arg-type]


def stored(
    number: int, kind: str = "KeyError", server: str = "srv-1", activation: UUID = ONE, **facts: object
) -> Stored:
    return Stored(failure(number, kind, **facts), activation, server)


OUTCOMES = st.sampled_from(["ok", "temporary", "KeyError", "ValueError", "OSError"])
HAPPENINGS = st.lists(
    st.tuples(st.sampled_from([ONE, TWO]), st.sampled_from(["srv-1", "srv-2"]), OUTCOMES), max_size=80
)


@given(HAPPENINGS, st.integers(1, 12))
def test_it_agrees_with_feeding_the_breaker_one_by_one(happened: list[tuple[UUID, str, str]], m: int) -> None:
    counts: dict[tuple[UUID, str], Counts] = {}
    successes: dict[tuple[UUID, str], int] = {}
    written, wanted = [], []
    for number, (activation, server, outcome) in enumerate(happened):
        place = (activation, server)
        before = counts.get(place, Counts())
        if outcome == "ok":
            counts[place] = count(before, Outcome.RETURNED)
            successes[place] = successes.get(place, 0) + 1
            continue
        temporary = outcome == "temporary"
        facts = {"temporary": temporary, "counted": not temporary, "successes_before": successes.get(place, 0)}
        written.append(stored(number, outcome, server, activation, **facts))
        counts[place] = count(before, Outcome.TEMPORARY if temporary else Outcome.RAISED, outcome)
        if temporary:
            continue
        successes[place] = 0
        if trips(counts[place], m):
            wanted.append(START + timedelta(seconds=number))
            for each in list(counts):
                if each[0] == activation:
                    counts[each] = Counts()

    assert [trip.at for trip in what_if(written, m).trips] == wanted


def test_three_of_one_type_trip_with_nine() -> None:
    answer = what_if([stored(1), stored(2), stored(3), stored(4)], 9)

    assert [(trip.at.second, trip.reason, trip.exception_type) for trip in answer.trips] == [
        (3, TripReason.SAME_TYPE, "KeyError")
    ]
    assert answer.failures == 4


def test_a_success_between_begins_anew() -> None:
    assert not what_if([stored(1), stored(2), stored(3, successes_before=1), stored(4)], 9).trips


def test_failures_of_two_activations_are_not_added_up() -> None:
    assert not what_if([stored(1), stored(2), stored(3, activation=TWO)], 9).trips


def test_one_server_of_many_is_not_enough() -> None:
    one = [stored(number) for number in range(3)]
    answer = what_if(one, 9, quorums={ONE: 2})
    assert not answer.trips and answer.alone == 1

    both = one + [stored(number, server="srv-2") for number in range(3, 6)]
    answer = what_if(both, 9, quorums={ONE: 2})
    assert [trip.servers for trip in answer.trips] == [("srv-1", "srv-2")] and answer.alone == 0


def test_each_message_is_counted_once_where_that_is_wished() -> None:
    same = [stored(number, message_key="ID:1") for number in range(9)]

    assert len(what_if(same, 9).trips) == 3
    assert not what_if(same, 9, count_once=True).trips


def test_the_story_says_of_each_failure_whether_it_counts_now() -> None:
    failures = [
        failure(1),
        failure(2, successes_before=4, message_key="a"),
        failure(3, temporary=True, counted=False),
        failure(4, message_key="a"),
        failure(5, counted=False),
        failure(6, message_key="b"),
        failure(7, temporary=True, counted=False, outcome="noted"),
    ]
    steps = story(failures, Tally(9, count_once=True))

    assert [step.verdict for step in steps] == [
        Verdict.WIPED, Verdict.COUNTED, Verdict.TEMPORARY, Verdict.SAME_MESSAGE, Verdict.NOT_THE_AGENT, Verdict.COUNTED,
        Verdict.NOTED,
    ]  # fmt: skip
    assert [step.gap for step in steps] == [0, 4, 0, 0, 0, 0, 0]
    assert (steps[-1].counts.same_type, steps[-1].counts.same, steps[-1].counts.any) == ("KeyError", 2, 2)


def test_a_success_before_a_temporary_failure_is_told_once() -> None:
    steps = story(
        [failure(1), failure(2, temporary=True, successes_before=3), failure(3, successes_before=3)], Tally(9)
    )

    assert [step.gap for step in steps] == [0, 3, 0]
    assert steps[-1].counts.any == 1
