"""manage.py publish_demo_orders: a steady trickle of orders of an invented shop, in the JSON that the
agent `demo.orders` takes, until it is stopped. Most go well."""

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandParser

from broker.port import Account, BrokerError, Message, Outgoing, Publisher
from broker.stomp.client import StompPublisher
from contract.typed import Typed
from ma_site.env import read_publisher

ADDRESS = "demo.orders"
PRICES = {"LAMP-2": 19.90, "DESK-1": 249.00, "CHAIR-7": 89.50, "SHELF-3": 64.00, "RUG-5": 120.00}
CURRENCIES = ("EUR", "EUR", "EUR", "CHF", "GBP")
COUNTRIES = ("DE", "AT", "CH", "FR", "NL")

# One deck holds every kind; each is dealt once before a new deck is shuffled, so that all are seen within a
# minute.
DECK = (
    *["standard"] * 26,
    *["express"] * 5,
    *["return"] * 3,
    *["gift paper"] * 2,
    "gift velvet",
    "scan short",
    "scan long",
    "broken",
)


def orders(chance: random.Random, first: int) -> Iterator[Outgoing]:
    """Yields orders without end; numbered from `first`."""
    number = first
    while True:
        for kind in chance.sample(DECK, len(DECK)):
            yield order(chance, number, kind)
            number += 1


def order(chance: random.Random, number: int, kind: str) -> Outgoing:
    name = f"A-{number}"
    body = _broken(name) if kind == "broken" else json.dumps(_order(chance, name, kind), ensure_ascii=False)
    properties = {
        "order": name,
        "country": chance.choice(COUNTRIES),
        "traceparent": f"00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-01",
    }
    message = Message(
        body=Typed("string", body),
        content_type="application/json",
        properties={key: Typed("string", value) for key, value in properties.items()},
    )
    return Outgoing(ADDRESS, message)


def _order(chance: random.Random, name: str, kind: str) -> dict[str, Any]:
    word, _, detail = kind.partition(" ")
    skus = chance.sample(sorted(PRICES), chance.randint(1, 3))
    details: dict[str, dict[str, Any]] = {
        "gift": {"wrapping": detail},
        "express": {"postcode": f"{chance.randint(10_000, 99_999)}"},
        "return": {"document": f"D-{chance.randint(1, 9999)}"},
        "scan": {"pages": 140 if detail == "long" else 4},
    }
    return {
        "order": name,
        "kind": word,
        "customer": f"C-{chance.randint(1, 500)}",
        "currency": chance.choice(CURRENCIES),
        "lines": [{"sku": sku, "quantity": chance.randint(1, 4), "price": PRICES[sku]} for sku in skus],
        **details.get(word, {}),
    }


def _broken(name: str) -> str:
    """Cut off in the middle, as by a gateway with a length limit."""
    return f'{{"order": "{name}", "kind": "standard", "lines": [{{"sku": "LAMP-2", "quant'


log = structlog.get_logger(__name__)

LONGEST_PAUSE_SECONDS = 10.0


class Trickle:
    """Publishes one order at a time; an order that the broker did not take is published again."""

    def __init__(self, publisher: Publisher, chance: random.Random, first: int) -> None:
        self._publisher = publisher
        self._orders = orders(chance, first)
        self._next: Outgoing = next(self._orders)
        self._failures = 0

    def step(self) -> float:
        """Publishes the next order; answers the seconds to wait beyond the interval (0 when all is well)."""
        try:
            self._publisher.publish([self._next])
        except BrokerError as error:
            self._failures += 1
            pause = min(2.0 ** (self._failures - 1), LONGEST_PAUSE_SECONDS)
            log.warning("order not published, retrying", reason=str(error), seconds=pause)
            return pause
        if self._failures:
            log.info("publishing resumed", failures=self._failures)
        self._failures = 0
        self._next = next(self._orders)
        return 0.0


class Command(BaseCommand):
    help = "Publishes demo orders over STOMP with the publisher's account; continues after broker restarts."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--interval", type=float, default=1.0, help="seconds between two orders (1)")
        parser.add_argument("--count", type=int, default=0, help="number of orders (0 = unlimited)")
        parser.add_argument("--seed", type=int, default=None, help="seed for reproducible orders")

    def handle(self, *args: Any, **options: Any) -> None:
        environment = read_publisher(os.environ)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        publisher = StompPublisher(
            Account(
                environment.stomp_address,
                environment.user,
                environment.password,
                environment.tls,
                in_clear=environment.in_clear,
            )
        )
        # Numbers go on from one start to the next: the seconds of our clock grow faster than orders do.
        trickle = Trickle(publisher, random.Random(options["seed"]), first=int(time.time()) - 1_700_000_000)
        published = 0
        log.info("publishing demo orders", interval=options["interval"])
        while not stop.is_set() and not 0 < options["count"] <= published:
            pause = trickle.step()
            published += pause == 0
            stop.wait(options["interval"] + pause)
        publisher.close()
