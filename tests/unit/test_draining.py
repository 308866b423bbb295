"""When an activation that drains its subscription is done."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.activations.rules.outcome import (
    DrainProgress,
    Patience,
    QueueReading,
    advance_drain,
    time_is_up,
    verdict,
)

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PATIENCE = Patience(idle=timedelta(seconds=5), wait=timedelta(seconds=60))
EMPTY = QueueReading(0, 0, 0, added=30)
DELAYED = QueueReading(2, 2, 0, added=30)
BUSY = QueueReading(7, 2, 3, added=30)


def watch(*looks: QueueReading, every: int = 2) -> list[str | None]:
    """The verdicts of looks at equal distances."""
    progress, verdicts = DrainProgress(), list[str | None]()
    for number, look in enumerate(looks):
        now = START + timedelta(seconds=number * every)
        progress = advance_drain(look, progress, now)
        verdicts.append(verdict(look, progress, PATIENCE, now))
    return verdicts


@pytest.mark.parametrize(
    ("look", "gone", "only_delayed"),
    [
        (QueueReading(0, 0, 0, 30), True, False),
        (QueueReading(1, 0, 0, 30), False, False),
        (QueueReading(1, 0, 1, 30), False, False),
        (QueueReading(2, 2, 0, 30), False, True),
        (QueueReading(2, 1, 1, 30), False, False),
        (QueueReading(2, 2, 1, 30), False, False),  # one is tried again just now
        (QueueReading(1, 1, 0, 30, later=0), False, True),
        (QueueReading(2, 2, 1, 30, later=0), False, False),
        (QueueReading(3, 0, 1, 30, later=3), True, False),  # as many as came later
        (QueueReading(4, 0, 1, 30, later=3), False, False),
        (QueueReading(3, 1, 1, 30, later=3), False, True),  # the delayed one may be of the start
        (QueueReading(4, 1, 1, 30, later=3), False, True),
        (QueueReading(5, 1, 1, 30, later=3), False, False),
        (
            QueueReading(1, 1, 1, 30, later=1),
            False,
            True,
        ),  # of those in delivery nobody knows which came later
    ],
)
def test_what_is_left_of_the_start(look: QueueReading, gone: bool, only_delayed: bool) -> None:
    assert (look.gone, look.only_delayed) == (gone, only_delayed)


def test_patience_without_more_words_has_no_limit_and_takes_nothing_later() -> None:
    assert Patience(PATIENCE.idle, PATIENCE.wait, longest=timedelta(), later=False) == PATIENCE


def test_each_time_begins_with_the_look_that_sees_its_reason() -> None:
    later = START + timedelta(seconds=2)
    assert advance_drain(BUSY, DrainProgress(), START) == DrainProgress(None, None, added=30)
    assert advance_drain(DELAYED, DrainProgress(added=30), START) == DrainProgress(None, START, added=30)
    assert advance_drain(EMPTY, DrainProgress(None, START, added=30), later) == DrainProgress(
        later, None, added=30
    )
    assert advance_drain(DELAYED, DrainProgress(START, None, added=30), later) == DrainProgress(
        None, later, added=30
    )


def test_it_is_done_at_the_end_of_its_patience_and_not_without_a_beginning() -> None:
    for look, progress, patience in (
        (EMPTY, DrainProgress(idle_since=START), PATIENCE.idle),
        (DELAYED, DrainProgress(delayed_since=START), PATIENCE.wait),
    ):
        end = START + patience
        assert verdict(look, progress, PATIENCE, end - timedelta(milliseconds=1)) is None
        assert verdict(look, progress, PATIENCE, end) is not None
        assert verdict(look, DrainProgress(), PATIENCE, end) is None


def test_empty_for_the_idle_time_is_drained() -> None:
    assert watch(EMPTY, EMPTY, EMPTY, EMPTY) == [None, None, None, "drained"]


def test_messages_start_the_idle_time_anew() -> None:
    assert watch(EMPTY, EMPTY, BUSY, EMPTY, EMPTY, EMPTY, EMPTY) == [None] * 6 + ["drained"]


def test_a_message_that_came_and_went_between_two_looks_starts_it_anew_too() -> None:
    later = QueueReading(0, 0, 0, added=31)

    assert watch(EMPTY, EMPTY, later, later, later, later) == [None] * 5 + ["drained"]


def test_a_steady_stream_of_later_messages_is_not_waited_for_without_a_limit() -> None:
    """30 at the start; then one a second: there is always one in the subscription, never for long."""
    stream = [QueueReading(1 + max(0, 30 - 10 * n), 0, 1, added=30 + 2 * n, later=2 * n) for n in range(1, 9)]
    with_limit = [replace(look, later=None) for look in stream]

    assert watch(*stream) == [None] * 5 + ["drained"] * 3
    assert set(watch(*with_limit)) == {None}


def test_delayed_messages_are_waited_for_under_a_steady_stream_too() -> None:
    stream = [QueueReading(3, 1, 1, added=30 + 2 * n, later=2 * n) for n in range(1, 40)]
    healed = [QueueReading(1, 0, 1, added=110 + 2 * n, later=80 + 2 * n) for n in range(4)]

    assert watch(*stream).index("waited") == 30
    assert watch(*stream[:20], *healed)[-1] == "drained"


def test_what_is_in_delivery_is_not_drained() -> None:
    assert set(watch(*[QueueReading(1, 0, 1, added=30)] * 100)) == {None}


def test_delayed_messages_are_waited_for_so_long_and_no_longer() -> None:
    verdicts = watch(*[DELAYED] * 31)

    assert verdicts == [None] * 30 + ["waited"]


def test_a_delayed_message_that_is_tried_again_and_fails_does_not_start_the_waiting_anew() -> None:
    tried = QueueReading(2, 1, 1, added=30)
    looks = [DELAYED] * 20 + [tried] + [DELAYED] * 10

    assert watch(*looks) == [None] * 30 + ["waited"]


def test_while_one_is_tried_nothing_is_given_up() -> None:
    tried = QueueReading(1, 0, 1, added=30)

    assert watch(*[DELAYED] * 25, *[tried] * 10, EMPTY, EMPTY, EMPTY, EMPTY)[-5:] == [None] * 4 + ["drained"]


def test_a_new_message_starts_the_waiting_anew() -> None:
    more = QueueReading(3, 2, 0, added=31)
    delayed = QueueReading(2, 2, 0, added=31)

    assert set(watch(*[DELAYED] * 25, more, *[delayed] * 25)) == {None}


def test_no_waiting_at_all_gives_up_at_once() -> None:
    patience = Patience(idle=timedelta(seconds=5), wait=timedelta())

    assert verdict(DELAYED, advance_drain(DELAYED, DrainProgress(), START), patience, START) == "waited"


def test_the_time_is_up_after_the_longest_time_and_never_without_one() -> None:
    assert time_is_up(START, timedelta(minutes=1), START + timedelta(minutes=1))
    assert not time_is_up(START, timedelta(minutes=1), START + timedelta(seconds=59))
    assert not time_is_up(START, timedelta(), START + timedelta(days=9))


looks = st.builds(
    lambda delayed, delivering, waiting, added: QueueReading(
        delayed + delivering + waiting, delayed, delivering, added
    ),
    *[st.integers(0, 2)] * 3,
    st.integers(0, 3),
)


@given(st.lists(looks, max_size=40))
def test_drained_means_that_it_was_empty_in_every_look_of_the_idle_time(seen: list[QueueReading]) -> None:
    verdicts = watch(*seen)
    for number, said in enumerate(verdicts):
        if said == "drained":
            idle = seen[number - 3 : number + 1]
            assert len(idle) == 4 and all(look == QueueReading(0, 0, 0, seen[number].added) for look in idle)
        if said == "waited":
            assert seen[number].only_delayed
