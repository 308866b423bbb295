"""The mode CLIENT through real child processes: answers from within, from elsewhere, none at all."""

import json
import os
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.port import AddressUnknown, Settle
from contract.acknowledgements import Action, make_id, verify
from contract.messages import Answer, Mode
from contract.typed import Typed
from kma.agent_discovery import OfferedAgents
from kma.host.supervisor import RunSupervisor
from kma.sdk.encoding import encoded_message
from kma.sdk.job import Reply
from tests.kma.conftest import Make
from tests.kma.fakes import Stage, eventually, message, said

SECRET = "5e" * 32
OK, COMMIT, ROLLBACK = {"do": "ok"}, {"do": "acknowledge"}, {"do": "acknowledge", "action": "JBXRollback"}
BAD = {"do": "raise", "type": "KeyError"}
SEND = {"do": "send", "destination": "demo.invoices"}


@pytest.fixture
def client(stage: Make, tmp_path: Path) -> Make:
    def make(messages: list[bytes], **fields: Any) -> Stage:
        known = {"mode": Mode.CLIENT, "acknowledgement_secret": SECRET}
        return stage(messages, **{**known, "parameters": {"truth_file": str(tmp_path / "truth")}, **fields})

    return make


def truth(one: Stage) -> list[dict[str, Any]]:
    path = Path(one.desired.parameters["truth_file"])
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def answers(one: Stage) -> list[str]:
    return [line["state"] for line in truth(one) if "answered" in line]


def opened(one: Stage, number: int = 1) -> list[dict[str, Any]]:
    eventually(lambda: len(one.records("acknowledgement_opened")) >= number, f"{number} open deliveries")
    return one.records("acknowledgement_opened")


def ended(one: Stage, number: int = 1) -> list[tuple[str, str]]:
    eventually(lambda: len(one.records("acknowledgement_ended")) >= number, f"{number} ends")
    return [
        (record["state"], said([record["reason"]] if record["reason"] else ()))
        for record in one.records("acknowledgement_ended")
    ]


def answer(one: Stage, record: dict[str, Any], action: Action) -> None:
    one.run.pass_on(Answer(record["acknowledgement"], action))


def with_timeout(script: Any, value: Any) -> bytes:
    return encoded_message(json.dumps(script), {"JBXAcknowledgmentTimeout": value})


def test_a_commit_from_within_takes_what_was_sent_before_it_into_its_transaction(client: Make) -> None:
    one = client([message([SEND, COMMIT, {**SEND, "body": "later"}])])
    one.settled(1)
    eventually(lambda: bool(one.published), "what was sent after the commit")
    assert (len(one.link.sent), len(one.published)) == (1, 1)
    eventually(lambda: bool(answers(one)), "the answer")
    assert answers(one) == ["committed"]
    eventually(lambda: one.run.report().handled == 1, "the success")
    assert one.records() == [], "nobody else has heard of it"


def test_a_rollback_from_within_fails_the_delivery_once_and_drops_what_was_sent(client: Make) -> None:
    one = client([message([{**SEND, "first": 1}, {**ROLLBACK, "first": 1}, {**COMMIT}])], max_attempts=3)
    one.settled(2)
    assert one.link.outcomes() == {Settle.FAIL: 1, Settle.ACCEPT: 1}
    assert (one.link.sent, one.published) == ([], [])
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("rolled_back", "rollback")
    assert protocol["counted"] and not protocol["last_attempt"]
    eventually(lambda: len(answers(one)) == 3, "all answers")
    assert answers(one) == [
        "rolled_back",
        "refused: Acknowledged with ROLLBACK: the delivery was rolled back.",
        "committed",
    ]


def test_a_handling_that_returns_unanswered_frees_its_handler_and_waits(client: Make) -> None:
    one = client([message(OK, identity=f"ID:{n}") for n in range(40)], concurrency=1)
    records = opened(one, 40)
    assert one.link.settled == [] and len(one.link.outstanding) == 40
    first = records[0]
    assert (first["jms_message_id"], first["message"]["key"], first["due_at"]) == ("ID:0", "ID:0", None)
    assert verify(SECRET, first["acknowledgement"])
    for number, record in enumerate(records):
        answer(one, record, Action.COMMIT if number % 2 else Action.ROLLBACK)
    one.settled(40)
    states = [state for state, _ in ended(one, 40)]
    assert (states.count("committed"), states.count("rolled_back")) == (20, 20)
    assert one.link.outcomes() == {Settle.ACCEPT: 20, Settle.FAIL: 20}
    eventually(lambda: one.run.report().handled == 20, "the successes")


def test_the_same_answer_again_changes_nothing_and_the_first_one_wins(client: Make) -> None:
    one = client([message(OK)])
    (record,) = opened(one)
    for action in (Action.COMMIT, Action.ROLLBACK, Action.COMMIT, Action.COMMIT):
        answer(one, record, action)
    assert ended(one) == [("committed", "")]
    one.settled(1)
    answer(one, record, Action.ROLLBACK)
    time.sleep(0.3)
    assert len(one.records("acknowledgement_ended")) == 1 and one.link.outcomes() == {Settle.ACCEPT: 1}


def test_no_answer_in_time_is_a_failure_of_its_own_kind(client: Make) -> None:
    one = client([message(OK)], acknowledgement_timeout_seconds=0.3, max_attempts=1)
    (record,) = opened(one)
    times = [datetime.fromisoformat(record[name]) for name in ("occurred_at", "due_at")]
    assert ((times[1] - times[0]).total_seconds(), record["timeout_seconds"]) == (0.3, 0.3)
    one.settled(1)
    assert ended(one) == [("expired", "No acknowledgement arrived within 0.3 s.")]
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("unanswered", "acknowledgement_timeout")
    assert protocol["last_attempt"] and one.link.outcomes() == {Settle.FAIL: 1}


@pytest.mark.parametrize("value", [1, Typed("int", 1), "1"])
def test_a_message_brings_its_own_timeout(client: Make, value: Any) -> None:
    one = client([with_timeout(OK, value)], acknowledgement_timeout_seconds=60.0)
    assert opened(one)[0]["timeout_seconds"] == 1
    assert ended(one)[0][0] == "expired"
    assert [protocol["outcome"] for protocol in one.records("protocol")] == ["unanswered"]


@pytest.mark.parametrize("value", [0, -3, "soon", 1.5, True, b"7"])
def test_a_timeout_that_is_none_is_noted_and_the_settings_counts(client: Make, value: Any) -> None:
    one = client([with_timeout(OK, value)], acknowledgement_timeout_seconds=60.0)
    (record,) = opened(one)
    assert record["timeout_seconds"] == 60.0
    (noted,) = one.records("protocol")
    assert (noted["outcome"], noted["temporary"], noted["counted"]) == ("noted", True, False)
    assert "JBXAcknowledgmentTimeout" in noted["exception_text"] and "60 s" in noted["exception_text"]
    answer(one, record, Action.COMMIT)
    assert ended(one) == [("committed", "")]
    assert one.run.report().counts.any == 0


def test_an_exception_after_a_commit_counts_and_the_message_stays_accepted(client: Make) -> None:
    one = client([message([COMMIT, BAD])], max_attempts=1)
    eventually(lambda: bool(one.records("protocol")), "the protocol")
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("raised_after_commit", "KeyError")
    assert protocol["counted"] and not protocol["last_attempt"]
    assert one.link.outcomes() == {Settle.ACCEPT: 1}
    assert one.run.report().counts.any == 1


def test_an_exception_after_a_rollback_is_told_and_counts_once(client: Make) -> None:
    one = client([message([ROLLBACK, BAD])], max_attempts=1)
    eventually(lambda: len(one.records("protocol")) == 2, "both protocols")
    found = [
        (record["outcome"], record["exception_type"], record["counted"]) for record in one.records("protocol")
    ]
    assert found == [("rolled_back", "rollback", True), ("raised", "KeyError", False)]
    assert one.link.outcomes() == {Settle.FAIL: 1} and one.run.report().counts.any == 1
    one.link.put(message(COMMIT))
    one.settled(2)
    assert one.link.outcomes() == {Settle.FAIL: 1, Settle.ACCEPT: 1}, "its handler goes on"


def test_a_process_that_dies_after_its_commit_leaves_the_message_accepted(client: Make) -> None:
    one = client([message([COMMIT, {"do": "exit", "code": 7}])])
    eventually(lambda: bool(one.records("protocol")), "the protocol")
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("raised_after_commit", "exit:7")
    assert one.link.outcomes() == {Settle.ACCEPT: 1}


def test_an_exception_without_an_answer_is_a_failure_as_ever(client: Make) -> None:
    one = client([message([SEND, BAD])], max_attempts=1)
    one.settled(1)
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], one.published) == ("raised", [])
    assert one.records("acknowledgement_opened") == []


def test_a_commit_that_the_broker_refuses_fails_the_delivery_and_sends_nothing(client: Make) -> None:
    one = client([], max_attempts=1)
    one.link.refuse_sends = "no such address"
    one.link.put(message([SEND, COMMIT]))
    one.settled(1)
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("raised", "send refused")
    eventually(lambda: bool(answers(one)), "the answer")
    assert answers(one) == ["refused: Commit failed: no such address"]
    assert (one.link.sent, one.published, one.link.outcomes()) == ([], [], {Settle.FAIL: 1})


def test_a_commit_that_the_broker_refuses_while_nobody_handles_it_is_rolled_back(client: Make) -> None:
    one = client([message(OK)], max_attempts=1)
    (record,) = opened(one)
    one.link.refuse_sends = "disk full"
    answer(one, record, Action.COMMIT)
    assert ended(one) == [("rolled_back", "Commit failed: disk full")]
    one.settled(1)
    assert [protocol["exception_type"] for protocol in one.records("protocol")] == ["send refused"]


def test_what_an_unanswered_handling_sent_is_at_the_broker_before_its_delivery_waits(client: Make) -> None:
    one = client([message({**SEND, "count": 3})])
    opened(one)
    assert len(one.published) == 3 and one.link.sent == []


def test_what_an_unanswered_handling_sent_and_nobody_took_fails_it(client: Make) -> None:
    one = client([], max_attempts=1)
    one.refuse_published = AddressUnknown("no such address")
    one.link.put(message(SEND))
    one.settled(1)
    assert [protocol["exception_type"] for protocol in one.records("protocol")] == ["send refused"]
    assert one.link.outcomes() == {Settle.FAIL: 1} and one.records("acknowledgement_opened") == []


def test_events_follow_a_commit_in_its_transaction_and_a_rollback_beside_it(client: Make) -> None:
    wish = {"committed_destination": "demo.done", "rolled_back_destination": "demo.undone"}
    one = client([message(OK, identity="ID:1"), message(OK, identity="ID:2")], max_attempts=1, **wish)
    first, second = opened(one, 2)
    answer(one, first, Action.COMMIT)
    answer(one, second, Action.ROLLBACK)
    ended(one, 2)
    eventually(lambda: bool(one.published), "the event of the rollback")
    ((done,), (undone,)) = one.link.sent, one.published
    assert (done.destination, undone.destination) == ("demo.done", "demo.undone")
    told = json.loads(done.message.body.value)
    assert (told["event"], told["message_key"]) == ("committed", "ID:1")
    assert told["acknowledgement"] == first["acknowledgement"]
    assert json.loads(undone.message.body.value)["event"] == "rolled_back"


def test_a_lost_connection_ends_what_waits_and_its_messages_come_back(client: Make) -> None:
    one = client([message(OK, identity=f"ID:{n}") for n in range(3)])
    records = opened(one, 3)
    one.link.lose()
    assert [state for state, _ in ended(one, 3)] == ["lost"] * 3
    opened(one, 6)
    assert one.records("protocol") == [] and one.link.settled == []
    answer(one, records[0], Action.COMMIT)
    time.sleep(0.3)
    assert len(one.records("acknowledgement_ended")) == 3 and one.link.settled == [], (
        "the old answer touches nothing"
    )


def test_a_connection_lost_during_a_handling_refuses_its_answer(client: Make) -> None:
    one = client([message([{"do": "sleep", "seconds": 0.6}, {**COMMIT}])])
    eventually(lambda: len(truth(one)) == 1, "a start")
    one.link.lose()
    one.settled(1)
    eventually(lambda: len(answers(one)) == 2, "both answers")
    assert answers(one) == [
        "refused: The connection was lost before acknowledgement; the broker will redeliver the message.",
        "committed",
    ]


def test_a_stop_gives_back_what_waits_and_tells_the_ma_before_its_closing_record(client: Make) -> None:
    one = client([message(OK), message(OK)])
    opened(one, 2)
    one.run.stop(close=True, reason="test")
    one.run.join(20)
    assert one.kinds() == [*["acknowledgement_opened"] * 2, *["acknowledgement_ended"] * 2, "closing"]
    assert one.spooled(one.records("closing")[0]) == 4
    assert (
        one.link.settled == [] and len(one.link.outstanding) == 2 and one.spool.open_acknowledgements() == []
    )


def test_an_answer_that_arrives_while_it_is_handled_counts_and_is_told(client: Make) -> None:
    one = client([message({"do": "sleep", "seconds": 0.8})])
    eventually(lambda: len(truth(one)) == 1, "a start")
    one.run.pass_on(Answer(truth(one)[0]["acknowledgement"], Action.COMMIT))
    one.settled(1)
    assert ended(one) == [("committed", "")] and len(one.records("acknowledgement_opened")) == 1
    eventually(lambda: one.run.report().handled == 1, "the success")


def test_an_answer_to_a_delivery_that_is_not_open_is_told_lost_once(client: Make) -> None:
    one = client([message(COMMIT)])
    one.settled(1)
    unknown = make_id(SECRET, "srv-1", one.desired.activation, 1, bytes(16))
    for _ in range(3):
        one.run.pass_on(Answer(unknown, Action.COMMIT))
        one.run.pass_on(Answer(truth(one)[0]["acknowledgement"], Action.COMMIT))
    assert sorted(state for state, _ in ended(one, 2)) == ["committed", "lost"]
    time.sleep(0.3)
    assert len(one.records("acknowledgement_ended")) == 2


def held(one: Stage, *scripts: Any) -> None:
    """Begins handlings whose commits are under way."""
    one.link.held = []
    one.link.put(*map(message, scripts))
    eventually(lambda: len(one.link.held or ()) == len(scripts), "a transaction")


def test_a_connection_lost_during_a_commit_leaves_it_in_doubt_and_says_so(client: Make) -> None:
    one = client([], max_attempts=1)
    held(one, [{**COMMIT, "first": 1}, OK])
    one.link.lose()
    eventually(lambda: bool(answers(one)), "the answer")
    assert "the broker will redeliver it" in answers(one)[0]
    eventually(lambda: len(one.link.held or ()) == 2, "the second commit")
    one.link.held = one.link.held[1:] if one.link.held else []
    one.link.let_go()
    one.settled(1)
    assert one.records() == []


def test_a_process_that_dies_while_its_commit_is_under_way_does_not_undo_it(client: Make) -> None:
    one = client([], max_attempts=1)
    held(one, COMMIT)
    os.kill(truth(one)[0]["pid"], signal.SIGKILL)
    time.sleep(0.3)
    assert one.records() == [], "first the broker's word"
    one.link.let_go()
    eventually(lambda: bool(one.records("protocol")), "the protocol")
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("raised_after_commit", "signal:SIGKILL")
    assert one.link.outcomes() == {Settle.ACCEPT: 1}


def test_a_process_that_dies_while_its_commit_is_refused_fails_once(client: Make) -> None:
    one = client([], max_attempts=1)
    held(one, COMMIT)
    os.kill(truth(one)[0]["pid"], signal.SIGKILL)
    time.sleep(0.3)
    one.link.refuse_sends = "disk full"
    one.link.let_go()
    one.settled(1)
    assert [protocol["outcome"] for protocol in one.records("protocol")] == ["child_died"]
    assert one.link.outcomes() == {Settle.FAIL: 1}


def test_an_agent_that_waits_no_longer_is_told_so_and_its_commit_goes_on(client: Make) -> None:
    one = client([], max_attempts=1)
    held(one, [SEND, {**COMMIT, "timeout": 0.2}])
    time.sleep(0.5)
    one.link.let_go()
    eventually(lambda: bool(one.records("protocol")), "the protocol")
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == (
        "raised_after_commit",
        "kma.agent.TemporaryUnavailable",
    )
    assert (len(one.link.sent), one.published) == (1, [])
    one.link.put(message(COMMIT))
    one.settled(2)
    eventually(lambda: bool(answers(one)), "the answer")
    assert answers(one) == ["committed"], "the late reply disturbs nobody"


def test_a_stop_waits_for_a_commit_that_is_under_way(client: Make) -> None:
    one = client([message(OK)])
    (record,) = opened(one)
    one.link.held = []
    answer(one, record, Action.COMMIT)
    eventually(lambda: bool(one.link.held), "a transaction")
    one.run.stop(close=True)
    time.sleep(0.3)
    assert one.run.alive
    one.link.let_go()
    one.run.join(20)
    assert ended(one) == [("committed", "")] and one.records("closing")[0]["handled"] == 1


def test_another_handling_of_the_run_answers_by_the_id(client: Make) -> None:
    one = client([message(OK)], concurrency=2)
    (record,) = opened(one)
    named = {"id": record["acknowledgement"]}
    one.link.put(message([COMMIT | named, ROLLBACK | named, COMMIT]))
    one.settled(2)
    eventually(lambda: len(answers(one)) == 3, "all answers")
    assert answers(one) == ["committed", "refused: The delivery is committed already.", "committed"]
    assert ended(one) == [("committed", "")]


def test_another_runs_delivery_is_answered_through_the_ma(client: Make) -> None:
    foreign = make_id(SECRET, "srv-2", UUID(int=7), 1, bytes(16))
    one = client([message([{**COMMIT, "id": foreign}, {**COMMIT, "id": foreign}, COMMIT])])
    for reply in (Reply("committed"), Reply("lost", "it went")):
        eventually(lambda: bool(one.elsewhere), "the question")
        question, told = one.elsewhere.pop()
        assert (question.acknowledgement, question.action) == (foreign, Action.COMMIT)
        told(reply)
    one.settled(1)
    assert answers(one)[:2] == ["committed", "refused: it went"]


@pytest.mark.parametrize("action", ["ACCEPT", "", "commit!"])
def test_another_action_is_refused_and_named(client: Make, action: str) -> None:
    one = client(
        [message({"do": "acknowledge", "action": action} if action else {"do": "acknowledge", "action": " "})]
    )
    eventually(lambda: bool(one.records("protocol")), "the protocol")
    protocol = one.records("protocol")[0]
    assert (
        protocol["exception_type"] == "ValueError"
        and "COMMIT (JBXCommit) or ROLLBACK" in protocol["exception_text"]
    )


def test_what_is_no_id_is_refused(client: Make) -> None:
    one = client([message([{**COMMIT, "id": "made-up"}, COMMIT])])
    one.settled(1)
    eventually(lambda: len(answers(one)) == 2, "both answers")
    assert answers(one) == ["refused: not an acknowledgement id", "committed"]


def test_no_more_deliveries_wait_than_the_bound(client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kma.acknowledgement.open_deliveries.MOST_OPEN", 5)
    one = client([message(OK) for _ in range(12)])
    records = opened(one, 5)
    time.sleep(0.5)
    assert len(one.records("acknowledgement_opened")) == 5 and len(one.link.outstanding) == 5
    for record in records[:2]:
        answer(one, record, Action.COMMIT)
    opened(one, 7)
    assert len(one.link.outstanding) == 5


def test_a_limited_run_ends_when_all_answers_are_there(client: Make) -> None:
    one = client([message(OK) for _ in range(3)], limit_messages=2)
    records = opened(one, 2)
    time.sleep(0.3)
    alive = one.run.alive
    for record in records:
        answer(one, record, Action.COMMIT)
    one.run.join(20)
    assert alive and not one.run.alive and one.records("closing")[0]["handled"] == 2


def test_an_answer_for_a_run_that_is_over_is_told_lost_once(client: Make) -> None:
    one = client([message(OK)])
    (record,) = opened(one)
    one.run.stop(close=True)
    one.run.join(20)
    keeper = RunSupervisor(one.around, lambda: OfferedAgents((), ()))
    never = make_id(SECRET, "srv-1", UUID(int=9), 4, bytes(16))
    for _ in range(3):
        keeper.pass_on([Answer(record["acknowledgement"], Action.COMMIT), Answer(never, Action.COMMIT)])
        keeper.pass_on([Answer("no id at all", Action.COMMIT)])
    ends = [(each["acknowledgement"], each["state"]) for each in one.records("acknowledgement_ended")]
    assert ends == [(record["acknowledgement"], "lost"), (never, "lost")]
    assert one.records("acknowledgement_ended")[1]["run"]["epoch"] == 4
