"""The archive's part of a run: every planned block is written and looked at; one that fails takes no other one down."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from pyspark.sql import SparkSession

from pipeline.archive.compacting import compact_day
from pipeline.archive.problems import ArchiveError
from pipeline.archive.reading import Archive
from pipeline.archive.source import Source
from pipeline.archive.sweeping import sweep
from pipeline.archive.verifying import as_row, verify_block
from pipeline.archive.writing import Block, archive_block

Row = Mapping[str, Any]


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
    """`blocks` are written, then verified; `verify`: are verified only. A block with "compacts": true is made of those
    that it replaces. `tell(done, of)` after each."""
    began, result = monotonic(), Archived()
    sweep(archive)
    for done, block in enumerate((*blocks, *verify), start=1):
        try:
            if done <= len(blocks):
                _write(session, block, source, archive, result)
            else:
                result.verified.append(as_row(verify_block(session, block, source, archive, deep=True)))
        except ArchiveError as error:
            result.failed.append({"kind": block["kind"], "number": block["number"], "problem": str(error)})
        tell(done, len(blocks) + len(verify))
    result.seconds = round(monotonic() - began, 3)
    return result


def _write(session: SparkSession, block: Block, source: Source, archive: Archive, result: Archived) -> None:
    if block.get("compacts"):
        result.written.append(asdict(compact_day(session, block, archive)))
        return
    result.written.append(asdict(archive_block(session, block, source, archive)))
    archive.forget(block["kind"])
    result.verified.append(as_row(verify_block(session, block, source, archive)))
