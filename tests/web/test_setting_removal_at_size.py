"""Removing a setting of which there are very many protocols: a few at a time, and killed wherever it is
harmless."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from agents.models import (
    Activation,
    LaunchSetting,
    Pool,
    Run,
    Schedule,
    StateChange,
    Timing,
    Window,
)
from agents.settings import removal
from agents.settings.removal import finish_removals, remove_setting
from alerts.models import Alert
from broker.memory.broker import MemoryBroker
from console import broker as broker_service
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol
from failures.protocols import setting_removal
from tests.web import reports
from tests.web.retention_rows import NOW, activation, protocols, run_of
from tests.web.rows import make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

SOME = 20
MANY = 130
TABLE = FailureProtocol._meta.db_table


@dataclass(frozen=True, slots=True)
class Statement:
    sql: str
    rows: int
    in_transaction: bool


class Killed(BaseException):
    """The process is gone at this line."""


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    monkeypatch.setattr(removal, "AT_ONCE", SOME)
    monkeypatch.setattr(setting_removal, "AT_ONCE", SOME)


@pytest.fixture
def full(pool: Pool) -> LaunchSetting:
    """Three ended activations with their runs and protocols, one protocol of none of them, and what else
    refers."""
    setting = make_setting(pool)
    for number in range(3):
        ended = activation(setting, 3 - number, well=False)
        rows = protocols(ended, MANY, 3 - number)
        FailureProtocol.objects.filter(pk__in=[row.pk for row in rows]).update(run=run_of(ended))
        Alert.objects.create(kind="trip", subject=str(number), severity=1, state="closed", setting=setting)
    FailureProtocol.objects.filter(pk=protocols(None, 1, 1)[0].pk).update(
        setting=setting, setting_key=setting.key
    )
    for number in range(2 * SOME + 1):
        StateChange.objects.create(setting=setting, what="setting", new=str(number))
    return setting


@contextmanager
def statements(before: Callable[[str], None] = lambda sql: None) -> Iterator[list[Statement]]:
    """Those that touch protocols."""
    found: list[Statement] = []

    def wrapped(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if TABLE not in sql:
            return execute(sql, params, many, context)
        before(sql)
        answer = execute(sql, params, many, context)
        found.append(Statement(sql, context["cursor"].rowcount, connection.in_atomic_block))
        return answer

    with connection.execute_wrapper(wrapped):
        yield found


def all_stay_with_the_key(setting: LaunchSetting, count: int = 3 * MANY + 1) -> None:
    assert not LaunchSetting.objects.filter(pk=setting.pk).exists()
    assert not Activation.objects.exists() and not Run.objects.exists() and not StateChange.objects.exists()
    free = FailureProtocol.objects.filter(setting=None, activation=None, run=None, setting_key=setting.key)
    assert free.count() == FailureProtocol.objects.count() == count
    assert Alert.objects.filter(setting=None).count() == 3


def test_no_statement_and_no_transaction_touches_more_than_a_few_protocols(full: LaunchSetting) -> None:
    with statements() as found:
        assert remove_setting(full, None, NOW)

    updates = [each for each in found if each.sql.startswith("UPDATE")]
    assert sum(each.rows for each in updates) == 3 * MANY + 1
    assert max(each.rows for each in updates) == SOME
    # Each that changes something is alone in its transaction.
    assert not [each for each in updates if each.rows and each.in_transaction]
    unbounded = [each.sql for each in found if not each.sql.startswith("UPDATE") and "LIMIT" not in each.sql]
    assert unbounded == []
    # By its activation no index leads to a protocol.
    assert not [each.sql for each in found if f'"{TABLE}"."activation_id" IN' in each.sql]
    all_stay_with_the_key(full)


def test_twice_as_many_protocols_are_twice_as_many_steps_of_the_same_size(pool: Pool) -> None:
    steps = []
    for key, count in (("one", 5 * SOME), ("two", 10 * SOME)):
        setting = make_setting(pool, key)
        protocols(activation(setting, 1, well=True), count, 1)
        with statements() as found:
            assert remove_setting(setting, None, NOW)
        steps.append(len([each for each in found if each.sql.startswith("UPDATE") and each.rows]))
    assert steps == [5, 10]


@pytest.mark.parametrize("at", [0, 1, 7, 15])
@pytest.mark.parametrize("done", [False, True])
def test_killed_at_any_step_it_is_gone_on_with(full: LaunchSetting, at: int, done: bool) -> None:
    """`done`: after the step's commit, else before it."""
    seen = 0

    def kill(sql: str) -> None:
        nonlocal seen
        if sql.startswith("UPDATE"):
            seen += 1
            if seen == at + 1 + done:
                raise Killed

    with statements(kill), pytest.raises(Killed):
        remove_setting(full, None, NOW)
    freed = FailureProtocol.objects.filter(setting=None).count()
    assert freed == (at + done) * SOME and FailureProtocol.objects.filter(activation=None).count() >= freed

    assert finish_removals(NOW) == 1
    all_stay_with_the_key(full)


def test_what_takes_longer_than_a_turn_is_gone_on_with_by_the_next(
    full: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "TURN_SECONDS", 0.0)
    assert not remove_setting(full, None, NOW)
    assert FailureProtocol.objects.filter(setting=None).count() == SOME

    turns = 1
    while LaunchSetting.objects.filter(pk=full.pk).exists():
        finish_removals(NOW)
        turns += 1
        assert turns < 100
    assert turns > 3 * MANY / SOME
    all_stay_with_the_key(full)


def test_what_came_between_the_last_step_and_the_row_keeps_the_row_until_the_next_turn(
    full: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An intake that looked the setting up before its activations went stores its protocol now."""
    remove_row = removal._remove_row

    def late(setting: LaunchSetting, now: Any) -> bool:
        monkeypatch.undo()
        row = protocols(None, 1, 0, id=uuid4())[0]
        gone = {"setting": setting, "setting_key": setting.key, "activation_id": uuid4()}
        FailureProtocol.objects.filter(pk=row.pk).update(**gone)
        return remove_row(setting, now)

    monkeypatch.setattr(removal, "_remove_row", late)
    with statements() as found:
        assert not remove_setting(full, None, NOW)
    assert not [each for each in found if each.in_transaction and each.rows and each.sql.startswith("UPDATE")]
    assert LaunchSetting.objects.filter(pk=full.pk).exists()

    monkeypatch.setattr(broker_service, "_connection", MemoryBroker().management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    assert finish_removals(NOW) == 1
    all_stay_with_the_key(full, 3 * MANY + 2)


def test_a_protocol_that_names_another_setting_is_let_go_with_the_run(
    full: LaunchSetting, pool: Pool
) -> None:
    other = make_setting(pool, "other", address="demo.other")
    row = FailureProtocol.objects.exclude(run=None).first()
    assert row is not None
    FailureProtocol.objects.filter(pk=row.pk).update(setting=other, setting_key="other")

    assert remove_setting(full, None, NOW)
    row.refresh_from_db()
    assert (row.setting_id, row.activation_id, row.run_id, row.setting_key) == (None, None, None, "other")


def test_an_activation_of_another_setting_is_one_that_nobody_knows(pool: Pool) -> None:
    setting, other = make_setting(pool), make_setting(pool, "other", address="demo.other")
    run = run_of(activation(other, 1, well=True))
    named = replace(reports.run_of(run), setting=setting.key)
    accept_batch(run.server, reports.Spool(run.server.name).batch(reports.protocol(named)), NOW)

    stored = FailureProtocol.objects.get()
    assert (stored.setting, stored.activation_id, stored.run_id, stored.activation_uuid) == (
        setting, None, None, run.activation_id,
    )  # fmt: skip


def test_windows_go_a_few_at_a_time(pool: Pool) -> None:
    setting = LaunchSetting.objects.create(
        key="report", agent="demo.report", kind="standalone", timing=Timing.DELAYED, pool=pool
    )
    schedule = Schedule.objects.create(setting=setting, every_seconds=60)
    for number in range(3 * SOME):
        Window.objects.create(schedule=schedule, due_at=NOW.replace(minute=number), result="started")
    deleted: list[int] = []

    def wrapped(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if sql.startswith(f'DELETE FROM "{Window._meta.db_table}"'):
            deleted.append(context["cursor"].rowcount)
        return answer

    with connection.execute_wrapper(wrapped):
        assert remove_setting(setting, None, NOW)
    assert sum(deleted) == 3 * SOME and max(deleted) == SOME


def test_the_page_decides_it_in_its_transaction_and_carries_it_out_after(full: LaunchSetting) -> None:
    User.objects.create_superuser("root", password="not-a-secret-in-tests")
    client = Client()
    assert client.login(username="root", password="not-a-secret-in-tests")
    with statements() as found:
        answer = client.post(f"/settings/{full.key}/remove/")
    assert answer.status_code == 302, answer.content
    assert not [each for each in found if each.in_transaction and each.rows and each.sql.startswith("UPDATE")]
    all_stay_with_the_key(full)
