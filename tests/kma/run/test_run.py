"""A run from start to closing record: children, link, stop, and what goes wrong around them."""

import json
import os
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.port import Settle
from contract.messages import DesiredRun
from contract.records import BreakerCounts, RunState
from contract.typed import Typed
from kma.run import message_run as run_module
from kma.run.message_run import MessageRun
from kma.sdk.encoding import encoded_message
from kma.spool.journal import Journal
from kma.spool.records import Spool
from tests.kma.conftest import Make
from tests.kma.fakes import eventually, message, said

OK = {"do": "ok"}


def truth(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_messages_behind_a_long_handling_go_to_another_child(stage: Make) -> None:
    one = stage([message({"do": "sleep", "seconds": 20}), *(message(OK) for _ in range(20))], concurrency=2)
    one.settled(20)
    assert one.run.report().in_progress == 1, "nothing waited for the sleeper"


def test_a_message_is_handled_once_however_often_it_is_taken_back(stage: Make, tmp_path: Path) -> None:
    file = tmp_path / "truth"
    naps = [message({"do": "sleep", "seconds": 0.03 * (n % 4)}, identity=f"ID:{n}") for n in range(60)]
    one = stage(naps, concurrency=3, parameters={"truth_file": str(file)})
    one.settled(60)
    assert sorted(line["id"] for line in truth(file)) == sorted(f"ID:{n}" for n in range(60))


def test_a_stop_finishes_what_is_at_hand_and_gives_the_rest_back(stage: Make, tmp_path: Path) -> None:
    file = tmp_path / "truth"
    quick, slow = {"do": "sleep", "seconds": 0.02}, {"do": "sleep", "seconds": 1}
    scripts = [quick] * 60 + [slow] * 10  # while they are quick it takes some in advance
    one = stage([message(script) for script in scripts], concurrency=2, parameters={"truth_file": str(file)})
    eventually(lambda: len(truth(file)) == 62, "two slow ones have begun")
    one.run.stop(close=True, reason="test")
    one.run.join(20)
    assert one.link.outcomes() == {Settle.ACCEPT: 62}
    assert len(truth(file)) == 62, "nothing was begun after the stop"
    assert len(one.link.outstanding) > 0 and one.link.stopped, (
        "given back by closing the link, not by a settlement"
    )
    assert one.run.state is RunState.FINISHED
    (closing,) = one.records("closing")
    assert (closing["handled"], one.spooled(closing)) == (62, 0)
    assert not list(one.folder.glob("*.journal"))


def test_after_the_grace_period_children_are_killed_and_no_attempt_is_spent(
    stage: Make, tmp_path: Path
) -> None:
    file = tmp_path / "truth"
    script = message({"do": "sleep", "seconds": 60})
    one = stage([script], grace_seconds=0.3, parameters={"truth_file": str(file)})
    eventually(lambda: len(truth(file)) == 1, "a start")
    one.run.stop(close=True)
    one.run.join(10)
    assert not one.run.alive
    assert one.link.settled == [] and one.records("protocol") == []
    with pytest.raises(ProcessLookupError):
        os.kill(truth(file)[0]["pid"], 0)


def test_a_lost_connection_loses_no_message_and_blames_none(stage: Make, tmp_path: Path) -> None:
    file = tmp_path / "truth"
    script = {"do": "sleep", "seconds": 0.5}
    one = stage([message(script, identity=f"ID:{n}") for n in range(4)], parameters={"truth_file": str(file)})
    eventually(lambda: len(truth(file)) == 1, "a start")
    one.link.lose()
    one.settled(4)
    assert one.link.outcomes() == {Settle.ACCEPT: 4}
    assert one.records() == []
    assert one.run.report().handled == 4, "what was done in vain is not counted"
    assert len(truth(file)) == 5, "the one at hand was handled again"


def test_what_fails_after_its_connection_was_lost_has_its_protocol_all_the_same(
    stage: Make, tmp_path: Path
) -> None:
    file = tmp_path / "truth"
    script = [{"do": "sleep", "seconds": 0.5}, {"do": "raise"}]
    one = stage([message(script)], max_attempts=1, parameters={"truth_file": str(file)})
    eventually(lambda: len(truth(file)) == 1, "a start")
    one.link.lose()
    one.settled(1)
    assert len(one.records("protocol")) == 2 == len(truth(file))


def test_known_attempts_count_and_the_run_rejects_at_the_limit(stage: Make) -> None:
    known = {"ID:known": 2, "ID:exhausted": 4}
    bad, gone = message({"do": "raise"}, identity="ID:known"), message(OK, identity="ID:exhausted")
    one = stage([bad, gone], max_attempts=4, known_attempts=known)
    one.settled(3)
    assert one.link.outcomes() == {Settle.REJECT: 2, Settle.FAIL: 1}
    attempts = [(record["message"]["attempt"], record["last_attempt"]) for record in one.records("protocol")]
    assert attempts == [(3, False), (4, True)], "the broker counted 1, we knew of 2 more"


def test_a_message_that_was_given_back_begins_anew(stage: Make) -> None:
    one = stage([], max_attempts=2)
    one.spool.append([], attempts=[("orders", "ID:x@7", 1)])
    letter = {"x-opt-ORIG-QUEUE": Typed("string", "DLQ.orders"), "x-opt-ORIG-MESSAGE-ID": Typed("long", 8)}
    one.link.put(message({"do": "raise"}, identity="ID:x", annotations=letter))
    one.settled(2)
    assert [record["message"]["attempt"] for record in one.records("protocol")] == [1, 2]


def test_a_full_spool_stops_new_messages_and_nothing_else(stage: Make) -> None:
    bad = [message({"do": "raise", "text": "x" * 5000}) for _ in range(40)]
    one = stage(bad, max_attempts=1, spool_bytes=100_000)
    eventually(lambda: one.spool.full, "a full spool")
    eventually(lambda: "spool is full" in said(one.run.report().problems), "the report of it")
    time.sleep(0.5)
    kept = len(one.records())
    assert len(one.link.settled) == kept < 40, "what was begun is stored, the rest waits"
    one.spool.taken(one.spool.last_number())
    one.settled(40 if kept >= 20 else kept + 1)


def test_nothing_is_settled_while_the_spool_cannot_be_written(
    stage: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Spool.append

    def broken(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Spool, "append", broken)
    one = stage([message({"do": "raise"})], max_attempts=1)
    eventually(lambda: "disk is full" in said(one.run.report().problems), "the problem")
    assert one.link.settled == []
    monkeypatch.setattr(Spool, "append", real)
    one.settled(1)
    assert len(one.records("protocol")) == 1
    eventually(lambda: not one.run.report().problems, "the end of the problem")


def test_properties_are_bounded_masked_and_plain_json(stage: Make) -> None:
    properties = {
        "card": "4111",
        "big": "x" * 5000,
        "n": 7,
        "f": float("nan"),
        "b": b"\x00\xff",
        "huge": 2**60,
        "t": True,
    }
    one = stage(
        [encoded_message('{"do": "raise"}', properties)], max_attempts=1, masked_properties=("card", "other")
    )
    one.settled(1)
    shown = one.records("protocol")[0]["message"]["properties"]
    assert shown["card"] == "•••" and "4111" not in json.dumps(one.records())
    assert (shown["n"], shown["f"], shown["b"], shown["t"]) == (7, "nan", "0x00ff", True)
    assert shown["huge"] == str(2**60) and len(shown["big"]) == 1000


def test_limits_change_while_the_run_is_alive(stage: Make) -> None:
    one = stage([])
    eventually(lambda: one.run.report().connected, "a link")
    fields = {name: getattr(one.desired, name) for name in DesiredRun.__dataclass_fields__}
    one.run.change(DesiredRun(**{**fields, "handling_timeout_seconds": 0.3, "known_attempts": {"ID:k": 2}}))
    one.link.put(message({"do": "sleep", "seconds": 30}, identity="ID:k"))
    one.settled(1)
    (protocol,) = one.records("protocol")
    assert (protocol["exception_type"], protocol["message"]["attempt"]) == ("timeout", 3)


def test_totals_survive_a_stop_that_is_not_the_end(stage: Make) -> None:
    one = stage([message(OK), message({"do": "raise"})], max_attempts=1)
    one.settled(2)
    one.run.stop(close=False)
    one.run.join(20)
    assert one.kinds() == ["protocol"], "no closing record: the run goes on later"
    again = MessageRun(one.desired, "1", one.around)
    report = again.report()
    assert (report.handled, report.failed, report.counts.same_type) == (1, 1, "RuntimeError")
    one.run = again
    again.start()
    eventually(lambda: again.report().connected, "a link")
    one.links[-1].put(message({"do": "raise"}))
    eventually(lambda: len(one.records("protocol")) == 2, "a second protocol")
    again.stop(close=True)
    again.join(20)
    (closing,) = one.records("closing")
    assert (one.spooled(closing), closing["handled"], closing["failed"]) == (2, 1, 2)


def test_breaker_counts_begin_anew_with_an_activation_unless_the_ma_carries_them_over(stage: Make) -> None:
    one = stage([message({"do": "ok"}), message({"do": "raise"})], max_attempts=1)
    one.settled(2)
    one.run.stop(close=True)
    one.run.join(20)
    next_one = replace(one.desired, activation=UUID(int=9))
    assert MessageRun(next_one, "1", one.around).report().counts.any == 0
    carried = replace(next_one, carried_counts=BreakerCounts("OSError", 2, 5))
    assert MessageRun(carried, "1", one.around).report().counts == BreakerCounts("OSError", 2, 5)
    same = replace(one.desired, epoch=2)
    assert MessageRun(same, "1", one.around).report().counts == BreakerCounts("RuntimeError", 1, 1)


def test_the_journal_is_left_where_endings_could_not_be_stored(
    stage: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(run_module, "_COMMIT_SECONDS", 0.2)
    monkeypatch.setattr(Spool, "append", broken)
    one = stage([message({"do": "raise"}, identity="ID:1")], grace_seconds=0.2)
    eventually(lambda: "I/O error" in said(one.run.report().problems), "the problem")
    one.run.stop(close=True)
    one.run.join(20)
    assert one.run.crashed and one.link.settled == []
    journal = Journal.open(one.run.journal_path)
    assert [start.attempt for start in journal.unfinished()] == [1]
    journal.close()


def test_a_protocol_says_whether_its_message_is_persistent(stage: Make) -> None:
    fleeting = encoded_message('{"do": "raise"}', {}, durable=False)
    one = stage([fleeting, encoded_message('{"do": "raise"}', {})], max_attempts=1)
    one.settled(2)
    assert [record["message"]["durable"] for record in one.records("protocol")] == [False, True]
