"""Letters and jobs for acceptance tests: messages die without an agent, and every count is the broker's own."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from broker.amqp_adapter import AmqpBrowser, AmqpConsumer, AmqpPublisher
from broker.errors import BrokerError
from broker.port import Message, Outgoing, Settle
from contract.typed import Typed
from tests.dlq.stage import Seen
from tests.product.house import House

DLA = "MA.DLA"
OVER = ("done", "failed", "stopped", "cancelled")


def dead(house: House, key: str, address: str, count: int) -> list[str]:
    """Publishes messages with ids of their own and refuses them as a KMA would; their ids, once they are indexed."""
    ids = [f"ID:{key}-{n}" for n in range(count)]
    publisher = AmqpPublisher(house.account("publisher", "amqp"))
    try:
        publisher.publish([Outgoing(address, _message(id_)) for id_ in ids])
    finally:
        publisher.close()
    seen = Seen()
    consumer = AmqpConsumer(house.account("kma", "amqp"), address, key, seen, count)
    consumer.start()
    try:
        found = [seen.deliveries.get(timeout=60) for _ in ids]
        consumer.settle([(delivery.tag, Settle.REJECT) for delivery in found])
    finally:
        consumer.stop()
    house.until(f"{key} is indexed", lambda: len(house.dead_letters(key)) == count)
    return ids


def _message(id_: str) -> Message:
    return Message(body=Typed("string", f'{{"id": "{id_}"}}'), message_id=Typed("string", id_))


def lying(house: House, queue: str, address: str = DLA) -> Counter[str]:
    """The ids of the messages in a queue, each with how often it is there."""
    browser = AmqpBrowser(house.account("ma-ops", "amqp"))
    try:
        found = browser.browse(address, queue, limit=100_000)
        return Counter(str(each.message.message_id.value) for each in found if each.message and each.message.message_id)
    finally:
        browser.close()


def counts(house: House, *queues: str) -> list[int] | None:
    """None while the broker is away."""
    try:
        return house.count(*queues)
    except BrokerError:
        return None


def state(house: House, job: dict[str, Any]) -> dict[str, Any]:
    return dict(house.call("GET", f"replays/{job['id']}/"))


def ended(house: House, jobs: Sequence[dict[str, Any]], seconds: float = 400) -> list[dict[str, Any]]:
    """The jobs when all are over."""
    house.until(
        "the jobs are over",
        lambda: all(state(house, job)["state"] in OVER and state(house, job)["finished_at"] for job in jobs),
        seconds,
    )
    return [state(house, job) for job in jobs]
