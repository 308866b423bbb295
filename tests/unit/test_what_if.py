"""What another limit would have done is what the breaker itself does, fed with one outcome after the
other."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from contract.breaker import Counts, TripReason, count, trips
from contract.outcomes import Outcome
from failures.what_if import Answer, BackTest, Failure, Stored, Tally, Verdict, WouldTrip, story, what_if

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
        facts = {
            "temporary": temporary,
            "counted": not temporary,
            "successes_before": successes.get(place, 0),
        }
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


def test_the_answer_says_when_why_and_where() -> None:
    three = [stored(1), stored(2), stored(3)]
    trip = WouldTrip(START + timedelta(seconds=3), TripReason.SAME_TYPE, "KeyError", ("srv-1",))
    assert what_if(three, 9) == Answer((trip,), alone=0, failures=3)
    mixed = [stored(number, kind) for number, kind in enumerate("ABABABABA")]
    trip = WouldTrip(START + timedelta(seconds=8), TripReason.ANY_TYPE, "", ("srv-1",))
    assert what_if(mixed, 9) == Answer((trip,), alone=0, failures=9)
    assert what_if([], 9) == Answer((), alone=0, failures=0) == Answer()


def test_who_gave_it_up_alone_does_not_run_and_who_enables_it_begins_at_zero() -> None:
    quorums = {ONE: 3}
    alone = [stored(number, server=server) for number, server in enumerate(["srv-1"] * 3 + ["srv-2"] * 3)]
    assert what_if(alone, 9, quorums=quorums) == Answer(alone=2, failures=6)
    assert what_if([*alone, stored(6), stored(7), stored(8)], 9, quorums=quorums) == Answer(
        alone=2, failures=9
    )
    third = [stored(number, server="srv-3") for number in range(6, 9)]
    off = what_if([*alone, *third], 9, quorums=quorums)
    assert [trip.servers for trip in off.trips] == [("srv-1", "srv-2", "srv-3")] and off.alone == 0
    again = [stored(number, server="srv-1") for number in range(9, 12)]
    assert what_if([*alone, *third, *again], 9, quorums=quorums).alone == 1
    assert not what_if([*alone[:2], *third, *alone[:2]], 9).trips[1:], "every count begins at 0"


def test_a_tally_goes_on_with_what_was_counted_before() -> None:
    tally = Tally(9, carried=Counts("KeyError", same=2, any=2))
    assert tally.add(failure(1)).trip is TripReason.SAME_TYPE
    assert Tally(9).add(failure(1)).trip is None


def test_each_failure_counts_unless_messages_count_once() -> None:
    tally = Tally(9)
    again = [tally.add(failure(number, message_key="a")).verdict for number in range(2)]
    assert again == [Verdict.COUNTED, Verdict.COUNTED]


def test_what_counts_no_more_trips_nothing() -> None:
    tally = Tally(1, count_once=True)
    steps = [tally.add(each) for each in (failure(1, message_key="a"), failure(2, message_key="a"))]
    assert [(step.verdict, step.trip) for step in steps] == [
        (Verdict.COUNTED, TripReason.SAME_TYPE), (Verdict.SAME_MESSAGE, None),
    ]  # fmt: skip
    temporary = tally.add(failure(3, temporary=True))
    assert (temporary.verdict, temporary.trip) == (Verdict.TEMPORARY, None)


def test_equal_messages_are_told_apart_by_their_first_attempts() -> None:
    tally = Tally(9, count_once=True)
    weak = [
        failure(number, message_key="sha256:a", weak=True, attempt=attempt)
        for number, attempt in ((1, 1), (2, 1))
    ]
    assert [tally.add(each).verdict for each in weak] == [Verdict.COUNTED, Verdict.COUNTED]
    assert tally.add(failure(3, message_key="sha256:a", weak=True, attempt=2)).verdict is Verdict.SAME_MESSAGE


def test_successes_that_a_failure_that_counts_has_told_are_told_anew_after_it() -> None:
    tally = Tally(9)
    gaps = [
        tally.add(failure(number, successes_before=before)).gap for number, before in enumerate((3, 3, 1, 0))
    ]
    assert gaps == [3, 3, 1, 0]
    mixed = [
        (3, False),
        (3, True),
        (2, True),
    ]  # told by one that does not count, and not once more by the one after it
    tally = Tally(9)
    steps = [
        failure(number, counted=counts, successes_before=before)
        for number, (before, counts) in enumerate(mixed)
    ]
    assert [tally.add(each).gap for each in steps] == [3, 0, 2]
    tally = Tally(9)
    uncounted = [
        failure(number, counted=False, successes_before=before) for number, before in enumerate((3, 1, 4))
    ]
    assert [tally.add(each).gap for each in uncounted] == [3, 0, 1]


def test_of_a_failure_of_which_only_the_type_is_known_the_usual_is_taken() -> None:
    known = Failure(UUID(int=1), START, "KeyError")
    assert known == Failure(UUID(int=1), START, "KeyError", False, True, 0, "", False, 1, "raised")


def test_the_verdicts_have_the_words_of_the_interface() -> None:
    words = ["counted", "wiped", "temporary", "same_message", "not_the_agent", "noted"]
    assert [verdict.value for verdict in Verdict] == words


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
    back_test = BackTest(9)
    for each in same:
        back_test.add(each)
    assert back_test.answer() == what_if(same, 9)
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
        Verdict.WIPED, Verdict.COUNTED, Verdict.TEMPORARY, Verdict.SAME_MESSAGE, Verdict.NOT_THE_AGENT,
        Verdict.COUNTED,
        Verdict.NOTED,
    ]  # fmt: skip
    assert [step.gap for step in steps] == [0, 4, 0, 0, 0, 0, 0]
    assert (steps[-1].counts.same_type, steps[-1].counts.same, steps[-1].counts.any) == ("KeyError", 2, 2)


def test_a_story_wipes_out_what_was_before_its_last_success_and_nothing_else() -> None:
    temporary = failure(0, temporary=True)
    two = story(
        [temporary, failure(1), failure(2, successes_before=1), failure(3, successes_before=1)], Tally(9)
    )
    assert [step.verdict for step in two] == [
        Verdict.TEMPORARY,
        Verdict.WIPED,
        Verdict.WIPED,
        Verdict.COUNTED,
    ]
    none = story([failure(1), failure(2)], Tally(9))
    assert [step.verdict for step in none] == [Verdict.COUNTED, Verdict.COUNTED]


def test_a_success_before_a_temporary_failure_is_told_once() -> None:
    steps = story(
        [failure(1), failure(2, temporary=True, successes_before=3), failure(3, successes_before=3)], Tally(9)
    )

    assert [step.gap for step in steps] == [0, 3, 0]
    assert steps[-1].counts.any == 1
