"""Of two machines one may act, whatever their clocks say and however long one of them slept."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from console.leases import rules
from console.leases.rules import LEASE, Held, Watched, may_act, may_take, watch

ZERO, SECOND = timedelta(0), timedelta(seconds=1)
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
LENGTH = LEASE.total_seconds()


def held(asked_at: float = 0.0) -> Held:
    return Held(uuid4(), asked_at, asked_at)


def test_a_holder_stops_before_its_lease_is_over() -> None:
    assert may_act(held(), LENGTH - rules.MARGIN_SECONDS - 0.001)
    assert not may_act(held(), LENGTH - rules.MARGIN_SECONDS)
    assert not may_act(None, 0.0)


def test_it_may_fail_to_renew_twice_and_still_be_in_time() -> None:
    assert 2 * rules.RENEW_SECONDS < LENGTH - rules.MARGIN_SECONDS
    assert [rules.is_due(held(), at) for at in (rules.RENEW_SECONDS - 0.001, rules.RENEW_SECONDS)] == [
        False,
        True,
    ]


def test_a_renewal_counts_from_the_question() -> None:
    after = rules.renewed(held(), 4.0)
    assert after.sure_until == 4.0 + LENGTH - rules.MARGIN_SECONDS


def test_a_lease_that_somebody_left_is_free_at_once() -> None:
    assert may_take(Watched(None, NOW, 0.0), 0.0, over_for=-LEASE, gone=False)


def test_a_dead_process_of_this_machine_holds_nothing() -> None:
    assert may_take(Watched(uuid4(), NOW, 0.0), 0.0, over_for=-LEASE, gone=True)


def test_one_who_waits_takes_what_stood_still_for_a_lease_by_its_own_clock() -> None:
    seen = Watched(uuid4(), NOW, 100.0)
    for over_for in (-LEASE, ZERO, LEASE):
        assert not may_take(seen, 100.0 + LENGTH - 0.001, over_for=over_for, gone=False)
        assert may_take(seen, 100.0 + LENGTH, over_for=over_for, gone=False)


def test_what_was_over_long_ago_need_not_be_watched() -> None:
    seen = Watched(uuid4(), NOW, 100.0)
    assert not may_take(seen, 100.0, over_for=rules.LONG_OVER - SECOND, gone=False)
    assert may_take(seen, 100.0, over_for=rules.LONG_OVER, gone=False)


def test_a_renewal_is_watched_anew_and_silence_is_not() -> None:
    holder = uuid4()
    first = watch(None, holder, NOW, 1.0)
    assert watch(first, holder, NOW, 9.0) is first
    assert watch(first, holder, NOW + SECOND, 9.0).since == 9.0
    assert watch(first, uuid4(), NOW, 9.0).since == 9.0


def test_an_idle_holder_is_one_that_got_nothing_done_for_long() -> None:
    one = held()
    assert not rules.is_idle(one, rules.IDLE_SECONDS - 0.001) and rules.is_idle(one, rules.IDLE_SECONDS)
    assert not rules.is_idle(rules.worked(one, 50.0), rules.IDLE_SECONDS)


# -- two machines on one row: each sleeps, is cut off and comes back as it likes -----------------------------


@dataclass
class Row:
    holder: UUID | None = None
    until: datetime = NOW


@dataclass
class Machine:
    """Its clock began at another time; the database's is off by `database`, which may change under it."""

    offset: float
    held: Held | None = None
    watched: Watched | None = None
    log: list[str] = field(default_factory=list)

    def step(self, row: Row, at: float, database: timedelta, answers_after: float) -> None:
        """Asks at `at`; the database does it `answers_after` later."""
        mine, written = at + self.offset, NOW + timedelta(seconds=at + answers_after) + database
        if self.held is not None:
            if row.holder == self.held.holder:
                row.until = written + LEASE
                self.held = rules.renewed(self.held, mine)
            else:
                self.held = None
            return
        self.watched = watch(self.watched, row.holder, row.until, mine)
        if may_take(self.watched, mine, over_for=written - row.until, gone=False):
            self.held = Held(uuid4(), mine, mine)
            row.holder, row.until = self.held.holder, written + LEASE

    def acts(self, at: float) -> bool:
        return may_act(self.held, at + self.offset)


steps = st.lists(
    st.tuples(
        st.integers(0, 1),  # which machine comes to ask; the other one sleeps or is cut off
        st.floats(0.0, 20.0),  # after how long
        st.floats(-20.0, 20.0),  # how far off the database's clock is by then
        st.floats(0.0, 2.0),
    ),
    max_size=60,
)


@given(steps)
def test_never_two_at_once_by_clocks_that_are_off_by_less_than_long_over(
    script: list[tuple[int, float, float, float]],
) -> None:
    row, machines, at = Row(), (Machine(1000.0), Machine(5.0)), 0.0
    for who, after, off, answers_after in script:
        for part in range(1, 5):
            assert sum(machine.acts(at + after * part / 4) for machine in machines) <= 1
        at += after
        machines[who].step(row, at, timedelta(seconds=off), answers_after)
        at += answers_after
        assert sum(machine.acts(at) for machine in machines) <= 1
