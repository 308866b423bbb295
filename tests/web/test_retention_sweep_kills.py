"""The sweep of all settings: turns that end early, one that is killed, one that is taken over, one that
fails."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from agents.models import Activation, Pool
from console.processes import record_heartbeat
from failures.models import FailureProtocol
from retention import batches, run_ledger, worker
from retention.models import PART_FAILED, RetentionRun, RetentionState
from retention.protocols import row_locations, sweep
from retention.worker import run_retention_turn
from tests.web.retention_rows import NOW, after_the_first, house, told

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
AT_ONCE = timedelta(0)


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    """With the feed there, so that letters keep nothing that is older than a few minutes."""
    monkeypatch.setattr(batches, "FIRST", 3)
    monkeypatch.setattr(batches, "LEAST", 2)
    monkeypatch.setattr(batches, "MOST", 5)
    monkeypatch.setattr(batches, "let_others_write", lambda took: None)
    record_heartbeat("feed", NOW)


def test_turns_that_end_early_are_gone_on_with(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "FIRST_GROUP", 1)
    monkeypatch.setattr(sweep, "MOST_GROUP", 1)
    for number in range(5):
        house(pool, {f"setting{number}": 6}, 20 - number)
    positions = []
    monkeypatch.setattr(batches.Chunks, "over", property(lambda self: next(looked) > 2))
    for _turn in range(100):
        looked = iter(range(1000))
        run = run_retention_turn(NOW, every=timedelta(days=1))
        assert run is not None
        if run.part > worker.SWEEP:
            break
        positions.append(run.position)
    assert len(positions) > 3 and positions == sorted(positions) and positions[-1] > positions[0] >= 0
    assert run is not None
    assert (run.deleted, FailureProtocol.objects.count()) == (30, 0)
    assert {figure.deleted for figure in run.figures.all()} == {6}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("before", [True, False], ids=["before the commit", "after it"])
def test_killed_at_a_chunk_every_row_is_counted_once(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    house(pool, {"one": 9, "two": 9})
    real, seen = run_ledger.Claim.count_many, 0

    def die(self: Any, *arguments: Any) -> None:
        nonlocal seen
        seen += 1
        real(self, *arguments)
        if seen == 3:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        if before:
            patch.setattr(run_ledger.Claim, "count_many", die)
        else:
            after_the_first(patch, _die)
        run_retention_turn(NOW, every=AT_ONCE)
    run = RetentionRun.objects.get()
    left = FailureProtocol.objects.count()
    assert run.state == RetentionState.RUNNING and 0 < left < 18
    assert run.deleted == sum(told(run).values()) == 18 - left

    RetentionRun.objects.update(lease_until=None)
    gone_on = run_retention_turn(NOW, every=AT_ONCE)
    assert gone_on is not None and (gone_on.pk, gone_on.state) == (run.pk, RetentionState.DONE)
    run.refresh_from_db()
    assert told(run) == {("protocols", "one", "well"): 9, ("protocols", "two", "well"): 9}
    assert run is not None
    assert (run.deleted, FailureProtocol.objects.count()) == (18, 0)


def _die() -> None:
    raise Killed


@pytest.mark.django_db(transaction=True)
def test_taken_over_it_deletes_nothing_more(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    house(pool, {"one": 9, "two": 9})
    left: list[int] = []

    def take() -> None:
        RetentionRun.objects.update(holder=UUID(int=5))
        left.append(FailureProtocol.objects.count())

    after_the_first(monkeypatch, take)
    run = run_retention_turn(NOW, every=AT_ONCE)

    assert run is not None and run.state == RetentionState.RUNNING
    assert FailureProtocol.objects.count() == left[0] == 18 - run.deleted > 0
    assert not Activation.objects.filter(cleared=True).exists()


def test_where_it_fails_each_setting_is_gone_through(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    house(pool, {"one": 9, "two": 9})

    def faulty(*_: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(row_locations, "find", faulty)
    run = run_retention_turn(NOW, every=AT_ONCE)

    assert run is not None
    assert (run.state, run.problem) == (
        "failed",
        PART_FAILED(part="sweep", type="RuntimeError", text="out of order"),
    )
    assert run is not None
    assert (run.deleted, FailureProtocol.objects.count()) == (18, 0)
