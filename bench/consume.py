"""Throughput of a run with a no-op agent (AUTO) beside a bare Proton receiver (credit 100), on one queue.

Runs alternate, bare first, each in a process of its own over the same N messages of 500 bytes, published anew each
time. Measured from the opened link to the last message handled; what was accepted must have left the queue.

The broker is a throw-away one, unless BENCH_AMQP_URL, BENCH_STOMP_ADDRESS, BENCH_USER and BENCH_PASSWORD name another
(an account that may send, consume and manage).
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bench import Measure
from bench.place import Place, find_place, from_environment
from broker.port import ConsumerEvents, Message, Outgoing
from broker.stomp_adapter import StompManagement, StompPublisher
from broker.topology import apply, base_topology, setting_topology
from contract.messages import DesiredRun, Mode, RunState
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed

if TYPE_CHECKING:
    from kma.run import Run

GOAL = 0.45
KEY, ADDRESS, DLA = "bench-consume", "bench.consume", "MA.DLA"
SIZE = 500
CREDIT = 100
PATIENCE = 120.0  # seconds for one run
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


# -- the comparison -------------------------------------------------------------------------------------------------


def _measure(place: Place, options: argparse.Namespace) -> Measure:
    management = StompManagement(place.stomp, f"MA.reply.bench-{uuid4()}")
    try:
        policy = RedeliveryPolicy(max_attempts=10)
        apply(management, base_topology(DLA))
        apply(management, setting_topology(KEY, ADDRESS, policy, False, DLA))
        if left := _settled_count(management):
            raise SystemExit(f"queue {KEY} holds {left} messages of something else")
        rounds: dict[str, list[dict[str, float]]] = {"bare": [], "product": []}
        for _ in range(options.runs):
            for kind, found in rounds.items():
                _publish(place, options.messages)
                found.append(_in_a_process(kind, place, options))
                left = _settled_count(management)
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


def _settled_count(management: StompManagement) -> int:
    """Messages that are left; the broker works off the last acceptances for a moment."""
    deadline = time.monotonic() + 10
    while (left := int(management.attribute(f"queue.{KEY}", "MessageCount"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _publish(place: Place, number: int) -> None:
    publisher = StompPublisher(place.stomp)
    text = Typed("string", json.dumps({"order": "A-1001", "note": "x" * SIZE})[:SIZE])
    properties = {"kind": Typed("string", "standard")}
    try:
        for start in range(0, number, 5_000):
            some = range(start, min(start + 5_000, number))
            publisher.publish([Outgoing(ADDRESS, Message(body=text, properties=properties)) for _ in some])
    finally:
        publisher.close()


def _in_a_process(kind: str, place: Place, options: argparse.Namespace) -> dict[str, float]:
    environment = {**os.environ, **place.environment()}
    command = [sys.executable, "-m", "bench", "consume", "--only", kind]
    command += ["--messages", str(options.messages), "--concurrency", str(options.concurrency)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# -- the two sides --------------------------------------------------------------------------------------------------


def _product(place: Place, options: argparse.Namespace) -> dict[str, float]:
    """A real run: link, journal, spool, child processes."""
    from broker.amqp_adapter import AmqpConsumer
    from kma.ledger import Ledger
    from kma.run import Run, Surroundings
    from kma.spool import Spool
    from kma.spool_file import SpoolFile

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

    def connect(wanted: DesiredRun, events: ConsumerEvents) -> AmqpConsumer:
        return AmqpConsumer(place.amqp, wanted.destination, wanted.queue, events)

    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        file = SpoolFile(folder / "spool.sqlite3")
        around = Surroundings("bench", Spool(file, 1 << 30), Ledger(file), folder, SAMPLES, connect, "ERROR")
        one = Run(desired, "1", around)
        one.start()
        began = _first_moment(one)
        while one.report().handled < options.messages:
            _in_time(began)
            time.sleep(0.002)
        seconds = time.monotonic() - began
        one.stop(close=True)
        one.join()
        assert one.state is RunState.FINISHED, one.problem
        file.close()
    children = options.concurrency * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"rate": options.messages / seconds, "peak_mb": (_own_peak() + children) / 1024}


def _first_moment(one: "Run") -> float:
    """When the link is open: the children were started before."""
    began = time.monotonic()
    while not one.report().connected:
        _in_time(began)
        time.sleep(0.001)
    return time.monotonic()


def _in_time(began: float) -> None:
    if time.monotonic() - began > PATIENCE - 10:
        raise RuntimeError("the bench's run does not get on")


def _bare(place: Place, options: argparse.Namespace) -> dict[str, float]:
    """What python-qpid-proton's own documentation shows: a container, a handler, credit 100, automatic acceptance."""
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
    return {"rate": options.messages / (receiver.ended - receiver.began), "peak_mb": _own_peak() / 1024}


_ONE = {"product": _product, "bare": _bare}


def _own_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
