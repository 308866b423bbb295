"""The dead-letter console on a real broker, part by part: the index, its pages, giving back.

Each part is a module `bench.dlq_<part>` with `measure(here) -> list[Line]`. It runs once per database in a
process of its own: Django is set up and migrated on an empty database, the broker is a throw-away one that
the parts share (each uses settings of its own). `--part` and `--database` choose; without them everything is
measured in one run.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import Line, site
from bench.place import Place, find_place, from_environment

PARTS = ("index", "pages", "giveback", "heap")
DLA = "MA.DLA"


@dataclass(frozen=True, slots=True)
class Here:
    """What a part is given. `letters` are dead letters at the broker, `many` those of the part `heap`, `rows`
    letters in the index; `broker_pid` is the broker's process (0: somebody else's)."""

    database: str
    place: Place
    folder: Path
    letters: int
    rows: int
    many: int
    broker_pid: int


def run(arguments: Sequence[str]) -> list[Line]:
    options = _options(arguments)
    if options.only:
        print(json.dumps([site.packed(line) for line in _measured(options)]))
        sys.exit(0)
    found: list[Line] = []
    with find_place() as place:
        for database in options.database or site.DATABASES:
            for part in options.part or PARTS:
                if part == "heap" and database != (options.database or site.DATABASES)[0]:
                    continue  # which database it is does not matter to the broker
                found += _in_a_process(part, database, place, options)
    return found


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench dlq")
    parser.add_argument("--part", action="append", choices=PARTS, help="one of them; again for more")
    parser.add_argument("--database", action="append", choices=site.DATABASES)
    parser.add_argument(
        "--letters", type=int, default=100_000, help="dead letters at the broker (index, giveback)"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="letters in the index (pages)")
    parser.add_argument("--many", type=int, default=1_000_000, help="dead letters at the broker (heap)")
    parser.add_argument("--only", choices=site.DATABASES, help=argparse.SUPPRESS)
    parser.add_argument("--broker-pid", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _in_a_process(part: str, database: str, place: Place, options: argparse.Namespace) -> list[Line]:
    """A site knows one database."""
    with TemporaryDirectory(prefix="bench-dlq-") as name, site.database(database, Path(name)) as url:
        environment = {
            **os.environ,
            **place.environment(),
            **site.environment(Path(name), url, _of_place(place)),
        }
        command = [sys.executable, "-m", "bench", "dlq", "--only", database, "--part", part]
        command += [
            "--letters",
            str(options.letters),
            "--rows",
            str(options.rows),
            "--many",
            str(options.many),
        ]
        command += ["--broker-pid", str(place.pid or 0)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [site.unpacked(line) for line in json.loads(done.stdout.splitlines()[-1])]


def _of_place(place: Place) -> dict[str, str]:
    return {
        "MA_AMQP_URL": place.amqp_url,
        "MA_STOMP_ADDRESS": place.stomp_address,
        "MA_BROKER_USER": place.user,
        "MA_BROKER_PASSWORD": place.password,
        "MA_DLA_ADDRESS": DLA,
    }


def _measured(options: argparse.Namespace) -> Sequence[Line]:
    site.set_up()
    here = Here(
        database=options.only,
        place=from_environment(),
        folder=Path(os.environ["MA_DATA"]),
        letters=options.letters,
        rows=options.rows,
        many=options.many,
        broker_pid=options.broker_pid,
    )
    part = importlib.import_module(f"bench.dlq_{options.part[0]}")
    lines: Sequence[Line] = part.measure(here)
    return lines
