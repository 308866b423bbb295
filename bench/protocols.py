"""Failure protocols, part by part: taking them in, showing 10,000,000, deleting them, and how soon one is
seen.

Each part is a module `bench.protocols_<part>` with `measure(here) -> list[Line]`. It runs once per database
in a process of its own, on an empty database; `retention` after `pages` and on what these left, if both are
measured. `--part` and `--database` choose; else all is measured in one run.
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

PARTS = ("intake", "pages", "retention", "visible")
# Measured there only: the goal is PostgreSQL's, and one installation is as good as another for `visible`.
ONLY = {"pages": "postgresql", "visible": "sqlite"}
# Those that need millions of rows, which take longer to make than anything that is measured.
LARGE = ("pages", "retention")


@dataclass(frozen=True, slots=True)
class Here:
    """What a part is given. `sent`: protocols that the intake is sent; `rows`: protocols that are there."""

    database: str
    folder: Path
    sent: int
    rows: int


def run(arguments: Sequence[str]) -> list[Line]:
    options = _options(arguments)
    if options.only:
        print(json.dumps([site.packed(line) for line in _measured(options)]))
        sys.exit(0)
    found: list[Line] = []
    for database in options.database or site.DATABASES:
        parts = [part for part in options.part or PARTS if ONLY.get(part, database) == database]
        for together in [[part] for part in parts if part not in LARGE] + [
            [part for part in LARGE if part in parts]
        ]:
            if together:
                found += _in_a_process(together, database, options)
    return found


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench protocols")
    parser.add_argument("--part", action="append", choices=PARTS, help="one of them; again for more")
    parser.add_argument("--database", action="append", choices=site.DATABASES)
    parser.add_argument("--sent", type=int, default=60_000, help="protocols that the intake is sent")
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="protocols that are there (pages, retention)"
    )
    parser.add_argument("--only", choices=site.DATABASES, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _in_a_process(parts: Sequence[str], database: str, options: argparse.Namespace) -> list[Line]:
    # Of one server a bench sends more in a minute than any server should.
    unlimited = {"MA_INTAKE_ROWS_PER_MINUTE": "1000000000", "MA_INTAKE_MB_PER_MINUTE": "1000000"}
    with TemporaryDirectory(prefix="bench-protocols-") as name, site.database(database, Path(name)) as url:
        environment = {**os.environ, **site.environment(Path(name), url, unlimited)}
        command = [sys.executable, "-m", "bench", "protocols", "--only", database]
        command += [word for part in parts for word in ("--part", part)]
        command += ["--sent", str(options.sent), "--rows", str(options.rows)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [site.unpacked(line) for line in json.loads(done.stdout.splitlines()[-1])]


def _measured(options: argparse.Namespace) -> Sequence[Line]:
    site.set_up()
    here = Here(options.only, site.folder(), options.sent, options.rows)
    found: list[Line] = []
    for part in options.part:
        found += importlib.import_module(f"bench.protocols_{part}").measure(here)
    return found
