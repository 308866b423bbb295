"""What a row costs: bytes in the database of a dead letter with and without its body, a replay of it, a
failure protocol, an activation, a further run, a group and an hour of failures; with indexes.

Written as the product writes them, into an empty database of their own. Of each: bytes as it lies there,
beside the same rows packed (VACUUM FULL, on SQLite VACUUM). Short where it costs more than
docs/explanation/sizes.md reckons with.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import Bound, Line, site

# Bytes of a row, at most, by its kind: a quarter more than was measured.
GOALS: Mapping[str, Mapping[str, float]] = {
    "sqlite": {
        "dead letter, body of 1 KB": 6_690,
        "replay of a dead letter": 370,
        "dead letter, body of 1 KB deleted": 1_940,
        "dead letter, body of 10 KB": 23_270,
        "dead letter, body of 10 KB deleted": 5_000,
        "failure protocol, traceback of 4 KB": 6_370,
        "activation with one run": 4_070,
        "each further run": 480,
        "failures of a kind in an activation on a server": 590,
        "failures of a kind in an hour": 240,
    },
    "postgresql": {
        "dead letter, body of 1 KB": 7_590,
        "replay of a dead letter": 600,
        "dead letter, body of 1 KB deleted": 9_460,
        "dead letter, body of 10 KB": 26_350,
        "dead letter, body of 10 KB deleted": 14_290,
        "failure protocol, traceback of 4 KB": 2_730,
        "activation with one run": 4_290,
        "each further run": 600,
        "failures of a kind in an activation on a server": 560,
        "failures of a kind in an hour": 370,
    },
}


def run(arguments: Sequence[str]) -> list[Line]:
    options = _options(arguments)
    if options.only:
        print(json.dumps([site.packed(line) for line in _measured(options)]))
        sys.exit(0)
    return [
        line for database in options.database or _databases() for line in _in_a_process(database, options)
    ]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench sizes")
    parser.add_argument("--database", action="append", choices=site.DATABASES)
    parser.add_argument(
        "--rows", type=int, default=4_000, help="of each kind; what is short is said of 4,000"
    )
    parser.add_argument("--only", choices=site.DATABASES, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _databases() -> Sequence[str]:
    from deploy.services import postgres

    if postgres.programs() is not None:
        return site.DATABASES
    print("PostgreSQL is not installed: SQLite alone", file=sys.stderr)
    return ("sqlite",)


def _in_a_process(database: str, options: argparse.Namespace) -> list[Line]:
    with TemporaryDirectory(prefix="bench-sizes-") as name, site.database(database, Path(name)) as url:
        environment = {**os.environ, **site.environment(Path(name), url)}
        command = [sys.executable, "-m", "bench", "sizes", "--only", database, "--rows", str(options.rows)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [site.unpacked(line) for line in json.loads(done.stdout.splitlines()[-1])]


def _measured(options: argparse.Namespace) -> list[Line]:
    site.set_up()
    from bench.sizes_measuring import measure

    goals = GOALS[options.only]
    return [
        Bound(
            name=f"{options.only} · {size.kind}",
            product=size.as_it_lies,
            reference=size.packed,
            goal=goals[size.kind],
            unit="B",
            at_most=True,
            runs=[size.by_table],
        )
        for size in measure(options.rows)
    ]
