"""Throughput of a run with a no-op agent (AUTO) beside a bare Proton receiver (credit 100), on one queue.

Runs alternate, bare first, each in a process of its own over the same N messages of 500 bytes, published anew
each time. Measured from the opened link, of the product from its last child ready, to the last message
handled; what was accepted must have left the queue.

The broker is a throw-away one, unless BENCH_AMQP_URL, BENCH_STOMP_ADDRESS, BENCH_USER and BENCH_PASSWORD name
another (an account that may send, consume and manage).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from bench import Measure
from bench.filled import PATIENCE, handle, left_in, own_peak, publish
from bench.place import Place, find_place, from_environment
from broker.management.desired_topology import base_topology, setting_topology
from broker.management.topology import apply
from broker.stomp.client import StompManagement
from contract.messages import DesiredRun, Mode
from contract.redelivery import RedeliveryPolicy

GOAL = 0.45
KEY, ADDRESS, DLA = "bench-consume", "bench.consume", "MA.DLA"
SIZE = 500
TEXT = json.dumps({"order": "A-1001", "note": "x" * SIZE})[:SIZE]
CREDIT = 100
SAMPLES = ("kma.samples.bench",)


def run(arguments: Sequence[str]) -> list[Measure]:
    options = _options(arguments)
    if options.only:
        print(json.dumps(_ONE[options.only](from_environment(), options)))
        sys.exit(0)
    with find_place() as place:
        return [_measure(place, options)]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench consume")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--only", choices=("product", "bare"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


# -- the comparison ------------------------------------------------------------------------------------------


def _measure(place: Place, options: argparse.Namespace) -> Measure:
    management = StompManagement(place.stomp, f"MA.reply.bench-{uuid4()}")
    try:
        policy = RedeliveryPolicy(max_attempts=10)
        apply(management, base_topology(DLA))
        apply(management, setting_topology(KEY, ADDRESS, policy, False, DLA))
        if left := left_in(management, KEY):
            raise SystemExit(f"queue {KEY} holds {left} messages of something else")
        rounds: dict[str, list[dict[str, float]]] = {"bare": [], "product": []}
        for _ in range(options.runs):
            for kind, found in rounds.items():
                publish(place, ADDRESS, TEXT, options.messages)
                found.append(_in_a_process(kind, place, options))
                left = left_in(management, KEY)
                if left:
                    raise RuntimeError(f"{kind}: {left} of {options.messages} messages were not settled")
    finally:
        management.close()
    return Measure(
        name="consume",
        product=statistics.median(one["rate"] for one in rounds["product"]),
        reference=statistics.median(one["rate"] for one in rounds["bare"]),
        goal=GOAL,
        unit="/s",
        peak_memory_mb=max(one["peak_mb"] for one in rounds["product"]),
        runs=[
            {"product": product["rate"], "reference": bare["rate"]}
            for bare, product in zip(rounds["bare"], rounds["product"], strict=True)
        ],
    )


def _in_a_process(kind: str, place: Place, options: argparse.Namespace) -> dict[str, float]:
    environment = {**os.environ, **place.environment()}
    command = [sys.executable, "-m", "bench", "consume", "--only", kind]
    command += ["--messages", str(options.messages), "--concurrency", str(options.concurrency)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# -- the two sides -------------------------------------------------------------------------------------------


def _product(place: Place, options: argparse.Namespace) -> dict[str, float]:
    desired = DesiredRun(
        activation=uuid4(),
        epoch=1,
        setting=KEY,
        agent="bench.noop",
        destination=ADDRESS,
        queue=KEY,
        mode=Mode.AUTO,
        concurrency=options.concurrency,
    )
    return handle(place, desired, options.messages, SAMPLES)


def _bare(place: Place, options: argparse.Namespace) -> dict[str, float]:
    """What python-qpid-proton's own documentation shows: a container, a handler, credit 100, automatic
    acceptance."""
    from proton.handlers import MessagingHandler
    from proton.reactor import Container

    class Receiver(MessagingHandler):
        def __init__(self) -> None:
            super().__init__(prefetch=CREDIT, auto_accept=True)
            self.left = options.messages
            self.began = self.ended = 0.0

        def on_start(self, event: Any) -> None:
            container = event.container
            self.connection = container.connect(
                place.amqp_url, user=place.user, password=place.password, allowed_mechs="PLAIN"
            )
            container.create_receiver(self.connection, f"{ADDRESS}::{KEY}")

        def on_link_opened(self, event: Any) -> None:
            self.began = time.monotonic()

        def on_message(self, event: Any) -> None:
            _ = event.message.body
            self.left -= 1
            if not self.left:
                self.ended = time.monotonic()
                self.connection.close()

    receiver = Receiver()
    Container(receiver).run()
    return {"rate": options.messages / (receiver.ended - receiver.began), "peak_mb": own_peak() / 1024}


_ONE = {"product": _product, "bare": _bare}
