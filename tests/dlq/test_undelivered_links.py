"""A message that the broker cannot deliver is one dead letter, whatever ends and begins again: on real
processes."""

import time
from pathlib import Path

from broker.management.desired_topology import UNREADABLE
from broker.port import Message, Settle
from contract.typed import Typed
from tests.broker.jms import jms_producer
from tests.broker.jms.jms_producer import Sent
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage
from tests.dlq.undeliverable import attach, in_queue, send_undeliverable, until, walk

IMPORT = "from dlq.models import DeadLetter"


def until_letters(processes: Processes, key: str, number: int) -> None:
    deadline = time.monotonic() + 60
    while (found := processes.letters(key)) != number:
        assert time.monotonic() < deadline, f"the index has {found} letters of {key}"


def test_one_letter_stays_however_often_links_walks_and_the_feed_begin_again(
    stage: Stage, tmp_path: Path
) -> None:
    processes, key = Processes(tmp_path, stage), stage.key()
    unreadable = int(stage.management.attribute(f"queue.{UNREADABLE}", "MessagesAdded"))
    send_undeliverable(stage, key)
    for copies in (1, 2, 2):
        consumer = attach(stage, key)
        until(stage, f"DLQ.{key}", copies)
        walk(stage, key)
        processes.follow_feed()
        assert processes.letters(key) == 1
        assert len(in_queue(stage, f"DLQ.{key}")) == 1
        walk(stage, key)
        consumer.stop()
        until(stage, key, 1)  # the broker gives it back
    with processes.feed():
        until(stage, key, 0)  # for good: nobody was there to take it
    attach(stage, key).stop()
    assert (in_queue(stage, key), len(in_queue(stage, f"DLQ.{key}"))) == ([], 1)
    assert int(stage.management.attribute(f"queue.{UNREADABLE}", "MessagesAdded")) == unreadable
    assert "AP8=" in processes.python(
        f"{IMPORT}; print(DeadLetter.objects.get(setting_key='{key}').body_text)"
    )


def test_a_large_one_that_comes_again_without_its_body_does_not_stop_the_feed(
    stage: Stage, tmp_path: Path
) -> None:
    """The broker deletes the body with the first letter, and drops who reads the next one, without a word."""
    processes, key = Processes(tmp_path, stage), stage.key()
    address = f"t.{key}"
    with processes.feed():
        large = [Sent("stream with bytes", number, 200_000) for number in (1, 2)]
        jms_producer.send(stage.service.core_url, stage.service.publisher, address, large)
        first = attach(stage, key)
        until(stage, f"DLQ.{key}", 2)
        until_letters(processes, key, 2)
        first.stop()
        second = attach(stage, key)  # each dies once more
        other = stage.key()
        stage.publish(f"t.{other}", Message(body=Typed("string", "behind them")))
        stage.consume(other, 1, Settle.REJECT)
        until_letters(processes, other, 1)
        until(stage, f"DLQ.{key}", 2)
        second.stop()
        until_letters(processes, key, 2)
        until(stage, key, 0)
    assert stage.feed_is_empty()


def test_one_that_nobody_can_read_is_stored_without_its_body_and_stops_nothing(
    stage: Stage, tmp_path: Path
) -> None:
    """Its first letter, with the body, is gone; the feed is killed when it has stored what is left."""
    processes, key = Processes(tmp_path, stage), stage.key()
    large = [Sent("stream with bytes", 1, 200_000)]
    jms_producer.send(stage.service.core_url, stage.service.publisher, f"t.{key}", large)
    for _ in range(2):
        stage.management.call(f"queue.DLQ.{key}", "removeAllMessages")
        stage.drain_feed()
        consumer = attach(stage, key)
        until(stage, f"DLQ.{key}", 1)
        consumer.stop()
        until(stage, key, 1)
    processes.crashes("feed: head stored", "follow_dead_letters")
    assert (processes.letters(key), len(in_queue(stage, "DLQ.feed"))) == (1, 1)
    with processes.feed():
        until(stage, "DLQ.feed", 0)
        until(stage, key, 0)
    assert (processes.letters(key), len(in_queue(stage, f"DLQ.{key}"))) == (1, 1)
    told = processes.python(
        f"{IMPORT}; print(DeadLetter.objects.get(setting_key='{key}').content.annotations)"
    )
    assert "malformed_body" in told
