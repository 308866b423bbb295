"""Counts of failures: each protocol once, whoever folds, and whenever it dies."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Greatest

from agents.models import LaunchSetting, Run
from contract.records import Protocol
from failures.error_groups import increments, queries, rollup
from failures.intake.batch import accept_batch
from failures.models import (
    FailureDelta,
    FailureGroup,
    FailureProtocol,
    Fingerprint,
    FingerprintHour,
    FoldMark,
)
from tests.web import reports

pytestmark = pytest.mark.both_databases

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
OTHER = "v1:fedcba9876543210"


class Hall:
    """A server's spool, and what its batches say of the setting `orders`."""

    def __init__(self, name: str = "srv-1") -> None:
        self.server = reports.server(name)
        setting = LaunchSetting.objects.filter(key="orders").first() or reports.setting()
        self.run = Run.objects.filter(server=self.server).first() or reports.run(setting, self.server)
        self.spool = reports.Spool(name)

    def failure(self, at: datetime = reports.AT, **fields: Any) -> Protocol:
        return reports.protocol(reports.run_of(self.run), occurred_at=at, **fields)

    def send(self, *failures: Protocol, now: datetime = NOW) -> None:
        accept_batch(self.server, self.spool.batch(*failures), now)


def counted() -> set[int]:
    """What each table says of all failures."""
    tables = (FailureGroup, FingerprintHour, Fingerprint)
    return {table.objects.aggregate(sum=Sum("count"))["sum"] or 0 for table in tables}


@pytest.mark.django_db(transaction=True)
class TestCounts:
    def test_each_protocol_counts_once_before_and_after_a_fold(self) -> None:
        hall = Hall()
        hall.send(*[hall.failure() for _ in range(3)], hall.failure(fingerprint=OTHER))
        before = queries.counts_of_activation(hall.run.activation_id)
        rollup.fold_all(NOW)
        hall.send(hall.failure(reports.AT + timedelta(minutes=2), exception_text="no row 7"))

        assert [(alike.fingerprint, alike.count) for alike in before] == [
            ("v1:0123456789abcdef", 3),
            (OTHER, 1),
        ]
        after = queries.counts_of_activation(hall.run.activation_id)
        assert [(alike.fingerprint, alike.count) for alike in after] == [
            ("v1:0123456789abcdef", 4),
            (OTHER, 1),
        ]
        assert after[0].first_at == reports.AT and after[0].last_at == reports.AT + timedelta(minutes=2)
        assert after[0].latest == FailureProtocol.objects.latest("occurred_at").pk
        rollup.fold_all(NOW)
        assert queries.counts_of_activation(hall.run.activation_id) == after
        assert counted() == {5} and not FailureDelta.objects.exists()

    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize("together", [True, False])
    def test_a_group_is_temporary_only_where_all_of_it_is(self, first: bool, together: bool) -> None:
        """What was only noted is stored as temporary, with the fingerprint of the failure that it is
        about."""
        hall = Hall()
        both = [hall.failure(reports.AT, temporary=first), hall.failure(reports.AT, temporary=not first)]
        for batch in [both] if together else [[each] for each in both]:
            hall.send(*batch)
        fresh = [
            (alike.count, alike.temporary) for alike in queries.counts_of_activation(hall.run.activation_id)
        ]
        rollup.fold_all(NOW)
        hall.send(hall.failure(reports.AT, temporary=True))
        rollup.fold_all(NOW)

        assert fresh == [(2, False)]
        after = [
            (alike.count, alike.temporary) for alike in queries.counts_of_activation(hall.run.activation_id)
        ]
        assert after == [(3, False)] and not FailureGroup.objects.filter(temporary=True).exists()

    def test_a_group_that_was_temporary_is_not_once_one_of_it_failed(self) -> None:
        hall = Hall()
        for temporary in (True, True, False):
            hall.send(hall.failure(reports.AT, temporary=temporary))
            rollup.fold_all(NOW)
            assert FailureGroup.objects.get().temporary is temporary

    def test_a_batch_that_comes_again_counts_nothing(self) -> None:
        hall = Hall()
        batch = hall.spool.batch(hall.failure(), hall.failure())
        for _ in range(2):
            accept_batch(hall.server, batch, NOW)
            rollup.fold_all(NOW)

        assert counted() == {2}

    def test_an_older_failure_that_comes_late_is_not_the_latest(self) -> None:
        hall = Hall()
        hall.send(hall.failure(exception_text="new"))
        rollup.fold_all(NOW)
        latest = Fingerprint.objects.get().latest
        hall.send(hall.failure(reports.AT - timedelta(hours=5), exception_text="old"))
        rollup.fold_all(NOW)

        row = Fingerprint.objects.get()
        assert (row.latest, row.headline, row.count) == (latest, "new", 2)
        assert row.first_at == reports.AT - timedelta(hours=5) and row.recent_at == reports.AT

    def test_a_fold_that_dies_before_its_commit_has_counted_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hall = Hall()
        hall.send(hall.failure(), hall.failure())
        monkeypatch.setattr(Greatest, "__init__", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            rollup.fold_all(NOW)
        monkeypatch.undo()

        assert counted() == {0} and FoldMark.objects.get().folded_at is None
        rollup.fold_all(NOW)
        assert counted() == {2}

    def test_many_steps_fold_everything(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rollup, "AT_ONCE", 2)
        hall = Hall()
        for _ in range(5):
            hall.send(hall.failure())

        assert rollup.fold_all(NOW) == 5
        assert counted() == {5}

    def test_two_folds_and_intakes_at_once_count_each_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rollup, "AT_ONCE", 3)
        halls = [Hall("srv-1"), Hall("srv-2")]
        barrier, faults = Barrier(4), []

        def run(work: object, times: int) -> None:
            barrier.wait()
            try:
                for _ in range(times):
                    work()  # type: ignore[operator]
            except Exception as error:
                faults.append(error)
            finally:
                connection.close()

        works: list[tuple[Callable[[], object], int]]
        works = [(partial(hall.send, hall.failure(), hall.failure()), 15) for hall in halls]
        works += [(lambda: rollup.fold_all(NOW), 10)] * 2
        threads = [Thread(target=run, args=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while FailureDelta.objects.exists():
            rollup.fold_all(NOW)

        assert faults == []
        assert counted() == {60} == {FailureProtocol.objects.count()}


@pytest.mark.django_db(transaction=True)
def test_hours_are_those_of_the_server_unless_nobody_can_believe_its_clock() -> None:
    hall = Hall()
    hall.send(
        hall.failure(NOW - timedelta(hours=2)),
        hall.failure(NOW + timedelta(days=365)),
        hall.failure(NOW - timedelta(days=365)),
    )
    fingerprint = "v1:0123456789abcdef"

    def shown() -> list[int]:
        return queries.hours_of([fingerprint], NOW - timedelta(hours=3), NOW)[fingerprint]

    assert shown() == [0, 1, 0, 2]
    rollup.fold_all(NOW)
    assert shown() == [0, 1, 0, 2]
    assert queries.settings_of_groups([fingerprint], NOW - timedelta(hours=1)) == {"orders": 2}


@pytest.mark.django_db(transaction=True)
def test_hours_are_forgotten_after_their_time_and_nothing_else() -> None:
    hall = Hall()
    hall.send(hall.failure(NOW - increments.BELIEVED + timedelta(hours=2)), hall.failure(NOW))
    rollup.fold_all(NOW)

    assert rollup.forget_hours(NOW) == 0
    assert rollup.forget_hours(NOW + timedelta(hours=3)) == 1
    assert Fingerprint.objects.get().count == 2 and FingerprintHour.objects.get().hour.hour == 12
