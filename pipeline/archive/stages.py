"""The archive's part of a run: every planned block is written and looked at; one that fails takes no other
one down."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count
from time import monotonic
from typing import Any

from pyspark.sql import SparkSession

from pipeline.archive.files import ArchiveError
from pipeline.archive.reading import Archive
from pipeline.archive.source import Source
from pipeline.archive.upkeep import compact_day, sweep
from pipeline.archive.verifying import as_row, verify_block
from pipeline.archive.writing import Block, archive_block

Row = Mapping[str, Any]

AT_ONCE = 4  # blocks


@dataclass(slots=True)
class Archived:
    """For report.json: `written` are manifests, `verified` as `Verified` says, `failed`: {"kind", "number",
    "problem"}."""

    written: list[Row] = field(default_factory=list)
    verified: list[Row] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)
    seconds: float = 0.0


def archive_stage(
    session: SparkSession, blocks: Sequence[Block], verify: Sequence[Block], source: Source, archive: Archive,
    tell: Callable[[int, int], object] = lambda done, of: None,
) -> Archived:  # fmt: skip
    """`blocks` are written, then verified; `verify`: are verified only. A block with "compacts": true is made
    of those that it replaces. `tell(done, of)` after each. Some at once, for most of a small block is
    waiting: those that look at no other one, then the others one by one."""
    began, result, done = monotonic(), Archived(), count(1)
    sweep(archive)

    def write(block: Block) -> None:
        try:
            _write(session, block, source, archive, result)
        except ArchiveError as error:
            result.failed.append(_failed(block, error))
        tell(next(done), len(blocks) + len(verify))

    def look(block: Block) -> None:
        try:
            result.verified.append(as_row(verify_block(session, block, source, archive, deep=True)))
        except ArchiveError as error:
            result.failed.append(_failed(block, error))
        tell(next(done), len(blocks) + len(verify))

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="archive") as pool:
        list(pool.map(write, (block for block in blocks if _stands_alone(block))))
        for block in blocks:
            if not _stands_alone(block):
                write(block)
        list(pool.map(look, verify))
    result.written.sort(key=lambda each: (each["kind"], each["block"]))
    result.verified.sort(key=lambda each: (each["kind"], each["number"]))
    result.seconds = round(monotonic() - began, 3)
    return result


def _stands_alone(block: Block) -> bool:
    return not block.get("compacts") and not block.get("replaces") and block.get("late_of") is None


def _failed(block: Block, error: ArchiveError) -> Row:
    return {"kind": block["kind"], "number": block["number"], "problem": str(error)}


def _write(session: SparkSession, block: Block, source: Source, archive: Archive, result: Archived) -> None:
    if block.get("compacts"):
        result.written.append(asdict(compact_day(session, block, archive)))
        return
    result.written.append(asdict(archive_block(session, block, source, archive)))
    result.verified.append(as_row(verify_block(session, block, source, archive)))
