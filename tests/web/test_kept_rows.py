"""Rows that are written again are those that were made, moved by the time that has passed."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from agents.models import Activation, Server
from dlq.models import DeadLetter
from dlq.search.words import TABLE
from failures.models import FailureProtocol, FingerprintHour
from tests.web import kept_rows, reports
from tests.web.factories import World, make_world

pytestmark = pytest.mark.django_db
NAME = "world of this test"
PASSED = timedelta(seconds=7)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time that the rows are really made."""
    monkeypatch.setattr(kept_rows, "_known", {})
    return []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], datetime]:
    """Begins when no failure of the world is about to come into the next hour."""
    begun = timezone.now().replace(minute=55, second=45, microsecond=0)

    def set_to(passed: timedelta) -> datetime:
        monkeypatch.setattr("django.utils.timezone.now", lambda: begun + passed)
        return begun + passed

    set_to(timedelta())
    return set_to


def world(calls: list[None]) -> World:
    def make() -> World:
        calls.append(None)
        return make_world(timezone.now(), letters=21)

    return kept_rows.kept(NAME, make)


def rows() -> dict[str, set[Any]]:
    return {model._meta.db_table: {*kept_rows._rows(model)} for model in kept_rows._models()}


def words() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH 'north' ORDER BY rowid")
        return list(cursor.fetchall())


def rolled_back(calls: list[None]) -> tuple[World, dict[str, set[Any]], list[Any]]:
    point = transaction.savepoint()
    made = world(calls)
    found = made, rows(), words()
    transaction.savepoint_rollback(point)
    return found


def test_without_time_that_passed_all_rows_and_words_are_the_same(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    made, stored, indexed = rolled_back(calls)
    again, stored_again, indexed_again = rolled_back(calls)
    assert len(calls) == 1
    assert stored_again == stored
    assert indexed_again == indexed != []
    assert again.dice.getstate() == made.dice.getstate()
    assert replace(again, dice=made.dice) == made
    assert again.people["operator"] is not made.people["operator"]


def test_instants_move_and_whole_hours_stay(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    made, _, _ = rolled_back(calls)
    hours = set()
    for passed in (timedelta(), PASSED):
        now = clock(passed)
        point = transaction.savepoint()
        again = world(calls)
        assert again.now == made.now + passed == now
        seen = Server.objects.get(name="srv-1").last_seen_at
        assert seen == again.servers["srv-1"].last_seen_at == now - timedelta(seconds=1)
        hours.add(
            frozenset(FingerprintHour.objects.values_list("fingerprint", "setting_key", "hour", "count"))
        )
        transaction.savepoint_rollback(point)
    assert len(calls) == 1
    assert len(hours) == 1


def test_what_is_changed_in_one_is_not_changed_in_the_next(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    rolled_back(calls)
    point = transaction.savepoint()
    first = world(calls)
    first.people["operator"].username = "other"
    first.servers.clear()
    transaction.savepoint_rollback(point)
    second = world(calls)
    assert (
        second.people["operator"].username
        == User.objects.get(pk=second.people["operator"].pk).username
        == "operator"
    )
    assert second.servers
    assert len(calls) == 1


def test_they_are_made_again_where_rows_are_already_there(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    rolled_back(calls)
    Server.objects.create(name="first of all")
    world(calls)
    assert len(calls) == 2


def test_they_are_made_again_on_rows_that_were_made_again(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    """As many of them, with the same numbers: only an id by chance is another one."""
    for _ in range(2):
        point = transaction.savepoint()
        Activation.objects.create(setting=reports.setting())
        kept_rows.kept(NAME, lambda: calls.append(None))
        transaction.savepoint_rollback(point)
    assert len(calls) == 2


def test_they_are_made_again_when_a_failure_comes_into_the_next_hour(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    """One of them every 61 s, the newest 12 s ago: that of the full hour is 2 s before it."""
    clock(-timedelta(minutes=35, seconds=15))
    rolled_back(calls)
    clock(-timedelta(minutes=35, seconds=12))
    world(calls)
    assert len(calls) == 2


def test_rows_that_were_changed_are_changed_again(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    Server.objects.create(name="known", kma_version="1")
    for _ in range(2):
        point = transaction.savepoint()
        kept_rows.kept(NAME, lambda: Server.objects.update(kma_version=f"{2 + len(calls)}"))
        assert Server.objects.get().kma_version == "2"
        calls.append(None)
        transaction.savepoint_rollback(point)
    assert Server.objects.get().kma_version == "1"


def test_letters_of_before_are_not_indexed_twice(
    calls: list[None], clock: Callable[[timedelta], datetime]
) -> None:
    made = world(calls)
    before = words()
    for _ in range(2):
        point = transaction.savepoint()
        kept_rows.kept(
            NAME, lambda: DeadLetter.objects.filter(pk=made.letters[0].pk).update(queue="DLQ.other")
        )
        assert DeadLetter.objects.get(pk=made.letters[0].pk).queue == "DLQ.other"
        assert words() == before
        transaction.savepoint_rollback(point)
    assert FailureProtocol.objects.count() == len(made.protocols)
