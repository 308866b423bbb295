"""Letters that somebody's consumer holds while others come: a walk sees as many as it counted, and not
these."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from broker.amqp.consumer import AmqpConsumer
from broker.port import Message, Settle
from contract.typed import Typed
from dlq.index.walk import Walk
from dlq.models import DeadLetter
from dlq.replay.worker import agreement
from tests.dlq.stage import Seen, Stage

pytestmark = pytest.mark.django_db(transaction=True)
DEAD, HELD = 20, 3


def die(stage: Stage, key: str, count: int) -> None:
    stage.publish(f"t.{key}", *[Message(body=Typed("string", f"m {n}")) for n in range(count)])
    stage.consume(key, count, Settle.REJECT)


class Joined:
    """The real browser; as many letters as are held die right before it reads, after they were counted."""

    def __init__(self, stage: Stage, key: str) -> None:
        self.stage, self.key = stage, key

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        die(self.stage, self.key, HELD)
        self.stage.until_dead(queue, DEAD + HELD)
        yield from self.stage.queues.browser.walk(address, queue)


class Held:
    """A queue of which the index knows all, and a consumer that holds some of it."""

    def __init__(self, stage: Stage) -> None:
        self.key = stage.key("h")
        self.queue = f"DLQ.{self.key}"
        die(stage, self.key, DEAD)
        stage.follow(lambda: self.rows().count() == DEAD)
        seen = Seen()
        self.consumer = AmqpConsumer(
            stage.account("ops", "amqp"), settings.MA_DLA_ADDRESS, self.queue, seen, HELD
        )
        self.consumer.start()
        for _ in range(HELD):
            seen.deliveries.get(timeout=20)

    def rows(self) -> Any:
        return DeadLetter.objects.filter(orig_queue=self.key)


@pytest.fixture
def held(stage: Stage) -> Iterator[Held]:
    one = Held(stage)
    yield one
    one.consumer.stop()


def test_the_index_does_not_take_them_for_gone(stage: Stage, held: Held) -> None:
    browser: Any = Joined(stage, held.key)
    walk = Walk(held.queue, settings.MA_DLA_ADDRESS, stage.management, browser, timezone.now())
    while walk.step(timezone.now()):
        pass
    assert held.rows().filter(state="gone").count() == 0


def test_a_job_does_not_take_them_for_missing(stage: Stage, held: Held) -> None:
    browser: Any = Joined(stage, held.key)
    found = agreement.present(held.queue, replace(stage.queues, browser=browser), lambda *_: True)
    assert found is not None
    missing = [
        number for number in held.rows().values_list("orig_message_id", flat=True) if number not in found
    ]
    assert missing == []
