"""Killed at every statement, and two at once: what servers say of open deliveries is kept once and whole, and
the first answer counts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from agents.acknowledgements import answers
from agents.acknowledgements.answers import Answerer
from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import Acknowledgement, Pool, Server
from console.reasons import said
from contract.acknowledgements import Action, EndState
from contract.messages import Answer
from contract.reasons import NO_ANSWER, NOT_OPEN
from failures.models import SpoolMark
from tests.web.rows import heartbeat
from tests.web.test_acknowledgements import House
from tests.web.test_failures_intake_at_once import at_once

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

TRANSACTIONS = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK")


class Killed(BaseException):
    """As `kill -9`: nothing of ours catches it, and what was not committed is gone."""


@pytest.fixture
def house(pool: Pool, server: Server) -> House:
    return House(pool, server)


def found() -> list[dict[str, Any]]:
    hidden = ("id", "created_at", "ended_at", "answered_at")
    rows = Acknowledgement.objects.order_by("acknowledgement").values()
    return [{name: value for name, value in row.items() if name not in hidden} for row in rows]


@contextmanager
def killed_at(statement: int, *, after: bool) -> Iterator[Callable[[], int]]:
    """Dies before or after the statement with this number, from 1; tells how many there were. Those that
    begin and end transactions are not counted: a process that dies there leaves what one leaves that dies
    beside them."""
    count = 0

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal count
        if sql.startswith(TRANSACTIONS):
            return run(sql, params, many, context)
        count += 1
        if count == statement and not after:
            raise Killed
        result = run(sql, params, many, context)
        if count == statement and after:
            raise Killed
        return result

    with connection.execute_wrapper(execute):
        yield lambda: count


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_batch_that_is_killed_anywhere_is_stored_whole_by_the_next_attempt(
    house: House, after: bool
) -> None:
    house.store(house.opened(house.id(1)))
    answers.acknowledge(answers.named(house.id(2), timezone.now()), Action.COMMIT, Answerer(), timezone.now())
    told = (
        house.opened(house.id(2)),
        house.ended(house.id(2), EndState.COMMITTED),
        house.opened(house.id(3)),
        house.ended(house.id(1), EndState.EXPIRED, NO_ANSWER(seconds=3.0)),
    )
    ids = tuple(uuid4() for _ in told)
    before, mark = found(), SpoolMark.objects.get().stored_up_to
    statement, died = 0, True
    while died:
        statement += 1
        house.number = mark
        died = False
        with killed_at(statement, after=after) as count:
            try:
                house.store(*told, ids=ids)
            except Killed:
                died = True
        if died:
            assert (found(), SpoolMark.objects.get().stored_up_to) == (before, mark), f"statement {statement}"
    assert count() >= 10 and statement == count() + 1
    states = {
        row["acknowledgement"]: (row["state"], row["action"], row["jms_message_id"] != "") for row in found()
    }
    assert states == {
        house.id(1): ("expired", "", True),
        house.id(2): ("committed", "COMMIT", True),
        house.id(3): ("open", "", True),
    }

    # The server did not get the receipt: it sends the same again.
    whole, house.number = found(), mark
    assert house.store(*told, ids=ids).known == 4
    assert found() == whole


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_answer_that_is_killed_anywhere_is_not_given_or_passed_on(house: House, after: bool) -> None:
    """Killed after its row: whoever gave it asks again, and its server has been told."""
    house.store(house.opened(house.id()))
    statement, died = 0, True
    while died:
        statement += 1
        died = False
        with killed_at(statement, after=after):
            try:
                row = answers.named(house.id(), timezone.now())
                row = answers.acknowledge(
                    row, Action.ROLLBACK, Answerer(through=said("script")), timezone.now()
                )
            except Killed:
                died = True
        state = Acknowledgement.objects.get().state
        passed = accept_heartbeat(house.server, heartbeat(house.server.name), timezone.now()).answers
        assert passed == ((Answer(house.id(), Action.ROLLBACK),) if state == "pending" else ())
    assert (row.state, row.action, str(row.answered_from)) == ("pending", "ROLLBACK", "script")
    assert statement > 3


def test_an_answer_that_comes_while_its_record_is_stored_keeps_both(house: House) -> None:
    """Between the intake's look and its insert somebody answers by the id alone."""
    waiting, done = house.id(), list[str]()

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("INSERT") and "agents_acknowledgement" in sql and not done:
            done.append(sql)
            answers.acknowledge(
                answers.named(waiting, timezone.now()), Action.COMMIT, Answerer(), timezone.now()
            )
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        house.store(house.opened(waiting))
    row = Acknowledgement.objects.get()
    assert done and (row.state, row.action) == ("pending", "COMMIT")
    assert (
        (row.message_key, row.jms_message_id) == ("k-1", "ID:1-2-3") and row.opened_at and row.opened_record
    )


def test_of_two_answers_at_once_one_counts(house: House) -> None:
    house.store(house.opened(house.id()))
    row = answers.named(house.id(), timezone.now())

    def give(action: Action) -> Any:
        try:
            return answers.acknowledge(row, action, Answerer(), timezone.now()).action
        except answers.AnsweredOtherwise:
            return "refused"

    actions = [Action.COMMIT, Action.ROLLBACK] * 3
    told = at_once(*[lambda action=action: give(action) for action in actions])
    first = Acknowledgement.objects.get().action
    assert [each == first for each in told] == [action.value == first for action in actions]
    assert {each for each in told if each != first} == {"refused"}


def test_an_answer_and_the_end_of_its_time_at_once_have_one_end(house: House) -> None:
    house.store(house.opened(house.id()))
    row = answers.named(house.id(), timezone.now())

    def give() -> str:
        try:
            return answers.acknowledge(row, Action.COMMIT, Answerer(), timezone.now()).state
        except answers.TooLate:
            return "too late"

    answered, _ = at_once(give, lambda: house.store(house.ended(house.id(), EndState.EXPIRED)))
    end = Acknowledgement.objects.get()
    assert end.state == "expired" and answered in ("pending", "expired", "too late")
    assert (end.action == "") == (answered == "too late")
    assert house.answers() == ()


def test_an_end_for_a_run_that_its_server_does_not_know_is_kept(house: House) -> None:
    """It was passed an answer after it had forgotten the run: the record names no setting."""
    answers.acknowledge(answers.named(house.id(), timezone.now()), Action.COMMIT, Answerer(), timezone.now())
    unknown = replace(house.of, setting="", agent="")
    receipt = house.store(replace(house.ended(house.id(), EndState.LOST, NOT_OPEN()), run=unknown))
    assert (receipt.new, receipt.refused, house.answers()) == (1, (), ())
    assert Acknowledgement.objects.get().state == "lost"


@pytest.mark.parametrize("wrong", ["x" * 300, "", "\x00", "a.b.c"])
def test_a_record_with_no_id_is_refused_and_stops_no_other(house: House, wrong: str) -> None:
    receipt = house.store(house.opened(wrong), house.ended(wrong, EndState.LOST), house.opened(house.id()))
    assert [refusal.number for refusal in receipt.refused] == [1, 2] and receipt.new == 1


def test_a_record_with_the_id_of_another_server_is_refused(house: House, pool: Pool) -> None:
    other = Server.objects.create(name="other")
    pool.servers.add(other)
    stranger = House.__new__(House)
    stranger.__dict__ |= house.__dict__ | {"server": other, "spool": uuid4(), "number": 0}
    receipt = stranger.store(replace(house.opened(house.id()), run=stranger.of))
    assert len(receipt.refused) == 1 and not Acknowledgement.objects.exists()
