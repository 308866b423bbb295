"""Each acknowledgement mode at 1, 4 and 16 handlers beside a bare Proton consumer of the same semantics.

In a round each reference and each product has its turn, in a process of its own, on one queue filled anew;
what was accepted must have left the queue, and what was sent must be there. The agent is `demo.scripted`,
with small messages.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from bench import Measure
from bench.filled import PATIENCE, handle, left_in, own_peak, publish
from bench.modes_bare import Queue, consume
from bench.place import Place, find_place, from_environment
from broker.management.desired_topology import base_topology, setting_topology
from broker.management.topology import apply
from broker.stomp.client import StompManagement
from contract.messages import DesiredRun, Mode
from contract.redelivery import RedeliveryPolicy

GOAL, SHARING_GOAL = 0.5, 1.5
CONCURRENCIES = (1, 4, 16)
KEY, ADDRESS, DLA = "bench-modes", "bench.modes", "MA.DLA"
TARGET_KEY, TARGET = "bench-modes-sent", "bench.modes.sent"
SAMPLES = ("kma.samples.scripted",)


@dataclass(frozen=True, slots=True)
class Case:
    """`bare` names the reference, `step` what the agent does. `slow`: each message costs a transaction."""

    name: str
    mode: Mode
    bare: str
    step: dict[str, Any]
    slow: bool = False

    @property
    def sends(self) -> bool:
        return bool(self.step["do"] == "send")


CASES = (
    Case("TRANSACTED, silent", Mode.TRANSACTED, "each", {"do": "ok"}),
    Case("AUTO", Mode.AUTO, "each", {"do": "ok"}),
    Case("DUPS_OK", Mode.DUPS_OK, "batches", {"do": "ok"}),
    Case(
        "TRANSACTED, one send",
        Mode.TRANSACTED,
        "transactions",
        {"do": "send", "destination": TARGET, "body": "x" * 50},
        slow=True,
    ),
    Case("CLIENT, within", Mode.CLIENT, "transactions", {"do": "acknowledge", "action": "COMMIT"}, slow=True),
)
BY_NAME = {case.name: case for case in CASES}


def run(arguments: Sequence[str]) -> list[Measure]:
    options = _options(arguments)
    if options.only:
        print(json.dumps(_one(from_environment(), options)))
        sys.exit(0)
    with find_place() as place:
        return _compared(place, options)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench modes")
    parser.add_argument("--messages", type=int, default=10_000, help="where no message costs a transaction")
    parser.add_argument("--transactions", type=int, default=600, help="messages where each costs one")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="4,000 and 300 messages")
    parser.add_argument("--mode", choices=tuple(BY_NAME), help="this one only")
    parser.add_argument("--only", choices=tuple(BY_NAME), help=argparse.SUPPRESS)
    parser.add_argument("--concurrency", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.messages, options.transactions = 4_000, 300
    return options


# -- the comparison ------------------------------------------------------------------------------------------


def _compared(place: Place, options: argparse.Namespace) -> list[Measure]:
    management = StompManagement(place.stomp, f"MA.reply.bench-{uuid4()}")
    cases = [case for case in CASES if options.mode in (None, case.name)]
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    try:
        apply(management, base_topology(DLA))
        for key, address in ((KEY, ADDRESS), (TARGET_KEY, TARGET)):
            apply(management, setting_topology(key, address, RedeliveryPolicy(max_attempts=10), False, DLA))
        for _ in range(options.runs):
            for case in cases:
                for concurrency in (0, *CONCURRENCIES):
                    rates = found.setdefault((case.name, concurrency), [])
                    rates.append(_turn(place, management, case, concurrency, options))
    finally:
        management.close()
    return [_measure(case, concurrency, found) for case in cases for concurrency in CONCURRENCIES]


def _turn(
    place: Place, management: StompManagement, case: Case, concurrency: int, options: argparse.Namespace
) -> dict[str, float]:
    """Concurrency 0 is the reference."""
    number = options.transactions if case.slow else options.messages
    publish(place, ADDRESS, json.dumps(case.step), number)
    before = int(management.attribute(f"queue.{TARGET_KEY}", "MessageCount"))
    command = [sys.executable, "-m", "bench", "modes", "--only", case.name, "--concurrency", str(concurrency)]
    command += ["--messages", str(number)]
    environment = {**os.environ, **place.environment()}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    if left := left_in(management, KEY):
        raise RuntimeError(f"{case.name}, {concurrency}: {left} of {number} messages were not settled")
    sent = int(management.attribute(f"queue.{TARGET_KEY}", "MessageCount")) - before
    if sent != number * case.sends:
        raise RuntimeError(f"{case.name}, {concurrency}: {sent} messages were sent by {number} handlings")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"{case.name}, {concurrency or 'bare'}: {result['rate']:,.0f} /s", file=sys.stderr, flush=True)
    return result


def _measure(case: Case, concurrency: int, found: dict[tuple[str, int], list[dict[str, float]]]) -> Measure:
    product, bare = found[case.name, concurrency], found[case.name, 0]
    return Measure(
        name=f"{case.name}, concurrency {concurrency}",
        product=statistics.median(one["rate"] for one in product),
        reference=statistics.median(one["rate"] for one in bare),
        goal=SHARING_GOAL if case.sends and concurrency == max(CONCURRENCIES) else GOAL,
        unit="/s",
        peak_memory_mb=max(one["peak_mb"] for one in product),
        runs=[
            {"product": one["rate"], "reference": other["rate"]}
            for one, other in zip(product, bare, strict=True)
        ],
    )


# -- one turn, in a process of its own -----------------------------------------------------------------------


def _one(place: Place, options: argparse.Namespace) -> dict[str, float]:
    case = BY_NAME[options.only]
    if not options.concurrency:
        queue = Queue(f"{ADDRESS}::{KEY}", options.messages, TARGET if case.sends else "")
        return {"rate": consume(case.bare, place, queue), "peak_mb": own_peak() / 1024}
    desired = DesiredRun(
        activation=uuid4(),
        epoch=1,
        setting=KEY,
        agent="demo.scripted",
        destination=ADDRESS,
        queue=KEY,
        mode=case.mode,
        concurrency=options.concurrency,
    )
    return handle(place, desired, options.messages, SAMPLES)
