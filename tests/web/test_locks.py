"""Locks between processes: one has it, and nobody for longer than was said."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from console.processes import NamedLock, lock, once_per
from tests.web.rows import NOW

pytestmark = pytest.mark.both_databases
HOUR = timedelta(hours=1)


@pytest.mark.django_db
def test_a_lock_is_of_one_until_its_end() -> None:
    with lock("tills", HOUR) as mine, lock("tills", HOUR) as yours, lock("scales", HOUR) as other:
        assert (mine, yours, other) == (True, False, True)
    with lock("tills", HOUR) as again:
        assert again


@pytest.mark.django_db
def test_an_error_within_gives_it_back() -> None:
    with pytest.raises(ZeroDivisionError), lock("tills", HOUR):
        raise ZeroDivisionError
    with lock("tills", HOUR) as again:
        assert again


@pytest.mark.django_db
def test_it_runs_out_and_who_comes_back_late_takes_it_from_nobody() -> None:
    with ExitStack() as late:
        assert late.enter_context(lock("tills", timedelta(0)))
        with lock("tills", HOUR) as following:
            assert following
            late.close()
            with lock("tills", HOUR) as third:
                assert not third


@pytest.mark.django_db
def test_once_per_span_whatever_else_has_that_name() -> None:
    found = [once_per("tills", HOUR, NOW + minutes * timedelta(minutes=1)) for minutes in (0, 1, 59, 60, 61)]
    assert found == [True, False, False, True, False]
    with lock("tills", HOUR) as free:
        assert free


@pytest.mark.django_db(transaction=True)
def test_of_those_who_come_at_once_one_has_it() -> None:
    count = 4
    together = Barrier(count)

    def come(_: int) -> tuple[bool, bool]:
        try:
            together.wait(30)
            with lock("tills", HOUR) as taken:
                together.wait(30)
                return taken, once_per("tills", HOUR, now)
        finally:
            connection.close()

    now = timezone.now()
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(come, range(count)))
    assert sorted(taken for taken, _ in found) == [False] * (count - 1) + [True]
    assert sorted(once for _, once in found) == [False] * (count - 1) + [True]
    assert NamedLock.objects.count() == 2
