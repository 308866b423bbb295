"""Protocols from PostgreSQL into the archive: planned, read, written, looked at again and compared with the
database, by spark-submit; beside the same rows by COPY into pyarrow, which writes them as Parquet by day and
looks at nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import Line, Measure, site
from bench.pipeline_spark import submitted

GOAL = 0.5
PIECE = 1 << 22  # bytes that pyarrow reads at a time


def run(arguments: Sequence[str]) -> list[Line]:
    parser = argparse.ArgumentParser(prog="python -m bench archive")
    parser.add_argument("--rows", type=int, default=1_000_000, help="protocols that are there")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        print(json.dumps(site.packed(_measured(options.rows))))
        sys.exit(0)
    from deploy.installing import artemis_download

    with TemporaryDirectory(prefix="bench-archive-") as name, site.database("postgresql", Path(name)) as url:
        jars = ",".join(map(str, artemis_download.ensure_fetched(Path(name) / "log")))
        more = {"MA_ARCHIVE_URL": f"file://{name}/archive", "MA_PIPELINE_DRIVERS": jars}
        environment = {**os.environ, **site.environment(Path(name), url, more)}
        command = [sys.executable, "-m", "bench", "archive", "--inside", "--rows", str(options.rows)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [site.unpacked(json.loads(done.stdout.splitlines()[-1]))]


def _measured(rows: int) -> Line:
    site.set_up()
    from bench.protocols_rows import make

    make(rows)
    bare = _bare(site.folder() / "bare", rows)
    seconds, peak = _product(site.folder(), rows)
    return Measure(
        name=f"archive of {rows:,} protocols beside COPY and pyarrow",
        product=rows / seconds,
        reference=rows / bare,
        goal=GOAL,
        unit="/s",
        peak_memory_mb=peak,
    )


def _product(folder: Path, rows: int) -> tuple[float, float]:
    """Seconds from the planning of the blocks to the end of the application, and the peak of its memory in
    MB."""
    from django.conf import settings
    from django.utils import timezone

    from insights.archive import planning

    began = time.perf_counter()
    now = timezone.now() + timedelta(hours=1)
    plan = {
        "run": "bench",
        "now": now.isoformat(),
        "results": str(folder / "results"),
        "jobs": [],
        **planning.plan(now),
    }
    plan["blocks"] = [block for block in plan["blocks"] if block["kind"] == "protocols"]
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    jars = settings.MA_PIPELINE_DRIVERS
    options = ["--jars", ",".join(jars), "--driver-class-path", os.pathsep.join(jars)]
    _, peak = submitted(folder, options, planning.environment(), "the archive")
    seconds = time.perf_counter() - began
    report = json.loads((folder / "report.json").read_text("utf-8"))
    written = sum(each["rows"] for each in report["archive"].get("written", ()))
    wrong = [each for each in report["archive"].get("verified", ()) if not each["ok"]]
    if written != rows or wrong:
        raise RuntimeError(
            f"{written} of {rows} rows, {wrong}:\n{(folder / 'log').read_text('utf-8')[-3000:]}"
        )
    return seconds, peak


def _bare(folder: Path, rows: int) -> float:
    """Seconds of one COPY of the same columns into files of their days."""
    import pyarrow as arrow
    import pyarrow.compute as compute
    import pyarrow.csv as csv
    import pyarrow.dataset as dataset
    from django.db import connection

    from insights.archive.statements import protocols

    began = time.perf_counter()
    written = 0
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY ({protocols()}) TO STDOUT (FORMAT csv, HEADER)") as copy,
    ):
        reader = csv.open_csv(
            arrow.PythonFile(_Copied(copy), mode="r"),
            read_options=csv.ReadOptions(block_size=PIECE),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=_types(), true_values=["t"], false_values=["f"]),
        )
        schema = reader.schema.append(arrow.field("day", arrow.date32()))

        def batches() -> Iterator[Any]:
            nonlocal written
            for batch in reader:
                written += batch.num_rows
                day = compute.cast(batch.column("received_at"), arrow.date32())
                yield arrow.record_batch([*batch.columns, day], schema=schema)

        dataset.write_dataset(
            batches(),
            folder,
            format="parquet",
            schema=schema,
            partitioning=["day"],
            partitioning_flavor="hive",
            file_options=dataset.ParquetFileFormat().make_write_options(compression="zstd"),
        )
    if written != rows:
        raise RuntimeError(f"{written} of {rows} rows were copied")
    return time.perf_counter() - began


def _types() -> dict[str, Any]:
    import pyarrow as arrow

    from pipeline.schemas import KINDS

    told = {"bigint": arrow.int64(), "double": arrow.float64(), "boolean": arrow.bool_()}
    told["timestamp"] = arrow.timestamp("us", "UTC")
    return {
        each.name: told.get(each.dataType.simpleString(), arrow.string())
        for each in KINDS["protocols"].schema
    }


class _Copied:
    """What a COPY sends, as a file."""

    def __init__(self, copy: Any) -> None:
        self._copy, self._left = copy, b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        pieces = [self._left]
        length = len(self._left)
        while size < 0 or length < size:
            piece = bytes(self._copy.read())
            if not piece:
                break
            pieces.append(piece)
            length += len(piece)
        found = b"".join(pieces)
        self._left = found[size:] if size >= 0 else b""
        return found if size < 0 else found[:size]

    def close(self) -> None:
        self.closed = True
