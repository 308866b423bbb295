"""Leases in rows: of several processes one holds it, and whoever cannot renew in time has stopped before."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from console.jobs import detached
from console.leases import rules
from console.leases.holder import WAITS, Holder, LeaseOver, kept
from console.leases.models import Lease
from console.leases.queries import Place, place_of
from console.leases.rules import LEASE
from console.processes import record_heartbeat
from ma_site.checks.work import check_processes
from ma_site.pages import health

pytestmark = pytest.mark.both_databases
LENGTH = LEASE.total_seconds()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each process is one of another machine, so nobody sees whether it has ended."""
    monkeypatch.setattr(detached, "is_gone", lambda identity: False)
    yield


@pytest.mark.django_db
@pytest.mark.usefixtures("elsewhere")
def test_the_second_waits_and_takes_over_when_the_first_is_silent_for_a_lease(clock: Clock) -> None:
    first, second = Holder("feed", clock), Holder("feed", clock)
    assert first.tend() and not second.tend()
    clock.now += rules.RENEW_SECONDS
    assert first.tend()
    for _second in range(int(LENGTH)):
        assert not second.tend()
        clock.now += 1
    assert not first.may_act()
    assert second.tend()
    assert not first.tend(), "it renewed what was another's"
    with pytest.raises(LeaseOver):
        first.require()
    second.require()


@pytest.mark.django_db
@pytest.mark.usefixtures("elsewhere")
def test_who_slept_longer_than_its_lease_goes_on_only_where_nobody_took_it(clock: Clock) -> None:
    first = Holder("feed", clock)
    assert first.tend()
    clock.now += 10 * LENGTH
    assert not first.may_act()
    assert first.tend()


@pytest.mark.django_db
def test_a_lease_that_was_left_is_taken_at_once(clock: Clock) -> None:
    first, second = Holder("beat", clock), Holder("beat", clock)
    assert first.tend()
    first.leave()
    assert not first.may_act() and second.tend()


@pytest.mark.django_db
def test_a_signal_that_comes_while_the_database_is_asked_asks_it_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handler would wait for the connection that it has interrupted."""
    mine = Holder("beat", clock)
    assert mine.tend()
    monkeypatch.setattr(mine, "_renew", lambda *_: mine.leave())
    clock.now += rules.RENEW_SECONDS
    assert not mine.tend()
    assert Lease.objects.filter(name="beat").exclude(holder=None).exists(), "it runs out by itself"


@pytest.mark.django_db
def test_leases_of_other_names_are_others(clock: Clock) -> None:
    assert Holder("beat", clock).tend() and Holder("feed", clock).tend()


@pytest.mark.django_db
def test_a_database_that_is_away_stops_a_holder_in_time_and_kills_nobody(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Holder("feed", clock)
    assert first.tend()

    def away(*_: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(first, "_renew", away)
    monkeypatch.setattr(connection, "close", lambda: None)
    clock.now += rules.RENEW_SECONDS
    assert first.tend(), "it is sure of its lease still"
    clock.now += LENGTH - rules.MARGIN_SECONDS - rules.RENEW_SECONDS
    assert not first.tend()


@pytest.mark.django_db
@pytest.mark.usefixtures("elsewhere")
def test_one_that_gets_nothing_done_leaves_it_to_one_that_waits_and_to_nobody_else(clock: Clock) -> None:
    idle, waiting = Holder("feed", clock), Holder("feed", clock)
    assert idle.tend()
    clock.now += rules.IDLE_SECONDS
    assert idle.tend(), "nobody waits: it goes on"
    assert not waiting.tend()
    clock.now += rules.RENEW_SECONDS
    assert not idle.tend()
    clock.now += 1
    assert not idle.tend() and waiting.tend()


@pytest.mark.django_db
@pytest.mark.usefixtures("elsewhere")
def test_one_that_gets_something_done_keeps_it(clock: Clock) -> None:
    busy, waiting = Holder("feed", clock), Holder("feed", clock)
    assert busy.tend()
    for _turn in range(40):
        clock.now += rules.RENEW_SECONDS
        busy.worked()
        assert busy.tend() and not waiting.tend()


@pytest.mark.django_db
@pytest.mark.usefixtures("elsewhere")
def test_the_row_says_who_holds_it_since_when_and_who_waits(clock: Clock) -> None:
    first, second = Holder("feed", clock), Holder("feed", clock)
    first.tend()
    second.tend()
    row = Lease.objects.get(name="feed")
    assert (row.host, row.standby_host) == (detached.host(), detached.host())
    assert row.process == detached.identity()
    assert row.taken_at is not None and row.until - row.taken_at == LEASE
    assert row.standby_at is not None


@pytest.mark.django_db
@pytest.mark.usefixtures("elsewhere")
def test_doctor_and_the_health_page_name_both_hosts(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    for name in ("beat", "feed"):
        record_heartbeat(name, now)
        for host in ("host-a", "host-b"):
            monkeypatch.setattr(detached, "host", lambda host=host: host)
            Holder(name, clock).tend()
    says = [finding.detail for finding in check_processes(now)]
    assert [each.partition("ago, ")[2] for each in says] == ["on host-a; standby host-b"] * 2
    parts = [health._process(name, now).says for name in ("beat", "feed")]
    assert parts == ["heartbeat OK, on host-a; standby on host-b"] * 2
    later = now + WAITS + timedelta(seconds=1)
    assert place_of("feed", later) == Place("host-a", "")
    assert place_of("feed", now + 2 * LEASE) is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("elsewhere")
def test_of_those_who_come_at_once_one_has_it() -> None:
    count = 4
    together = Barrier(count)

    def come(_: int) -> bool:
        try:
            mine = Holder("beat")
            together.wait(30)
            return mine.tend()
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(come, range(count)))
    assert sorted(found) == [False] * (count - 1) + [True]


@pytest.mark.django_db(transaction=True)
def test_it_is_kept_while_the_work_takes_long_and_left_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RENEW_SECONDS", 0.0)
    mine = Holder("feed")
    renewed: list[object] = []
    with kept(mine):
        while len(set(renewed)) < 3:
            time.sleep(0.1)
            renewed += Lease.objects.filter(name="feed").exclude(holder=None).values_list("until", flat=True)
        assert mine.may_act()
    assert not mine.may_act()
    assert Lease.objects.filter(name="feed", holder=None).exists()
