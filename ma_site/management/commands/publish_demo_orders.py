"""manage.py publish_demo_orders: a steady trickle of orders, some of which fail, until it is stopped."""

import os
import random
import signal
import threading
import time
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandParser

from broker.port import Account, BrokerError, Outgoing, Publisher
from broker.stomp.client import StompPublisher
from ma_site.demo.orders import orders
from ma_site.env import read_publisher

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
            log.warning("order not published, trying again", reason=str(error), seconds=pause)
            return pause
        if self._failures:
            log.info("publishing again", failures=self._failures)
        self._failures = 0
        self._next = next(self._orders)
        return 0.0


class Command(BaseCommand):
    help = "Publishes demo orders over STOMP with the publisher's account, through restarts of the broker."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--interval", type=float, default=1.0, help="seconds between two orders (1)")
        parser.add_argument("--count", type=int, default=0, help="end after so many (0 = never)")
        parser.add_argument("--seed", type=int, default=None, help="the same orders again")

    def handle(self, *args: Any, **options: Any) -> None:
        environment = read_publisher(os.environ)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        publisher = StompPublisher(Account(environment.stomp_address, environment.user, environment.password))
        # Numbers go on from one start to the next: the seconds of our clock grow faster than orders do.
        trickle = Trickle(publisher, random.Random(options["seed"]), first=int(time.time()) - 1_700_000_000)
        published = 0
        log.info("publishing demo orders", interval=options["interval"])
        while not stop.is_set() and not 0 < options["count"] <= published:
            pause = trickle.step()
            published += pause == 0
            stop.wait(options["interval"] + pause)
        publisher.close()
