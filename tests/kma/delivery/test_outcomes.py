"""Each end of a handling, through real child processes: what is settled, recorded and counted (spec 2, the
table)."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.port import Settle
from contract.messages import Mode
from contract.typed import Typed
from kma.sdk.encoding import encoded_message
from tests.kma.conftest import Make
from tests.kma.fakes import eventually, message


def test_a_message_that_is_handled_well_is_accepted_and_leaves_no_record(stage: Make) -> None:
    one = stage([message({"do": "ok"})])
    one.settled(1)
    assert one.link.outcomes() == {Settle.ACCEPT: 1}
    one.run.stop(close=True)
    one.run.join(20)
    assert one.kinds() == ["closing"]
    assert one.records("closing")[0]["handled"] == 1


def test_an_exception_fails_the_delivery_until_the_broker_has_counted_all_attempts(stage: Make) -> None:
    one = stage(
        [message({"do": "raise", "type": "KeyError", "text": "sku"}, identity="ID:1")], max_attempts=3
    )
    one.settled(3)
    protocols = one.records("protocol")
    assert one.link.outcomes() == {Settle.FAIL: 3}
    assert [protocol["message"]["attempt"] for protocol in protocols] == [1, 2, 3]
    assert [protocol["last_attempt"] for protocol in protocols] == [False, False, True]
    first = protocols[0]
    assert (first["outcome"], first["exception_type"], first["exception_text"]) == (
        "raised",
        "KeyError",
        "'sku'",
    )
    assert first["message"]["key"] == "ID:1"
    assert first["place"] == "scripted.py:_raise"
    assert "kma/handling/handler.py" not in first["traceback"]
    assert first["counted"] and not first["temporary"]
    assert first["process_id"] > 0 and first["duration_seconds"] > 0
    assert one.run.report().counts.same == 3
    assert one.run.report().restarts == 0


def test_temporary_unavailability_costs_an_attempt_and_is_not_counted(stage: Make) -> None:
    one = stage([message({"do": "temporary", "first": 1})])
    one.settled(2)
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["temporary"], protocol["counted"]) == ("temporary", True, False)
    assert protocol["exception_type"] == "kma.agent.TemporaryUnavailable"
    (recovered,) = one.records("recovered")
    assert recovered["message"]["attempt"] == 2
    report = one.run.report()
    assert (report.handled, report.failed, report.temporary) == (1, 0, 1)


@pytest.mark.parametrize(
    "body", ["no json", b"\xff\xfe", "[1", {"do": "invalid"}, {"do": "dance"}, [7], "[" * 100_000]
)
def test_an_invalid_message_is_rejected_at_once(stage: Make, body: Any) -> None:
    one = stage([message(body)], max_attempts=10)
    one.settled(1)
    assert one.link.outcomes() == {Settle.REJECT: 1}
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["last_attempt"]) == ("invalid", True)
    assert protocol["exception_type"] == "kma.agent.InvalidMessage"


def test_bytes_that_are_no_message_are_rejected_like_an_invalid_one(stage: Make) -> None:
    one = stage([b"\x00\x53\x77\xa1\xff!", message({"do": "ok"})])
    one.settled(2)
    assert one.link.outcomes() == {Settle.REJECT: 1, Settle.ACCEPT: 1}
    (protocol,) = one.records("protocol")
    assert protocol["outcome"] == "invalid" and protocol["message"]["weak"]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"do": "exit", "code": 7}, "exit:7"),
        ({"do": "exit", "code": 0}, "exit:0"),
        ({"do": "kill", "signal": "SIGKILL"}, "signal:SIGKILL"),
        ({"do": "kill", "signal": "SIGSEGV"}, "signal:SIGSEGV"),
    ],
)
def test_the_death_of_a_child_is_the_failure_of_the_message_at_hand_only(
    stage: Make, step: Any, kind: str
) -> None:
    ok = [message({"do": "ok"}) for _ in range(6)]
    one = stage([*ok[:3], message({**step, "first": 1}, identity="ID:bad"), *ok[3:]])
    one.settled(8)
    assert one.link.outcomes() == {Settle.ACCEPT: 7, Settle.FAIL: 1}
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("child_died", kind)
    assert protocol["message"]["key"] == "ID:bad"
    assert kind.split(":")[1] in protocol["exception_text"]
    assert one.run.report().restarts == 1
    assert len(one.links) == 1, "the link outlives the child"


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
def test_what_is_no_exception_to_python_is_a_failure_here(stage: Make, kind: str) -> None:
    one = stage([message({"do": "raise", "type": kind, "first": 1})])
    one.settled(2)
    assert one.records("protocol")[0]["outcome"] == "raised"
    assert one.records("protocol")[0]["exception_type"] == kind
    assert one.run.report().restarts == 0


def test_a_handling_over_its_time_is_killed_and_the_message_comes_back(stage: Make) -> None:
    one = stage([message({"do": "sleep", "seconds": 60, "first": 1})], handling_timeout_seconds=0.4)
    one.settled(2)
    (protocol,) = one.records("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("timed_out", "timeout")
    assert 0.4 <= protocol["duration_seconds"] < 60, "it did not end by itself"
    assert one.link.outcomes() == {Settle.FAIL: 1, Settle.ACCEPT: 1}


def test_in_transacted_mode_the_transaction_timeout_is_the_limit_of_a_handling(stage: Make) -> None:
    script = message({"do": "sleep", "seconds": 60, "first": 1})
    one = stage([script], mode=Mode.TRANSACTED, transaction_timeout_seconds=0.4)
    one.settled(2)
    assert one.records("protocol")[0]["outcome"] == "timed_out"


@pytest.mark.parametrize("mode", [Mode.TRANSACTED, Mode.AUTO])
def test_what_an_agent_sends_goes_out_in_one_transaction_with_the_acceptance(stage: Make, mode: Mode) -> None:
    script = {"do": "send", "destination": "demo.invoices", "count": 2, "body": "hello"}
    one = stage([message(script)], mode=mode)
    one.settled(1)
    assert [outgoing.destination for outgoing in one.link.sent] == ["demo.invoices"] * 2
    assert [outgoing.message.body for outgoing in one.link.sent] == [Typed("string", "hello")] * 2
    assert [outgoing.message.properties["index"] for outgoing in one.link.sent] == [
        Typed("long", 0),
        Typed("long", 1),
    ]
    eventually(lambda: one.run.report().handled == 1, "the count")


def test_nothing_is_sent_when_the_agent_raises_after_it(stage: Make) -> None:
    one = stage([message([{"do": "send", "destination": "x"}, {"do": "raise", "first": 1}])])
    one.settled(2)
    assert len(one.link.sent) == 1, "only by the attempt that returned"


def test_sends_that_the_broker_refuses_fail_the_message(stage: Make) -> None:
    one = stage([], max_attempts=2)
    one.link.refuse_sends = "AMQ229032: no such address"
    one.link.put(message({"do": "send", "destination": "no.such"}))
    one.settled(2)
    protocols = one.records("protocol")
    assert [protocol["exception_type"] for protocol in protocols] == ["send refused", "send refused"]
    assert "no such address" in protocols[0]["exception_text"]
    assert one.link.outcomes() == {Settle.FAIL: 2}


def test_a_letter_that_was_given_back_has_its_outcome_reported(stage: Make) -> None:
    origin = {"x-opt-ORIG-QUEUE": Typed("string", "DLQ.orders"), "x-opt-ORIG-MESSAGE-ID": Typed("long", 4711)}
    good = message({"do": "ok"}, identity="ID:good", annotations=origin)
    bad = message({"do": "raise", "first": 1}, identity="ID:bad", annotations=origin)
    one = stage([good, bad])
    one.settled(3)
    outcomes = {(record["message"]["key"], record["result"]) for record in one.records("replay_outcome")}
    assert outcomes == {("ID:good", "handled"), ("ID:bad", "failed"), ("ID:bad", "handled")}
    first = one.records("replay_outcome")[0]["message"]
    assert (first["replayed"], first["dead_letter_queue"], first["dead_letter_id"]) == (
        True,
        "DLQ.orders",
        4711,
    )
    assert one.records("protocol")[0]["message"]["replayed"]


def test_the_edited_copy_of_a_letter_has_its_outcome_reported(stage: Make) -> None:
    about = {"ma_letter": "ID:case", "ma_letter_queue": "DLQ.orders", "ma_letter_id": 12}
    one = stage([encoded_message('{"do": "ok"}', about)])
    one.settled(1)
    (outcome,) = one.records("replay_outcome")
    told = outcome["message"]
    assert (outcome["result"], told["key"], told["dead_letter_queue"], told["dead_letter_id"]) == (
        "handled", "ID:case", "DLQ.orders", 12,
    )  # fmt: skip


def test_a_copy_that_died_and_came_back_is_the_letter_that_the_broker_names(stage: Make) -> None:
    about = {"ma_letter": "ID:case", "ma_letter_queue": "DLQ.orders", "ma_letter_id": 12}
    newer = {"_AMQ_ORIG_QUEUE": "DLQ.orders", "_AMQ_ORIG_MESSAGE_ID": 40}
    one = stage([encoded_message('{"do": "ok"}', {**about, **newer})])
    one.settled(1)
    assert one.records("replay_outcome")[0]["message"]["dead_letter_id"] == 40


def test_the_origin_of_a_letter_is_read_from_properties_too(stage: Make) -> None:
    properties = {"_AMQ_ORIG_QUEUE": "DLQ.orders", "_AMQ_ORIG_MESSAGE_ID": 12}
    one = stage([encoded_message('{"do": "ok"}', properties)])
    one.settled(1)
    assert one.records("replay_outcome")[0]["message"]["dead_letter_id"] == 12


def test_successes_before_counts_what_went_well_since_the_last_counted_failure(stage: Make) -> None:
    ok, bad, away = {"do": "ok"}, {"do": "raise"}, {"do": "temporary"}
    one = stage([message(step) for step in (ok, ok, bad, ok, away, ok, ok, bad)], max_attempts=1)
    one.settled(8)
    before = [(record["outcome"], record["successes_before"]) for record in one.records("protocol")]
    assert before == [("raised", 2), ("temporary", 1), ("raised", 3)]


def test_a_new_agent_object_goes_on_after_an_exception_in_the_same_process(
    stage: Make, tmp_path: Path
) -> None:
    (tmp_path / "counting_agent.py").write_text(
        "from kma.agent import Agent, agent\n"
        "made = 0\n"
        "@agent('test.counting')\n"
        "class Counting(Agent):\n"
        "    def __init__(self):\n"
        "        global made\n"
        "        made += 1\n"
        "    def run_agent(self, message, context):\n"
        "        if message.body == 'bad': raise ValueError(made)\n"
        "        context.send('x', str(made))\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        one = stage(
            [message("good"), message("bad"), message("good")],
            modules=("counting_agent",),
            agent="test.counting",
            max_attempts=1,
        )
        one.settled(3)
    assert [outgoing.message.body.value for outgoing in one.link.sent] == ["1", "2"]
    assert one.run.report().restarts == 0


def test_isolate_gives_each_failure_a_new_process(stage: Make, tmp_path: Path) -> None:
    truth = tmp_path / "truth"
    scripts = [{"do": "raise"}, {"do": "ok"}, {"do": "raise"}, {"do": "ok"}]
    one = stage(
        [message(step) for step in scripts],
        isolate=True,
        max_attempts=1,
        parameters={"truth_file": str(truth)},
    )
    one.settled(4)
    eventually(lambda: one.run.report().restarts == 2, "two restarts")
    pids = [json.loads(line)["pid"] for line in truth.read_text().splitlines()]
    assert len(pids) == 4 and len(set(pids)) == 3


def test_a_process_that_grew_too_large_is_replaced_after_the_message(stage: Make) -> None:
    one = stage([message({"do": "allocate", "mb": 100}), message({"do": "ok"})], child_memory_mb=90)
    one.settled(2)
    assert one.link.outcomes() == {Settle.ACCEPT: 2}
    eventually(lambda: one.run.report().restarts == 1, "a restart")
