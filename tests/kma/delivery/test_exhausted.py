"""A message without an attempt left goes where its setting says, or to the dead letters; never nowhere."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.amqp.codec import decode
from broker.port import Consumer, ConsumerEvents, Settle
from contract.message_key import message_key
from contract.messages import DesiredRun, Mode
from contract.outcomes import AfterLast
from contract.typed import Typed
from kma.host.recovery import recover_all
from kma.sdk.encoding import encoded_message
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from tests.broker.houses import House
from tests.kma.conftest import Lines, Make
from tests.kma.fakes import Stage, contents, eventually, message, said
from tests.kma.queues import of, publish, script

pytestmark = pytest.mark.process

ASIDE: dict[str, Any] = {"after_last": AfterLast.EXCEPTION, "exception_destination": "demo.broken"}
DISCARD: dict[str, Any] = {"after_last": AfterLast.DISCARD}
RAISE, INVALID = {"do": "raise", "type": "KeyError", "text": "sku"}, {"do": "invalid"}


def dispositions(one: Stage) -> list[tuple[str, str]]:
    return [(record["outcome"], record["disposition"]) for record in one.records("protocol")]


def test_the_last_attempt_sends_a_marked_copy_and_accepts(stage: Make) -> None:
    secret = {"iban": "DE00", "_AMQ_DUPL_ID": "7", "ma_letter_queue": "DLQ.orders"}
    body = encoded_message(json.dumps(RAISE), secret, message_id="ID:1")
    one = stage([body], max_attempts=3, masked_properties=("iban",), **ASIDE)
    one.settled(3)
    assert one.link.outcomes() == {Settle.FAIL: 2, Settle.ACCEPT: 1}
    assert dispositions(one) == [("raised", ""), ("raised", ""), ("raised", "exception")]
    (sent,) = one.link.sent
    copy = sent.message
    assert sent.destination == "demo.broken" and copy.body == decode(body).body and copy.durable
    assert message_key(copy.message_id, b"", {}).text == "ID:1"
    last = [record for record in one.spool.head(10, 10**6) if record.kind == "protocol"][-1]
    assert {name: item.value for name, item in copy.properties.items() if name != "ma_failed_at"} == {
        "iban": "DE00",
        "ma_failed_address": "demo.orders",
        "ma_failed_queue": "orders",
        "ma_failed_message": "ID:1",
        "ma_failed_attempts": 3,
        "ma_failed_exception": "KeyError",
        "ma_failed_protocol": str(last.id),
        "ma_failed_trail": '["demo.orders"]',
    }
    eventually(lambda: one.spool.attempts("orders") == {}, "nothing known of it any more")
    assert one.run.report().failed == 3


def test_a_message_that_went_ahead_is_said_to_be_of_its_subscription(stage: Make) -> None:
    one = stage([encoded_message(json.dumps(RAISE), {})], max_attempts=1, queue="orders.ahead", **ASIDE)
    one.settled(1)
    assert one.link.sent[0].message.properties["ma_failed_queue"] == Typed("string", "orders")


@pytest.mark.parametrize(
    ("trail", "ends"),
    [
        ('["demo.broken"]', "dlq"),
        ('["demo.broken", "demo.third"]', "dlq"),
        ('["demo.orders", "demo.third"]', "exception"),
        ('{"demo.broken": 1}', "exception"),
        ('[["demo.broken"], 7, null]', "exception"),
        ("demo.broken", "exception"),
        (7, "exception"),
        ("[" * 100_000, "exception"),
        ('["\\ud800"]', "exception"),
    ],
)
def test_what_failed_there_before_does_not_go_round(
    stage: Make, lines: Lines, trail: object, ends: str
) -> None:
    """Two settings whose exception destinations are each other's would hand a message on for ever."""
    one = stage(
        [encoded_message(json.dumps(RAISE), {"ma_failed_trail": trail}, message_id="ID:1")],
        max_attempts=1,
        **ASIDE,
    )
    one.settled(1)

    assert dispositions(one) == [("raised", ends)]
    if ends == "dlq":
        assert one.link.outcomes() == {Settle.FAIL: 1} and one.link.sent == []
        (told,) = [
            line for line in lines if line["event"] == "exception destination visited before: dead-lettered"
        ]
        assert told["exception_destination"] == "demo.broken"
    else:
        (sent,) = one.link.sent
        trail = str(sent.message.properties["ma_failed_trail"].value)
        assert json.loads(trail)[-1] == "demo.orders" and trail.isascii(), "half a character is no UTF-8"


@pytest.mark.parametrize("mode", list(Mode))
def test_an_invalid_message_goes_there_at_once_in_every_mode(stage: Make, mode: Mode) -> None:
    one = stage(
        [message(INVALID, identity="ID:1"), message({"do": "ok"})], mode=mode, max_attempts=9, **ASIDE
    )
    eventually(lambda: len(one.link.sent) == 1, "the copy")
    assert dispositions(one) == [("invalid", "exception")]


def test_discarding_accepts_and_leaves_a_protocol_and_a_line_with_the_digest(
    lines: Lines, stage: Make
) -> None:
    one = stage([message(RAISE, identity="ID:1")], max_attempts=1, **DISCARD)
    one.settled(1)
    assert one.link.outcomes() == {Settle.ACCEPT: 1} and one.link.sent == [] and one.link.dead == []
    assert dispositions(one) == [("raised", "discarded")]
    eventually(lambda: one.spool.attempts("orders") == {}, "its end noted")
    digest = one.records("protocol")[0]["message"]["body_digest"]
    (told,) = [line for line in lines if line["event"] == "message discarded"]
    assert told["digest"] == digest and "KeyError" not in str(told)


@pytest.mark.parametrize("wish", [ASIDE, DISCARD])
def test_what_the_broker_refuses_is_a_dead_letter_and_the_protocol_says_so(
    stage: Make, wish: dict[str, Any]
) -> None:
    one = stage([], max_attempts=1, **wish)
    one.link.refuse_sends = "AMQ229032: no such address"
    one.link.put(message(RAISE, identity="ID:1"))
    one.settled(1)
    assert one.link.outcomes() == {Settle.REJECT: 1}
    first, second = one.records("protocol")
    assert (second["outcome"], second["disposition"], second["counted"]) == ("noted", "dlq", False)
    assert second["exception_type"] == "disposition refused" and "no such address" in second["exception_text"]
    eventually(lambda: one.spool.attempts("orders") == {}, "nothing known of it any more")
    assert one.run.report().failed == 1 and first["counted"]


def test_bytes_that_are_no_message_are_dead_letters(stage: Make) -> None:
    one = stage([b"\x00\x53\x77\xa1\xff!"], **ASIDE)
    one.settled(1)
    assert one.link.outcomes() == {Settle.REJECT: 1} and dispositions(one) == [("invalid", "dlq")]


def test_a_connection_lost_in_the_middle_of_the_commit_is_no_second_failure(stage: Make) -> None:
    one = stage([], max_attempts=1, **ASIDE)
    one.link.held = []
    one.link.put(message(RAISE, identity="ID:1"))
    eventually(lambda: bool(one.link.held), "the transaction")
    one.link.held = None
    one.link.lose()
    eventually(lambda: len(one.link.sent) == 1, "the copy, by the next delivery")
    assert dispositions(one) == [("raised", "exception"), ("noted", "exception")]
    assert one.run.report().failed == 1
    eventually(lambda: one.spool.attempts("orders") == {}, "nothing known of it any more")


def test_nothing_is_sent_for_a_connection_that_went_while_the_disk_took_nothing(
    stage: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Spool.append

    def broken(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    one = stage([], max_attempts=1, **ASIDE)
    eventually(lambda: one.link.credit > 0, "credit")
    monkeypatch.setattr(Spool, "append", broken)
    one.link.put(message(RAISE, identity="ID:1"))
    eventually(lambda: "disk is full" in said(one.run.report().problems), "the problem")
    one.link.lose()
    eventually(lambda: not one.run._inbox.pending, "the run to hear of it")
    monkeypatch.setattr(Spool, "append", real)
    eventually(lambda: len(one.link.sent) == 1, "the copy, by the next delivery")
    assert dispositions(one) == [("raised", "exception"), ("noted", "exception")]
    assert one.run.alive and not one.run.crashed and one.run.report().failed == 1


def test_a_stop_waits_for_what_is_on_its_way(stage: Make) -> None:
    one = stage([], max_attempts=1, max_failures=1, **ASIDE)
    one.link.held = []
    one.link.put(message(RAISE, identity="ID:1"))
    eventually(lambda: bool(one.link.held), "the transaction")
    alive = one.run.alive
    one.link.let_go()
    one.run.join(20)
    assert alive and not one.run.alive and one.link.outcomes() == {Settle.ACCEPT: 1}


PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from contract.outcomes import AfterLast
from kma.spool.records import Spool
from tests.kma.fakes import FakeLink, Stage, message

def kill(where, kind, name):
    real = getattr(kind, name)
    def replacement(self, *args, **more):
        if where == "after":
            real(self, *args, **more)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(kind, name, replacement)

where, what, step = sys.argv[2:5]
kill(where, Spool if what == "append" else FakeLink, what)
aside = {"after_last": AfterLast.EXCEPTION, "exception_destination": "demo.broken"}
stage = Stage(Path(sys.argv[1]), [message(step, identity="ID:1")], max_attempts=2, **aside)
stage.run.start()
time.sleep(20)
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    ("where", "what", "outcome", "known"),
    [
        ("before", "append", "kma_died", 1),
        ("after", "append", "invalid", 2),
        ("before", "settle_with_sends", "invalid", 2),
        ("after", "settle_with_sends", "invalid", 2),
    ],
)
def test_killed_anywhere_it_has_one_protocol_and_is_not_handled_once_more(
    tmp_path: Path, where: str, what: str, outcome: str, known: int
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), where, what, json.dumps(INVALID)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9, done.stderr.decode()
    file = SpoolFile(tmp_path / "spool.sqlite3")
    spool = Spool(file, 10**6)
    recover_all(tmp_path, spool, Ledger(file))
    assert [record["outcome"] for record in contents(spool)] == [outcome]
    assert spool.attempts("orders") == {"ID:1": known}
    file.close()
    if known < 2:
        return
    truth = tmp_path / "truth"
    wish = {"max_attempts": 2, "parameters": {"truth_file": str(truth)}, "epoch": 2, **ASIDE}
    again = Stage(tmp_path, [message(INVALID, identity="ID:1")], **wish)
    again.run.start()
    eventually(lambda: len(again.link.sent) == 1, "the copy")
    assert not truth.exists(), "it is not handled again"
    again.end()


# -- on brokers ----------------------------------------------------------------------------------------------


Begin = Callable[[DesiredRun], Stage]


@pytest.fixture
def begin(either: House, tmp_path: Path) -> Iterator[Begin]:
    begun: list[Stage] = []

    def connect(run: DesiredRun, events: ConsumerEvents) -> Consumer:
        return either.consumer(run.destination, run.queue, events, 0)  # type: ignore[arg-type]  # an Owner is one

    def make(desired: DesiredRun) -> Stage:
        folder = tmp_path / str(len(begun))
        folder.mkdir()
        one = Stage(folder, [], connect=connect)
        one.desired = desired
        one.run = type(one.run)(desired, "1", one.around)
        begun.append(one)
        one.run.start()
        return one

    yield make
    for one in begun:
        one.end()


def test_a_broker_takes_the_copy_and_the_acceptance_together(either: House, begin: Begin) -> None:
    setting, broken = either.setting(attempts=2, delay=50), either.setting()
    publish(either, setting, script(RAISE, "ID:1"), script(INVALID, "ID:2"), script({"do": "ok"}, "ID:3"))
    aside = {"after_last": AfterLast.EXCEPTION, "exception_destination": broken.address}
    one = begin(of(setting, max_attempts=2, mode=Mode.TRANSACTED, **aside))
    eventually(lambda: either.figures(broken).messages == 2, "both copies", 30)
    found = {
        found.properties["ma_failed_message"].value: found
        for found in either.look(broken.address, broken.key)
    }
    assert found["ID:1"].properties["ma_failed_attempts"] == Typed("int", 2)
    assert found["ID:2"].properties["ma_failed_queue"] == Typed("string", setting.key)
    eventually(lambda: either.figures(setting).messages == 0, "an empty queue")
    assert not either.dead(setting) and one.run.report().handled == 1


def test_two_settings_do_not_hand_a_message_to_each_other_for_ever(either: House, begin: Begin) -> None:
    first, second = either.setting(attempts=2, delay=50), either.setting(attempts=2, delay=50)
    publish(either, first, script(RAISE, "ID:1"))
    ones = [
        begin(of(here, max_attempts=2, after_last=AfterLast.EXCEPTION, exception_destination=there.address))
        for here, there in ((first, second), (second, first))
    ]
    either.until_dead(second, 1)
    assert [dispositions(one) for one in ones] == [
        [("raised", ""), ("raised", "exception")],
        [("raised", ""), ("raised", "dlq")],
    ]
    assert not either.dead(first)
    assert [either.figures(each).messages for each in (first, second)] == [0, 0]


@pytest.mark.parametrize("to", ["test.nowhere", "no such address!"])
def test_a_destination_that_is_not_there_costs_no_message(either: House, begin: Begin, to: str) -> None:
    setting = either.setting(attempts=5, delay=50)
    publish(either, setting, script(INVALID, "ID:1"))
    one = begin(of(setting, max_attempts=5, after_last=AfterLast.EXCEPTION, exception_destination=to))
    either.until_dead(setting, 1)
    eventually(lambda: len(dispositions(one)) == 2, "the note")
    assert dispositions(one) == [("invalid", "exception"), ("noted", "dlq")]


def test_a_broker_forgets_what_is_discarded(either: House, begin: Begin) -> None:
    setting = either.setting(attempts=2, delay=50)
    publish(either, setting, script(RAISE, "ID:1"), script(INVALID, "ID:2"))
    one = begin(of(setting, max_attempts=2, **DISCARD))
    eventually(lambda: either.figures(setting).messages == 0, "an empty queue", 30)
    assert sorted(dispositions(one)) == [("invalid", "discarded"), ("raised", ""), ("raised", "discarded")]
    assert not either.dead(setting)
