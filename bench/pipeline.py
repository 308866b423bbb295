"""All jobs of the pipeline over generated archives of three sizes, beside DuckDB and Polars on the same
files.

The product runs as the MA starts it: spark-submit, local mode, two cores. Then: a run with nothing new, and
one after a day with 100,000 more protocols, beside a run over these alone. Answers are compared before a
figure is told; DuckDB answers all tables but the projection of retention, Polars the trends. Needs
requirements-bench.txt.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import Bound, Line, Most, pipeline_duckdb, pipeline_polars, pipeline_rows, pipeline_spark
from bench.pipeline_equal import compare

SIZES = (100_000, 1_000_000, 10_000_000)
ADDED = 100_000
TIMES_DUCKDB, MEMORY_MB, GROWTH, NOTHING_SECONDS, ADDED_TIMES = 2.0, 4096.0, 10.0, 15.0, 1.3
ENGINES = {"duckdb": pipeline_duckdb.answer, "polars": pipeline_polars.answer}
Seconds = float
Megabytes = float


def run(arguments: Sequence[str]) -> list[Line]:
    options = _options(arguments)
    if options.only:
        print(json.dumps(_answer(options.only, Path(options.archive), Path(options.results))))
        sys.exit(0)
    with TemporaryDirectory(prefix="bench-pipeline-", dir=options.folder) as name:
        return _Bench(Path(name)).measure(options.rows or SIZES)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench pipeline")
    parser.add_argument(
        "--rows", type=int, action="append", help="protocols; again for more sizes, ascending"
    )
    parser.add_argument("--folder", help="where the archives go: some GB (default: that of temporary files)")
    parser.add_argument("--only", choices=sorted(ENGINES), help=argparse.SUPPRESS)
    parser.add_argument("--archive", help=argparse.SUPPRESS)
    parser.add_argument("--results", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _now() -> str:
    end = pipeline_rows.START + timedelta(days=pipeline_rows.DAYS, hours=2)
    return end.isoformat()


def _answer(engine: str, archive: Path, results: Path) -> dict[str, float]:
    began = time.monotonic()
    since = pipeline_rows.START + timedelta(hours=2)
    ENGINES[engine](archive, results, now=_now(), since=since.isoformat())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.monotonic() - began, "megabytes": peak}


class _Bench:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def measure(self, sizes: Sequence[int]) -> list[Line]:
        found: list[Line] = []
        whole: dict[int, pipeline_spark.Ran] = {}
        for rows in sizes:
            archive, numbers = self._folder / f"archive-{rows}", dict[str, int]()
            pipeline_rows.write(archive, pipeline_rows.days(rows), numbers)
            blocks = {kind: list(range(1, last + 1)) for kind, last in numbers.items()}
            whole[rows] = ran = pipeline_spark.run(archive, self._folder, f"all-{rows}", blocks, _now())
            found += self._beside(rows, archive, ran)
            if rows == sizes[-1]:
                found += self._new(rows, archive, numbers)
        for less, more in pairwise(sizes):
            name = f"growth from {less:,} to {more:,}"
            found.append(
                Most(
                    name=name,
                    product=whole[more].seconds,
                    reference=whole[less].seconds,
                    goal=GROWTH,
                    unit="s",
                )
            )
        return found

    def _beside(self, rows: int, archive: Path, ran: pipeline_spark.Ran) -> list[Line]:
        found: list[Line] = []
        for engine in ENGINES:
            results = self._folder / f"{engine}-{rows}"
            results.mkdir()
            seconds, peak = self._in_a_process(engine, archive, results)
            compare(ran.results, results)
            # The goal is of the largest archive: Spark's cost is mostly fixed.
            goal = TIMES_DUCKDB if engine == "duckdb" and rows == SIZES[-1] else float("inf")
            measured = seconds if engine == "duckdb" else pipeline_polars.part(ran.report)
            product = ran.seconds if engine == "duckdb" else measured
            name = f"{rows:,} protocols beside {engine} ({peak:,.0f} MB)"
            found.append(
                Most(
                    name=name,
                    product=product,
                    reference=seconds,
                    goal=goal,
                    unit="s",
                    peak_memory_mb=ran.megabytes,
                )
            )
        name = f"memory at {rows:,}"
        memory = Bound(
            name=name, product=ran.megabytes, reference=peak, goal=MEMORY_MB, unit="MB", at_most=True
        )
        return [*found, memory]

    def _new(self, rows: int, archive: Path, numbers: dict[str, int]) -> list[Line]:
        """Nothing, then one day more; and that day alone."""
        nothing = pipeline_spark.run(archive, self._folder, "nothing", {}, _now())
        before = dict(numbers)
        start = pipeline_rows.START + timedelta(days=pipeline_rows.DAYS)
        day = pipeline_rows.days(ADDED, 1, first=rows, start=start)
        pipeline_rows.write(archive, day, numbers)
        later = (start + timedelta(days=1, hours=2)).isoformat()
        blocks = {kind: list(range(before[kind] + 1, last + 1)) for kind, last in numbers.items()}
        added = pipeline_spark.run(archive, self._folder, "added", blocks, later)
        alone, of_it = self._folder / "archive-alone", dict[str, int]()
        pipeline_rows.write(alone, day, of_it)
        every = {kind: list(range(1, last + 1)) for kind, last in of_it.items()}
        by_itself = pipeline_spark.run(alone, self._folder, "alone", every, later)
        name = f"{ADDED:,} more on {rows:,}, beside these alone"
        return [
            Bound(
                name="nothing new",
                product=nothing.seconds,
                reference=0.0,
                goal=NOTHING_SECONDS,
                unit="s",
                at_most=True,
            ),
            Most(name=name, product=added.seconds, reference=by_itself.seconds, goal=ADDED_TIMES, unit="s"),
        ]

    def _in_a_process(self, engine: str, archive: Path, results: Path) -> tuple[Seconds, Megabytes]:
        command = [sys.executable, "-m", "bench", "pipeline", "--only", engine]
        command += ["--archive", str(archive), "--results", str(results)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=pipeline_spark.ROOT)
        told = json.loads(done.stdout.splitlines()[-1])
        return told["seconds"], told["megabytes"]
