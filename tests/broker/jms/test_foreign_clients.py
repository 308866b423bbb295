"""JMS clients of other houses, over Core and AMQP: each of their messages reaches an agent once and as it was
sent."""

import pytest

from broker.management.queues import queue_figures
from broker.port import Settle
from kma.sdk.message import Message
from tests.broker.houses import DLA, Owner, RealHouse
from tests.broker.jms import jms_producer
from tests.broker.jms.jms_producer import Sent

SMALL, LARGE = 10, 150_000
KINDS = ("text", "bytes", "map", "object", "stream")


class Encoded(Owner):
    """Deliveries as a KMA has them."""

    def take(self) -> tuple[int, Message]:
        content = self.wait("delivered")
        return content.tag, Message(content.encoded)  # type: ignore[attr-defined]

    def delivered(self, delivery: object) -> None:
        self.events.put(("delivered", delivery))


def body_of(sent: Sent) -> object:
    text = "ж" * sent.size
    return {
        "text": f"{sent.number} {text}",
        "bytes": sent.number.to_bytes(4, "big") + bytes(sent.size),
        "map": {"number": sent.number, "text": text, "bytes": b"\x00\xff"},
        "stream": [sent.number, text, None],
    }.get(sent.kind)


@pytest.mark.parametrize("protocol", ["core", "amqp"])
def test_messages_of_every_kind_and_size_arrive_once_and_equal_at_a_window_of_one(
    real: RealHouse, protocol: str
) -> None:
    setting = real.setting()
    good = [
        Sent(kind, 10 * n + m, size) for n, kind in enumerate(KINDS) for m, size in enumerate((SMALL, LARGE))
    ]
    # Only a Core client's stream with bytes is one that the broker cannot deliver.
    bad = (
        [Sent("stream with bytes", 90 + n, size) for n, size in enumerate((SMALL, LARGE))]
        if protocol == "core"
        else []
    )
    url = real.service.core_url if protocol == "core" else real.service.amqp_url
    jms_producer.send(url, real.service.publisher, setting.address, [*bad, *good])
    owner = Encoded()
    consumer = real.consumer(setting.address, setting.key, owner, 1)
    consumer.start()
    try:
        for sent in good:
            tag, received = owner.take()
            assert (received.properties["number"], received.kind) == (sent.number, sent.kind)
            if sent.kind == "object":
                assert received.body.startswith(b"\xac\xed") and len(received.body) > sent.size
            else:
                assert received.body == body_of(sent)
            consumer.settle([(tag, Settle.ACCEPT)])
        owner.nothing(1.5)
    finally:
        consumer.stop()
    assert queue_figures(real.management, setting.dead, DLA).messages == len(bad)
