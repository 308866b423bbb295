"""A message that the broker cannot turn into AMQP ends as one dead letter, whatever ends and begins again
meanwhile."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from broker.amqp.codec import decode
from broker.port import Settle
from contract.names import BROKER_ID, BYTES_IN_STREAM, NOT_CONVERTIBLE
from contract.typed import Typed
from dlq.index import undelivered
from dlq.models import DeadLetter, UndeliveredMessage
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage
from tests.dlq.undeliverable import attach, in_queue, send_undeliverable, until

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("number", [1, 40])
def test_as_many_letters_stay_as_there_are_messages(stage: Stage, number: int) -> None:
    key = stage.key()
    send_undeliverable(stage, key, number)
    for copies in (number, 2 * number):
        consumer = attach(stage, key)
        until(stage, f"DLQ.{key}", copies)
        consumer.stop()
        until(stage, key, number)
    stage.follow(lambda: len(in_queue(stage, f"DLQ.{key}")) == number)
    assert stage.feed_is_empty()
    found = DeadLetter.objects.filter(setting_key=key)
    assert (found.count(), found.filter(state="dead").count()) == (number, number)
    rows = UndeliveredMessage.objects.filter(queue=key)
    assert [(row.deaths, row.reason) for row in rows] == [(2, "bytes_in_stream")] * number


def test_a_copy_of_the_letter_is_delivered(stage: Stage) -> None:
    key = stage.key()
    send_undeliverable(stage, key)
    consumer = attach(stage, key)
    stage.follow(lambda: DeadLetter.objects.filter(setting_key=key).exists())
    consumer.stop()
    until(stage, key, 1)
    stage.follow(lambda: not in_queue(stage, key))
    message = decode(bytes(DeadLetter.objects.get(setting_key=key).encoded))
    assert message.annotations[NOT_CONVERTIBLE].value == BYTES_IN_STREAM
    stage.publish(f"t.{key}", message)
    [copy] = stage.consume(key, 1, Settle.ACCEPT)
    assert decode(copy).body == Typed("list", (Typed("binary", b"\x00\xff"),))
    assert not {NOT_CONVERTIBLE, BROKER_ID} & decode(copy).annotations.keys()


@pytest.mark.kill
def test_a_feed_killed_where_it_has_noted_the_message_goes_on_there(stage: Stage, tmp_path: Path) -> None:
    processes, key = Processes(tmp_path, stage), stage.key()
    send_undeliverable(stage, key)
    for copies in (1, 2):
        consumer = attach(stage, key)
        until(stage, f"DLQ.{key}", copies)
        consumer.stop()
        until(stage, key, 1)
    for _ in range(2):
        processes.crashes("undelivered: noted", "follow_dead_letters")
    processes.follow_feed()
    assert (processes.letters(key), len(in_queue(stage, f"DLQ.{key}"))) == (1, 1)


def test_what_the_broker_forgets_when_it_starts_is_forgotten_here(stage: Stage) -> None:
    now = timezone.now()
    began = now - timedelta(milliseconds=int(stage.management.attribute("broker", "UptimeMillis")))
    for number, last_at in enumerate((began - timedelta(minutes=1), now)):
        UndeliveredMessage.objects.create(
            node_id="n", queue="q", message_id=number, letter_id=1, last_at=last_at
        )
    undelivered.forget_before_restart(stage.management, now)
    assert [row.message_id for row in UndeliveredMessage.objects.all()] == [1]


def test_a_queue_that_is_gone_needs_no_attention(stage: Stage) -> None:
    UndeliveredMessage.objects.create(node_id="n", queue="no-such-queue", message_id=7, letter_id=1)
    assert undelivered.take_out(stage.management) == []
    assert not UndeliveredMessage.objects.exists()
