"""A consumer in a process of its own: `python -m tests.broker.amqp.fence_holder URL USER PASSWORD ADDRESS
QUEUE` takes messages and keeps them unsettled; a line per message on standard output."""

import sys
import time

from broker.amqp.consumer import AmqpConsumer
from broker.amqp.python_values import decode_natural
from broker.port import Account, Delivery


class Holder:
    def opened(self) -> None:
        print("opened", flush=True)

    def lost(self, reason: str, permanent: bool) -> None:
        print("lost", flush=True)

    def delivered(self, delivery: Delivery) -> None:
        print(decode_natural(delivery.encoded).body, flush=True)

    def settled(self, tag: int, problem: str | None) -> None:
        raise AssertionError("nothing is sent here")


if __name__ == "__main__":
    url, user, password, address, queue = sys.argv[1:]
    AmqpConsumer(Account(url, user, password), address, queue, Holder(), 10).start()
    time.sleep(600)
